//===- Schedule.h - Order operations into few pieces ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_TASKGRAPHS_FORMTASKGRAPHS_SCHEDULE_H
#define WHALE_LIB_TRANSFORMS_TASKGRAPHS_FORMTASKGRAPHS_SCHEDULE_H

#include "whale/Dialect/Whale/IR/WhaleAttrs.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"

namespace whale {

/// What the operations of one task graph have in common.
struct TaskGraphKey {
  StrategyAttr strategy;
  Phase phase = Phase::Forward;
  bool operator==(const TaskGraphKey &) const = default;
};

/// An order of the operations of one block in which definitions are before
/// uses and operations of one key in few runs. The current key is kept as long
/// as something of it is ready. Then follows a key of the earliest phase, first
/// one whose operations can all follow at once, then the one whose operation
/// is first. Operations with side effects keep their order. Returns indices
/// into `ops`.
llvm::SmallVector<size_t> scheduleByKey(llvm::ArrayRef<mlir::Operation *> ops,
                                        llvm::ArrayRef<TaskGraphKey> keys);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_TASKGRAPHS_FORMTASKGRAPHS_SCHEDULE_H
