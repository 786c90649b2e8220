//===- ResolveReshards.h - Reshards as collectives --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_RESOLVERESHARDS_H
#define WHALE_LIB_TRANSFORMS_PARTITION_RESOLVERESHARDS_H

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Placement/Resolver.h"
#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace whale {

/// A reshard with the collectives that carry it out, or an earlier one that has
/// brought the same value to the same place.
struct ResolvedReshard {
  int64_t firstChannel = 0;
  std::vector<Step> steps;
  /// By step: whether all devices have what it gives them, or need it no more.
  std::vector<bool> isNothing;
  mlir::Operation *earlier = nullptr;
};
using ResolvedReshards = llvm::DenseMap<mlir::Operation *, ResolvedReshard>;

/// Resolves all reshards of a function. Each step gets a channel of its own, in
/// the order of the text.
ResolvedReshards resolveReshards(mlir::Operation *function,
                                 const Topology &topology);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_RESOLVERESHARDS_H
