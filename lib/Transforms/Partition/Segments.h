//===- Segments.h - What a rank computes again and again --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A segment is a run of operations without a collective, as a function that
// schedules call for each micro-batch. It is written once, while the first
// micro-batch of the first rank class that has it is partitioned; the others
// are calls alone.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_SEGMENTS_H
#define WHALE_LIB_TRANSFORMS_PARTITION_SEGMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <map>
#include <mutex>
#include <vector>

namespace whale {

/// What a segment takes from the schedule: one of three.
struct SegmentInput {
  /// A value of the step, each moment's own.
  mlir::Value value = {};
  /// Or the sum so far of the loop's reduced value of this number.
  std::optional<unsigned> reduced = {};
  /// Or what differs between the ranks of a class and is the same at all
  /// moments: an operation without operands, of which the schedule has a copy.
  ShardOffsetOp offset = {};

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

/// What is left of a segment of which some results are used, and the numbers
/// of the inputs that it still has, ascending.
struct PrunedSegment {
  mlir::OwningOpRef<mlir::func::FuncOp> function;
  llvm::SmallVector<unsigned> inputs;
};

/// A segment as all rank classes share it.
class Segment {
public:
  /// Null if nothing is computed.
  mlir::func::FuncOp getFunction() const { return whole.function.get(); }
  void setFunction(mlir::OwningOpRef<mlir::func::FuncOp> function);

  std::vector<SegmentInput> inputs;
  std::vector<SegmentOutput> outputs;
  /// The constants and offsets of inputs and outputs.
  std::vector<mlir::OwningOpRef<mlir::Operation *>> owned;

  /// The segment with these results alone, numbers ascending, one at least. For
  /// several threads.
  PrunedSegment &prune(llvm::ArrayRef<unsigned> results) const;

private:
  mutable std::mutex mutex;
  mutable PrunedSegment whole;
  mutable std::map<std::vector<unsigned>, PrunedSegment> pruned;
};

/// A segment that a schedule calls.
struct CalledSegment {
  const Segment *segment;
  llvm::SmallVector<mlir::func::CallOp> calls;
  /// The results that the calls have, by their numbers in the segment.
  llvm::SmallVector<unsigned> results;

  CalledSegment(const Segment *segment);
  PrunedSegment &getPruned() const { return segment->prune(results); }
};

/// A segment that is being written.
class OpenSegment {
public:
  OpenSegment(mlir::Location loc, mlir::MLIRContext *context);

  mlir::Block *getBody() { return &function->front(); }

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

  /// Ends the function.
  std::unique_ptr<Segment> close();

private:
  bool isUsedOutside(mlir::Value value) const;

  mlir::OwningOpRef<mlir::func::FuncOp> function;
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

/// Drops results that no call of the schedule uses, what only they need, and
/// calls and segments of which nothing is left.
void pruneSegments(std::vector<CalledSegment> &segments);

/// Adds the segments of all schedules to the module, those that are equal,
/// operation by operation and location by location, as one.
void addSegments(mlir::ModuleOp module,
                 llvm::ArrayRef<std::vector<CalledSegment>> schedules);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_SEGMENTS_H
