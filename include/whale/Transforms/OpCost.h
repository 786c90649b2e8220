//===- OpCost.h - FLOPs and bytes of operations -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Estimates from types and attributes alone. All sums of FLOPs and bytes
// saturate at the largest int64_t.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_OPCOST_H
#define WHALE_TRANSFORMS_OPCOST_H

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Step/Costs.h"

#include <optional>

namespace whale {

class CostModel;
enum class OpClass;

/// Floating-point (or integer) operations that `op` does, those in its regions
/// included: 2 m n k for products, 2 for each tap of a convolution that is not
/// a zero of dilation, one for each element of elementwise operations, none for
/// moving data. A while loop counts as often as its trip count says, or once; a
/// branch as its most expensive alternative.
int64_t opFlops(mlir::Operation *op);

/// Bytes that `op` reads and writes: its operands and results, but of a tensor
/// of which it reads or updates a part, that; none for constants and operations
/// that only re-shape; loops and branches as for `opFlops`.
int64_t opBytes(mlir::Operation *op);

/// The class of an operation whose efficiency a device's kind knows.
OpClass opClassOf(mlir::Operation *op);

/// Seconds of `op` on a device by itself; loops and branches as for `opFlops`.
/// What is computed element by element, or only moved, becomes part of the
/// kernels around it: it reads nothing of its own.
double opSeconds(mlir::Operation *op, const CostModel &model, int64_t device);

/// What `opSeconds` leaves of `op` in one kernel with all around it: what is
/// computed element by element or reduced takes the time of its FLOPs alone.
double fusedSeconds(mlir::Operation *op, const CostModel &model,
                    int64_t device);

/// The alternative of a branch that takes a device the longest, the first of
/// several: what the branch counts as.
mlir::Region &longestBranch(mlir::Operation *branch, const CostModel &model,
                            int64_t device);

/// A loop whose carried counter has a constant start and step, is compared with
/// a constant, and stays within its type.
struct CountedLoop {
  /// Which carried value the counter is.
  unsigned counter = 0;
  int64_t start = 0;
  /// At least 1.
  int64_t step = 1;
  /// How often the body runs.
  int64_t trips = 0;
};

/// None for any other loop.
std::optional<CountedLoop> countedLoop(mlir::stablehlo::WhileOp loop);

/// How often the body of a counted loop runs; where its condition has become
/// kernels, what `whale.trips` says.
std::optional<int64_t> tripCount(mlir::stablehlo::WhileOp loop);

} // namespace whale

#endif // WHALE_TRANSFORMS_OPCOST_H
