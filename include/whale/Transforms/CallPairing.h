//===- CallPairing.h - Pair the calls of a scope ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_CALLPAIRING_H
#define WHALE_TRANSFORMS_CALLPAIRING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace whale {

/// One scope as it is reached through one path of calls.
struct ScopeInstance {
  /// `Scope::id`, with the numbers of the calls.
  std::string id;
  bool backward = false;
};

/// Finds the forward instance of each backward instance of one scope without a
/// name, given in the order in which they first occur in the program: a
/// function with the scope inside that is called twice has two forward calls
/// and two backward calls, and reverse mode visits them in reverse order. With
/// k times as many backward as forward instances (remat computes a part of
/// forward again in a call of its own), k consecutive ones go to one forward
/// instance. Returns the id of the instance that each backward id stands for.
llvm::StringMap<std::string> pairCalls(llvm::ArrayRef<ScopeInstance> instances);

} // namespace whale

#endif // WHALE_TRANSFORMS_CALLPAIRING_H
