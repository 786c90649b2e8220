//===- ApplyGradients.h - Updates as gradients come -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_SCHEDULE_APPLYGRADIENTS_H
#define WHALE_LIB_TRANSFORMS_SCHEDULE_APPLYGRADIENTS_H

#include "InstructionCosts.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace whale {

/// Where a rank class updates its state.
class GradientApplication {
public:
  struct Options {
    /// How many groups of about equal bytes the updates stand in; 0 has each
    /// stand by itself.
    int64_t groups = 0;
    /// Updates stand directly behind the reduction of their gradient, even if
    /// they have to wait for its end.
    bool late = false;
  };

  GradientApplication(ScheduleOp schedule, ProgramCosts &costs,
                      Options options);

  /// Moves each update to where its gradient is expected to be reduced, and
  /// behind what reads the old value.
  void apply();
  /// Moves all instructions back to where they were.
  void undo();

  /// The bytes of gradients that are held for a value which needs several of
  /// them, such as their norm.
  int64_t getHeldBytes() const { return heldBytes; }

private:
  void findUpdates();
  void findReady(ProgramCosts &costs);
  size_t overAt(double time, size_t from) const;
  size_t thereAt(mlir::Value value) const;
  void findPositions();
  void form(int64_t groups);
  void findHeld();

  ScheduleOp schedule;
  mlir::Block *block;
  Options options;
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, size_t> numbers;
  /// By number: whether it is part of an update, or the reduction of what only
  /// updates read.
  llvm::SmallVector<bool> isUpdate, isReduction;
  /// By number: when it begins, beside updates, and what its transfer takes.
  std::vector<double> begins, seconds;
  /// By number: the instruction before which it stands at the earliest, and the
  /// one before which it stands; of the reduction of a gradient, the one before
  /// which it is over.
  llvm::SmallVector<size_t> ready, place;
  int64_t heldBytes = 0;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_SCHEDULE_APPLYGRADIENTS_H
