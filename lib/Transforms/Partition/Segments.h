//===- Segments.h - What a rank computes again and again --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A segment is a run of operations without a collective, as a function that
// the schedule of a rank class calls for each micro-batch. It is written once,
// while the first micro-batch is partitioned; later ones are calls alone.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_SEGMENTS_H
#define WHALE_LIB_TRANSFORMS_PARTITION_SEGMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <vector>

namespace whale {

/// What a segment takes from the schedule: one of three.
struct SegmentInput {
  /// A value of the step, each moment's own.
  mlir::Value value = {};
  /// Or the sum so far of the loop's reduced value of this number.
  std::optional<unsigned> reduced = {};
  /// Or a value of the rank class that is the same at all moments.
  mlir::Value local = {};

  bool operator==(const SegmentInput &) const = default;
};

/// What a segment has made of a value of the step, or of a sum.
struct SegmentOutput {
  mlir::Value value = {};
  std::optional<unsigned> reduced = {};
  /// Its local value: a result of the call, what the segment was given, or a
  /// constant.
  enum Kind { Result, Input, Constant } kind = Result;
  unsigned result = 0;
  SegmentInput input = {};
  mlir::Operation *constant = nullptr;
};

struct Segment {
  /// Null if nothing is computed.
  mlir::func::FuncOp function;
  std::vector<SegmentInput> inputs;
  std::vector<SegmentOutput> outputs;
};

/// A segment that is being written.
class OpenSegment {
public:
  OpenSegment(mlir::Location loc, mlir::MLIRContext *context);

  mlir::Block *getBody() { return &function.front(); }

  /// The value inside that an input is.
  mlir::Value addInput(const SegmentInput &input, mlir::Type type);
  void addOperation(mlir::Operation *op) { ops.insert(op); }
  bool contains(mlir::Value value) const { return values.contains(value); }
  mlir::Value lookup(mlir::Value value) const { return values.lookup(value); }
  /// The value is made here.
  void map(mlir::Value value, mlir::Value local);
  /// What is made elsewhere, too.
  void bind(mlir::Value value, mlir::Value local) { values[value] = local; }
  /// The loop's reduced value of this number is `local` by now.
  void addSum(unsigned reduced, mlir::Value local) {
    sums.push_back({reduced, local});
  }

  /// Ends the function. `getLocal` gives an operation that has no operands and
  /// differs between ranks its place in the schedule. Constants of `outputs`
  /// are clones without an owner.
  Segment close(llvm::function_ref<mlir::Value(mlir::Operation *)> getLocal);

private:
  bool isUsedOutside(mlir::Value value) const;

  mlir::func::FuncOp function;
  /// By value of the step, and these in order.
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  std::vector<mlir::Value> defined;
  struct Sum {
    unsigned reduced;
    mlir::Value local;
  };
  std::vector<Sum> sums;
  /// The operations of the step that were visited as a whole.
  llvm::SmallPtrSet<mlir::Operation *, 32> ops;
  std::vector<SegmentInput> inputs;
};

/// Drops results of the segments of a schedule that no call uses, what only
/// they need, and calls of which nothing is left.
void pruneSegments(ScheduleOp schedule,
                   std::vector<mlir::func::FuncOp> &segments);

/// Adds the segments of all schedules to the module, those that are equal,
/// operation by operation and location by location, as one.
void addSegments(mlir::ModuleOp module, llvm::ArrayRef<ScheduleOp> schedules,
                 llvm::ArrayRef<std::vector<mlir::func::FuncOp>> segments);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_SEGMENTS_H
