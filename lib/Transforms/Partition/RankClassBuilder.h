//===- RankClassBuilder.h - The schedule of a rank class --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the step on global shapes. Out: a schedule on local shapes in which every
// reshard is resolved to collectives.
//
// What a rank computes of a micro-batch between two collectives is a segment, a
// function of its own. The items that it computes of one moment one after the
// other are a turn. The first turn of its kind is written out: its segments,
// and the collectives between them. Later moments repeat it, and other classes
// do: they call the same segments. So the cost of a micro-batch is that of its
// calls.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_RANKCLASSBUILDER_H
#define WHALE_LIB_TRANSFORMS_PARTITION_RANKCLASSBUILDER_H

#include "MomentOrder.h"
#include "ResolveReshards.h"
#include "Segments.h"
#include "Turns.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Sharding/BlockLocalizer.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"

#include <map>

namespace whale {

using MomentOrders = llvm::DenseMap<mlir::Operation *, MomentOrder>;

/// What the ranks of a class run: its schedule, and the segments that this
/// calls for each micro-batch. They belong to no module yet.
struct RankClassCode {
  ScheduleOp schedule;
  std::vector<CalledSegment> segments;
};

/// A loop over micro-batches while it is written.
struct LoopState {
  explicit LoopState(MicroBatchesOp op)
      : op(op), moments(op.getNumMoments()), sums(op.getNumReduced()),
        isReduced(op.getNumMoments(), llvm::BitVector(op.getNumReduced())) {}

  MicroBatchesOp op;
  /// The values of each moment.
  std::vector<llvm::DenseMap<mlir::Value, mlir::Value>> moments;
  /// In the schedule, what the moments take as their arguments.
  llvm::DenseSet<mlir::Value> pieces;
  /// By reduced value: the sum so far, and of which moments.
  llvm::SmallVector<mlir::Value> sums;
  std::vector<llvm::BitVector> isReduced;
  /// Operations behind which a segment ends.
  llvm::DenseSet<mlir::Operation *> cuts;
  /// By kind of turn: those with the local sizes of this class.
  llvm::DenseMap<TurnKind *, TurnVariant *> variants;
};

/// Writes the schedule of one rank class, with the shapes of its first rank.
class RankClassBuilder : BlockLocalizer {
public:
  RankClassBuilder(mlir::OpBuilder &builder, mlir::func::FuncOp main,
                   llvm::ArrayRef<int64_t> ranks,
                   const ResolvedReshards &reshards, const MomentOrders &orders,
                   TurnTable &turns)
      : BlockLocalizer(builder, ranks.front()), main(main), ranks(ranks),
        reshards(reshards), orders(orders), turns(turns) {}

  llvm::FailureOr<RankClassCode> build(llvm::StringRef name);

private:
  // The schedule.
  static void cutLate(mlir::Block &block);
  mlir::Value emitAbsent(mlir::Type type);
  llvm::LogicalResult visitReshard(ReshardOp op);

  // Values.
  mlir::Value find(mlir::Value value);
  mlir::Value get(mlir::Value value) const;
  mlir::Operation *getConstant(mlir::Value value) const;
  mlir::Attribute getState(mlir::Value value) const;
  mlir::Value lookup(mlir::Value value);
  void map(mlir::Value value, mlir::Value local) override;
  mlir::Value getOperand(mlir::OpOperand &operand) override;
  Placement getOperandPlacement(mlir::OpOperand &operand) override {
    return getPlacement(operand.get()).getValue();
  }
  bool isLate(mlir::Operation *producer) const;

  // Operations.
  llvm::LogicalResult visit(mlir::Operation *op) override;
  llvm::LogicalResult visitTaskGraph(TaskGraphOp graph);
  llvm::LogicalResult visitHere(mlir::Operation *op);
  llvm::LogicalResult visitInSegment(mlir::Operation *op);
  llvm::LogicalResult receiveReads(mlir::Operation *op);
  llvm::LogicalResult visitLateReads(mlir::Operation *op);
  llvm::LogicalResult visitLate(mlir::Value value);
  bool communicates(mlir::Operation *op);
  bool isSent(mlir::Operation *op) const;

  // Loops over micro-batches.
  llvm::LogicalResult visitMicroBatches(MicroBatchesOp op);
  llvm::LogicalResult
  visitTurn(LoopState &loop, llvm::ArrayRef<mlir::Operation *> ops, int64_t m);
  llvm::LogicalResult write(LoopState &loop,
                            llvm::ArrayRef<mlir::Operation *> ops, int64_t m);
  bool fits(const Turn &turn, const LoopState &loop, int64_t m) const;
  llvm::LogicalResult repeat(LoopState &loop, const Turn &turn, int64_t m);
  void reduce(LoopState &loop, int64_t m);
  void findCuts(LoopState &loop);
  void openSegment(mlir::Location loc);
  void closeSegment();
  mlir::Value getOffset(ShardOffsetOp op);
  mlir::Value getSum(LoopState &loop, unsigned i);
  void call(const Segment &segment, LoopState &loop);

  mlir::func::FuncOp main;
  llvm::ArrayRef<int64_t> ranks;
  const ResolvedReshards &reshards;
  const MomentOrders &orders;
  TurnTable &turns;
  ScheduleOp schedule;
  std::vector<CalledSegment> segments;
  llvm::DenseMap<const Segment *, size_t> numbers;
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  /// Inside of micro-batches: the loop, and the values of the micro-batch at
  /// hand.
  LoopState *loop = nullptr;
  llvm::DenseMap<mlir::Value, mlir::Value> *moment = nullptr;
  int64_t momentNumber = 0;
  /// What is being written.
  std::optional<OpenSegment> open;
  Turn *turn = nullptr;
  /// What the turn has put into the schedule.
  llvm::DenseSet<mlir::Value> made;
  /// Whether an operation of a region is visited, with the operation around it.
  bool isNested = false;
  /// Offsets of shards, by what they are.
  std::map<std::tuple<const void *, int64_t, const void *>, mlir::Value>
      offsets;
  /// By channel: the first of its collectives, of which others are copies.
  llvm::DenseMap<int64_t, mlir::Operation *> collectives;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_RANKCLASSBUILDER_H
