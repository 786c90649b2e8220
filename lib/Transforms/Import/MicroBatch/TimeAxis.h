//===- TimeAxis.h - What is computed micro-batch by micro-batch -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A micro-batch is a split over time: the mini-batch is split along an axis
// whose points are moments, and propagation says what follows it. Operations
// with a split or partial operand or result belong to a loop over the moments;
// the others are computed once, before, between or after the loops.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_MICROBATCH_TIMEAXIS_H
#define WHALE_LIB_TRANSFORMS_IMPORT_MICROBATCH_TIMEAXIS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/AxisPropagation.h"
#include "whale/Sharding/Mesh.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace whale {

class TimeAxis {
public:
  /// With `ownStatistics`, statistics between layers are those of each moment.
  TimeAxis(mlir::func::FuncOp main, int64_t moments, bool ownStatistics);

  /// Propagates. What only depends on batch arguments and is needed of the
  /// whole mini-batch is cloned, to be computed once; what needs sums over all
  /// samples in a loop, and no sample, is put behind it where it can be; so is
  /// what mixes samples of different micro-batches at the end of the forward
  /// pass. In its middle, layers wait for statistics without gradients in a
  /// loop of their own. Fails with an error at any other operation that mixes
  /// them there.
  llvm::LogicalResult run();

  int64_t getNumMoments() const { return moments; }
  /// The number of loops; each computes what needs all of those before it.
  unsigned getNumLoops() const { return loops; }
  /// The loop of an operation of @main, or none if it is computed once.
  std::optional<unsigned> getLoop(mlir::Operation *op) const;
  /// Whether an operand is computed again in the loop that uses it, wherever it
  /// is made: it needs nothing of any loop, as an index or a constant for each
  /// sample, and each moment reads what it would compute of it.
  bool goesAlong(mlir::OpOperand &operand) const {
    return freeOps.contains(operand.get().getDefiningOp()) &&
           getState(operand.get()).isCut() &&
           getState(operand.get()) == getRequired(operand);
  }
  /// For an operation that is computed once: the loop before which it is.
  unsigned getTurn(mlir::Operation *op) const { return turns.lookup(op); }

  /// The first operation of the forward pass behind which the mini-batch is
  /// computed as a whole until its samples part again, or null.
  mlir::Operation *getMeeting() const {
    return meetings.empty() ? nullptr : meetings.front().first;
  }

  /// Operations of the forward pass that wait for a statistic of all samples,
  /// in a loop behind that which makes it.
  llvm::SmallVector<mlir::Operation *> getStatisticReaders() const {
    return llvm::filter_to_vector(
        llvm::make_first_range(statistics),
        [&](mlir::Operation *op) { return getLoop(op).has_value(); });
  }

  AxisState getState(mlir::Value value) const {
    return propagation->getState(value);
  }
  AxisState getRequired(mlir::OpOperand &operand) const {
    return propagation->getRequired(operand);
  }
  /// A value over the moments, each of which takes an equal share, the first
  /// ones one more where that leaves a rest.
  Placement place(mlir::Value value, const AxisState &state) const;

  /// The operation if it makes more elements than it reads, as of a sum or for
  /// each sample those of every other one; or null.
  static mlir::stablehlo::BroadcastInDimOp toSpread(mlir::Operation *op);

private:
  llvm::LogicalResult propagate();
  void takeOut(mlir::Operation *op,
               const llvm::DenseSet<mlir::Operation *> &later,
               llvm::SetVector<mlir::OpOperand *> &batchReads);
  bool computeWholeValues();
  bool divideLoops();
  /// What an operation waits for, and the loop, or place before one, where all
  /// of it is there.
  struct Waiting {
    llvm::SmallVector<mlir::OpOperand *> operands;
    unsigned turn = 0;
  };
  Waiting findWaiting(mlir::Operation *op);
  bool needsNoLoop(mlir::Operation *op) const;
  llvm::SmallVector<mlir::OpOperand *> assignLoops();
  bool comesFrom(mlir::Value value,
                 llvm::function_ref<bool(mlir::Value)> isSought);
  bool isBehindLayers(mlir::Operation *op);
  bool takeStatistics(llvm::ArrayRef<mlir::OpOperand *> mixes);
  llvm::LogicalResult checkStatistics();
  llvm::FailureOr<bool> takeOwnStatistics();
  llvm::LogicalResult joinSamples(llvm::ArrayRef<mlir::OpOperand *> mixes);
  llvm::FailureOr<mlir::OpOperand *>
  findMeeting(mlir::Operation *op, mlir::OpOperand *mix,
              const llvm::DenseMap<mlir::Value, mlir::OpOperand *> &metBy);
  void takeWhole(mlir::Operation *op);
  bool dependsOnParameters(mlir::Value value) const;
  bool usesParameters(mlir::Operation *op) const;
  bool isInLoop(mlir::Operation *op) const;
  bool needsWhole(mlir::OpOperand &operand) const;
  bool isOfSums(mlir::Operation *op) const;
  bool mayWait(mlir::Operation *op) const;
  bool dependsOnBatchAlone(mlir::Value value);
  llvm::SmallVector<mlir::OpOperand *>
  findBatchReads(mlir::OpOperand &operand,
                 const llvm::DenseSet<mlir::Operation *> &later);
  mlir::Value cloneWhole(mlir::Value value);
  void copyWhole(mlir::Operation *op);
  bool isMix(mlir::OpOperand &operand) const;
  mlir::OpOperand *findNestedMix(mlir::Operation *op) const;
  mlir::OpOperand &findMix(mlir::OpOperand &operand) const;
  bool waitsForUpdate(mlir::OpOperand &operand) const;
  mlir::Operation *findSum(mlir::Value value) const;
  llvm::LogicalResult emitTooMany(mlir::BlockArgument argument, int64_t samples,
                                  int64_t parts) const;
  std::pair<llvm::StringRef, llvm::StringRef>
  explainMix(mlir::OpOperand &mix) const;
  mlir::InFlightDiagnostic emitMixes(mlir::OpOperand &operand) const;

  mlir::func::FuncOp main;
  int64_t moments;
  bool ownStatistics;
  /// Whether some have been found.
  bool hasOwnStatistics = false;
  Mesh mesh;
  std::unique_ptr<AxisPropagation> propagation;
  llvm::DenseMap<mlir::Operation *, unsigned> loopOf;
  llvm::DenseMap<mlir::Operation *, unsigned> turns;
  llvm::DenseSet<mlir::Operation *> freeOps;
  llvm::DenseMap<mlir::Value, mlir::Value> wholeOf;
  llvm::DenseSet<mlir::Operation *> wholeOps;
  /// Operations of @main in the forward pass that join samples, and an operand
  /// that does.
  llvm::MapVector<mlir::Operation *, mlir::OpOperand *> meetings;
  /// Those that wait for a statistic, and an operand that needs it.
  llvm::MapVector<mlir::Operation *, mlir::OpOperand *> statistics;
  unsigned loops = 0;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_MICROBATCH_TIMEAXIS_H
