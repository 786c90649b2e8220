//===- Enumerate.h - All orders of a program's transfers --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_MUTATION_ENUMERATE_H
#define WHALE_UNITTESTS_MUTATION_ENUMERATE_H

#include "Steps.h"

#include <set>
#include <string>

namespace whale::transfers {

/// What the orders that starts, waits and transfers allow make of a program,
/// up to a fault or a second result.
struct Outcomes {
  /// Names of what the results of all ranks hold at the end.
  std::set<Symbol> results;
  /// Why an order does not come to its end; empty if each one does.
  std::string fault;
  /// Whether more states were reached than allowed, so that orders are missing.
  bool isCut = false;
  /// How many were reached.
  size_t states = 0;

  bool isOne() const { return !isCut && fault.empty() && results.size() == 1; }
};

struct Limits {
  size_t states = size_t(1) << 20;
  /// Whether instructions that nothing else can notice are taken at once. That
  /// changes the number of states, and nothing else.
  bool isReduced = true;
};

/// Goes through all orders, on symbols in the place of numbers. A rank takes
/// its next instruction, or a transfer that has begun moves on: a rank's part
/// of it first takes what it needs from the sources, of itself or of peers, and
/// later fills its destination. In an all-reduce a rank's part takes its own
/// source, and fills its destination when all have done so. From the start of a
/// transfer on its destination holds garbage. A rank that has come to its end
/// need not move anything any more.
///
/// Loops run twice, and cases take the given branch. Programs that are compared
/// share `names`.
Outcomes enumerate(const format::Program &program, size_t branch, Names &names,
                   const Limits &limits = {});

/// The instructions of all ranks, those in loops and cases included.
int64_t countInstructions(const format::Program &program);

} // namespace whale::transfers

#endif // WHALE_UNITTESTS_MUTATION_ENUMERATE_H
