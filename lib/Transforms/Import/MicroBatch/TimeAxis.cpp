//===- TimeAxis.cpp - What is computed micro-batch by micro-batch ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The moments are a mesh of equal devices; batch arguments are split along it.
// Partial sums are kept: only behind a loop are they complete.
//
// A value that a loop needs of all moments, if it depends on batch arguments
// alone, is computed again from the whole of them; what needs sums over all
// moments in each round of a loop of @main, as to round them, becomes a loop of
// its own behind it (LoopDivision.h). All is propagated anew until nothing of
// either is left. Then each operation gets the first loop in which what it
// needs is there. A forward operation in a later loop waits for an update of
// parameters (the second one of a step), or for a statistic
// (WaitForStatistics.cpp). Any other would mix samples of different moments: in
// another round it is computed whole, with all that depends on it, or it is an
// error (JoinSamples.cpp). Cost: a propagation over
// the step for each round.
//
//===----------------------------------------------------------------------===//

#include "TimeAxis.h"

#include "LoopDivision.h"
#include "mlir/IR/IRMapping.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Sharding/Factorization.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Feedback.h"

#include <numeric>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// Arguments of at most so many elements (keys, counts, rates) may enter what
/// is computed of the whole mini-batch beforehand.
static constexpr int64_t smallArgument = 4;

/// All moments on a single group of equal devices.
static Mesh meshOfMoments(int64_t moments) {
  std::vector<DeviceId> group(moments);
  std::iota(group.begin(), group.end(), 0);
  return {std::vector<std::vector<DeviceId>>{group}, Cluster::ofRanks(moments)};
}

static IntegerAttr batchDimOf(BlockArgument argument) {
  auto main = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return main ? main.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                   kBatchDimAttr)
              : IntegerAttr();
}

TimeAxis::TimeAxis(func::FuncOp main, int64_t moments, bool ownStatistics)
    : main(main), moments(moments), ownStatistics(ownStatistics),
      mesh(meshOfMoments(moments)) {}

std::optional<unsigned> TimeAxis::getLoop(Operation *op) const {
  auto it = loopOf.find(op);
  if (it == loopOf.end())
    return std::nullopt;
  return it->second;
}

Placement TimeAxis::place(Value value, const AxisState &state) const {
  auto type = cast<RankedTensorType>(value.getType());
  return mesh.place(type.getShape(), {AxisState::replicated(), state});
}

LogicalResult TimeAxis::run() {
  while (true) {
    do {
      if (failed(propagate()))
        return failure();
    } while (computeWholeValues() || divideLoops());
    SmallVector<OpOperand *> mixes = assignLoops();
    if (ownStatistics) {
      FailureOr<bool> hasChanged = takeOwnStatistics();
      if (failed(hasChanged))
        return failure();
      if (*hasChanged)
        continue;
    }
    if (mixes.empty())
      return checkStatistics();
    if (!takeStatistics(mixes) && failed(joinSamples(mixes)))
      return failure();
  }
}

/// A reshape of what is made of an argument, after which no dimension has as
/// many elements as there are samples; null if there is none.
static Operation *findDivision(BlockArgument argument, int64_t samples) {
  SetVector<Value> values;
  values.insert(argument);
  auto hasSamples = [&](Value value) {
    return llvm::is_contained(cast<ShapedType>(value.getType()).getShape(),
                              samples);
  };
  for (unsigned i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (isa<hlo::ReshapeOp>(user) && !hasSamples(user->getResult(0)))
        return user;
      values.insert_range(
          llvm::make_filter_range(user->getResults(), hasSamples));
    }
  return nullptr;
}

/// Reports that samples come in fewer parts than there are micro-batches.
LogicalResult TimeAxis::emitTooMany(BlockArgument argument, int64_t samples,
                                    int64_t parts) const {
  InFlightDiagnostic diagnostic = emitError(argument.getLoc())
                                  << "micro-batches: " << moments
                                  << " of them are more than " << parts;
  diagnostic << (samples == 1 ? " sample"
                 : parts == samples
                     ? " samples"
                     : " parts that the step divides the samples into")
             << " of argument " << argument.getArgNumber()
             << "; use at most as many";
  if (parts != samples)
    if (Operation *division = findDivision(argument, samples))
      diagnostic.attachNote(division->getLoc()) << "they are divided here";
  return diagnostic;
}

LogicalResult TimeAxis::propagate() {
  SmallVector<int64_t> feeds = findFedArguments(main);
  AxisPropagation::Options options;
  Factorization factorization(main, feeds, *options.rules);
  options.policy = [this](Operation *op) {
    return phaseOf(op) == Phase::Apply || wholeOps.contains(op)
               ? AxisPolicy::Whole
               : AxisPolicy::Batch;
  };
  options.parts = [this](Operation *) { return moments; };
  options.devices = [this](Operation *) -> const void * { return this; };
  // A sum is complete before it is spread: less is added up and kept.
  options.passesPartial = [](Operation *op, Value) {
    return phaseOf(op) != Phase::Apply && !toSpread(op);
  };
  options.keepsPartials = true;
  options.feeds = feeds;
  for (BlockArgument argument : main.getArguments()) {
    IntegerAttr dim = batchDimOf(argument);
    if (!dim)
      continue;
    int64_t samples =
        cast<RankedTensorType>(argument.getType()).getDimSize(dim.getInt());
    for (const DimPiece &piece : factorization.getPieces(argument))
      if (int64_t(piece.dim) == dim.getInt()) {
        if (piece.extent < moments)
          return emitTooMany(argument, samples, piece.extent);
        options.seeds[argument] = AxisState::split(piece);
        break;
      }
  }
  if (options.seeds.empty()) {
    for (BlockArgument argument : main.getArguments())
      if (IntegerAttr dim = batchDimOf(argument)) {
        int64_t samples =
            cast<RankedTensorType>(argument.getType()).getDimSize(dim.getInt());
        return emitTooMany(argument, samples, samples);
      }
    return main.emitError("micro-batches: no argument carries a mini-batch of "
                          "samples; name those that do (batch_argnums, "
                          "--batch-args)");
  }
  propagation = std::make_unique<AxisPropagation>(main, std::move(options));
  propagation->run();
  return success();
}

//===----------------------------------------------------------------------===//
// Values that are needed whole
//===----------------------------------------------------------------------===//

/// Whether one moment alone can't provide the operand as it is wanted.
bool TimeAxis::needsWhole(OpOperand &operand) const {
  AxisState state = getState(operand.get());
  AxisState required = getRequired(operand);
  return state.isCut() && !required.isFree() && state != required;
}

bool TimeAxis::isInLoop(Operation *op) const {
  return op
      ->walk([&](Operation *inner) {
        for (Value result : inner->getResults())
          if (getState(result).isCut())
            return WalkResult::interrupt();
        for (OpOperand &operand : inner->getOpOperands())
          if (getRequired(operand).isCut())
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether an operation is computed from samples, where random bits are not.
static bool dependsOnSamples(Operation *op) {
  llvm::SetVector<Value> values = getReads(op);
  for (unsigned i = 0; i < values.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(values[i])) {
      if (batchDimOf(argument))
        return true;
    } else {
      values.insert_range(getReads(values[i].getDefiningOp()));
    }
  }
  return false;
}

bool TimeAxis::dependsOnBatchAlone(Value value) {
  SmallVector<Value> worklist{value};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      auto type = cast<RankedTensorType>(argument.getType());
      if (argument.getOwner() != &main.front() ||
          (!batchDimOf(argument) && type.getNumElements() > smallArgument))
        return false;
      continue;
    }
    Operation *op = next.getDefiningOp();
    bool samplesMeetInside =
        hlo::isControlFlow(op) && isInLoop(op) && dependsOnSamples(op);
    if (op->getBlock() != &main.front() || samplesMeetInside)
      return false;
    forEachRead(op, [&](Value value) { worklist.push_back(value); });
  }
  return true;
}

/// A copy of `value` and of what it is computed from, for the whole mini-batch.
Value TimeAxis::cloneWhole(Value value) {
  auto find = [&](Value read) {
    return read.getDefiningOp() ? Value(wholeOf.lookup(read)) : read;
  };
  SmallVector<Value> missing{value};
  while (!missing.empty()) {
    if (find(missing.back())) {
      missing.pop_back();
      continue;
    }
    Operation *op = missing.back().getDefiningOp();
    size_t count = missing.size();
    llvm::SetVector<Value> reads = getReads(op);
    for (Value read : llvm::reverse(reads))
      if (!find(read))
        missing.push_back(read);
    if (missing.size() == count)
      copyWhole(op);
  }
  return find(value);
}

/// Copies an operation that reads only what has been copied.
void TimeAxis::copyWhole(Operation *op) {
  IRMapping mapping;
  for (Value read : getReads(op))
    if (read.getDefiningOp())
      mapping.map(read, wholeOf.lookup(read));
  Operation *copy = OpBuilder(op).clone(*op, mapping);
  // What follows a sum over all samples can again be cut.
  if (llvm::any_of(op->getOperands(),
                   [&](Value operand) { return getState(operand).isSplit(); }))
    wholeOps.insert(copy);
  for (auto [result, whole] : llvm::zip(op->getResults(), copy->getResults()))
    wholeOf[result] = whole;
}

/// Whether it computes with no samples, but with sums over them at most.
bool TimeAxis::isOfSums(Operation *op) const {
  auto isSplit = [&](Value value) { return getState(value).isSplit(); };
  return llvm::none_of(op->getOperands(), isSplit) &&
         llvm::none_of(op->getResults(), isSplit);
}

/// Whether it can be computed after all moments. Loops are divided instead.
bool TimeAxis::mayWait(Operation *op) const {
  if (op->getNumRegions() > 0 && !hlo::isBranch(op))
    return false;
  WalkResult result = op->walk([&](Operation *inner) {
    return isOfSums(inner) ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

/// What an operand that comes too late for its loop is computed of and depends
/// on the mini-batch alone, as samples in another order: itself, or terms of a
/// sum over moments, and what is computed once after a loop. Backwards can wait
/// for these, and so can forwards that follow an update.
SmallVector<OpOperand *>
TimeAxis::findBatchReads(OpOperand &operand,
                         const llvm::DenseSet<Operation *> &later) {
  if (dependsOnBatchAlone(operand.get()))
    return {&operand};
  if (phaseOf(main.front().findAncestorOpInBlock(*operand.getOwner())) !=
      Phase::Forward)
    return {};
  SmallVector<OpOperand *> found, worklist{&operand};
  llvm::DenseSet<Operation *> seen;
  while (!worklist.empty()) {
    OpOperand *next = worklist.pop_back_val();
    Operation *producer = next->get().getDefiningOp();
    if (!producer || !later.contains(producer) ||
        getState(next->get()).isSplit())
      continue;
    if (phaseOf(producer) != Phase::Forward)
      return {};
    if (dependsOnBatchAlone(next->get()))
      found.push_back(next);
    else if (seen.insert(producer).second)
      producer->walk([&](Operation *inner) {
        for (OpOperand &read : inner->getOpOperands())
          worklist.push_back(&read);
      });
  }
  return found;
}

/// Leaves a loop or branch that needs sums over samples whole, and no samples,
/// until after the moments; one with samples gets what it reads of the
/// mini-batch alone whole.
void TimeAxis::takeOut(Operation *op, const llvm::DenseSet<Operation *> &later,
                       llvm::SetVector<OpOperand *> &batchReads) {
  if (!hlo::isControlFlow(op) || !findNestedMix(op))
    return;
  bool isOfSamples = false;
  op->walk([&](Operation *inner) { isOfSamples |= !isOfSums(inner); });
  op->walk([&](Operation *inner) {
    if (!isOfSamples)
      wholeOps.insert(inner);
    else
      for (OpOperand &operand : inner->getOpOperands())
        if (later.contains(operand.get().getDefiningOp()) &&
            !getState(operand.get()).isSplit())
          batchReads.insert_range(findBatchReads(operand, later));
  });
}

bool TimeAxis::computeWholeValues() {
  llvm::SetVector<OpOperand *> operands;
  size_t numWhole = wholeOps.size();
  // Loops, and what is computed once after one of them.
  llvm::DenseSet<Operation *> later;
  for (Operation &op : main.front().without_terminator()) {
    takeOut(&op, later, operands);
    bool inLoop = isInLoop(&op);
    op.walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands()) {
        Operation *producer = operand.get().getDefiningOp();
        if (!producer || !later.contains(producer))
          continue;
        later.insert(&op);
        bool comesTooLate =
            needsWhole(operand) || getState(operand.get()).isReplicated();
        if (!inLoop || !comesTooLate)
          continue;
        if (SmallVector<OpOperand *> reads = findBatchReads(operand, later);
            !reads.empty())
          operands.insert_range(reads);
        // A sum times what is computed from a sum waits for both, and so does
        // a branch that a sum chooses.
        else if (phaseOf(&op) == Phase::Forward && mayWait(&op))
          op.walk([&](Operation *inner) { wholeOps.insert(inner); });
      }
    });
    if (inLoop)
      later.insert(&op);
  }
  for (OpOperand *operand : operands)
    operand->set(cloneWhole(operand->get()));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(main.front())))
    if (isOpTriviallyDead(&op)) {
      op.walk([&](Operation *inner) { wholeOps.erase(inner); });
      meetings.erase(&op);
      statistics.erase(&op);
      op.erase();
    }
  wholeOf.clear();

  return !operands.empty() || wholeOps.size() > numWhole;
}

/// Divides the first loop of @main in which something waits for sums over all
/// moments, if it can be; returns whether it was.
bool TimeAxis::divideLoops() {
  for (Operation &op : main.front().without_terminator()) {
    OpOperand *mix =
        hlo::isControlFlow(&op) && isInLoop(&op) ? findNestedMix(&op) : nullptr;
    Region *region = mix ? mix->get().getParentRegion() : nullptr;
    auto loop = mix ? dyn_cast<hlo::WhileOp>(region->getParentOp()) : nullptr;
    if (!loop || region != &loop.getBody())
      continue;
    Block &body = region->front();
    llvm::SetVector<Operation *> waiting;
    SmallVector<Operation *> old;
    region->walk([&](Operation *inner) {
      old.push_back(inner);
      for (OpOperand &operand : inner->getOpOperands())
        if (operand.get().getParentRegion() == region && isMix(operand))
          waiting.insert(body.findAncestorOpInBlock(*inner));
    });
    // Of parts, a stack can hold those of sums alone: it would wait for others
    // itself, and be divided for ever.
    auto mayKeep = [&](Value value) {
      AxisState state = getState(value);
      return !state.isCut() || state == AxisState::partial(Reduction::Sum);
    };
    hlo::WhileOp behind = divideLoop(loop, waiting, mayKeep);
    // Those behind may be gradients of what is computed whole then.
    if (!behind)
      return false;
    for (Operation *gone : old)
      wholeOps.erase(gone);
    meetings.erase(&op);
    statistics.erase(&op);
    behind->walk([&](Operation *inner) { wholeOps.insert(inner); });
    return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Whether what an operand needs of all moments are gradients, or parameters
/// that have been updated: a forward may wait for those.
bool TimeAxis::waitsForUpdate(OpOperand &operand) const {
  llvm::SetVector<Value> values;
  values.insert(operand.get());
  for (unsigned i = 0; i < values.size(); ++i) {
    Operation *producer = values[i].getDefiningOp();
    if (!producer)
      continue;
    if (phaseOf(producer) != Phase::Forward)
      return true;
    bool isInLoop = getLoop(producer).has_value();
    if (isInLoop || turns.lookup(producer) > 0)
      values.insert_range(
          llvm::make_filter_range(getReads(producer), [&](Value read) {
            return !isInLoop || getState(read).isPartial();
          }));
  }
  return false;
}

/// Whether an operand would have to wait for the other moments.
bool TimeAxis::isMix(OpOperand &operand) const {
  AxisState state = getState(operand.get());
  AxisState required = getRequired(operand);
  return !required.isFree() && state != required && !state.isFree() &&
         !state.isReplicated();
}

/// Inside of loops and branches nothing can wait for the other moments: an
/// operand for which it would have to, or null.
OpOperand *TimeAxis::findNestedMix(Operation *op) const {
  OpOperand *mix = nullptr;
  op->walk([&](Operation *inner) {
    if (inner == op)
      return WalkResult::advance();
    for (OpOperand &operand : inner->getOpOperands()) {
      bool isInside =
          op->isAncestor(operand.get().getParentRegion()->getParentOp());
      if (isInside && isMix(operand)) {
        mix = &operand;
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return mix;
}

TimeAxis::Waiting TimeAxis::findWaiting(Operation *op) {
  Waiting waiting;
  bool inLoop = isInLoop(op);
  op->walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands()) {
      Operation *producer = operand.get().getDefiningOp();
      if (!producer || producer->getBlock() != &main.front())
        continue;
      std::optional<unsigned> loop = getLoop(producer);
      unsigned least = loop ? *loop : turns.lookup(producer);
      bool waits = !loop || !inLoop || needsWhole(operand);
      if (loop && waits)
        ++least;
      if (waits && least > 0)
        waiting.operands.push_back(&operand);
      waiting.turn = std::max(waiting.turn, least);
    }
  });
  return waiting;
}

/// Whether it is cheap, and neither samples nor other loops go into it.
bool TimeAxis::needsNoLoop(Operation *op) const {
  bool isCheap = op->hasTrait<OpTrait::ConstantLike>() ||
                 op->hasTrait<OpTrait::Elementwise>() ||
                 isa<hlo::IotaOp, hlo::BroadcastInDimOp, hlo::ReshapeOp,
                     hlo::TransposeOp, hlo::SelectOp>(op);
  return isCheap && llvm::all_of(op->getOperands(), [&](Value operand) {
           Operation *producer = operand.getDefiningOp();
           return producer &&
                  (!getLoop(producer) || freeOps.contains(producer));
         });
}

/// Gives each operation the first loop, or place between loops, where what it
/// needs is there. Those that need all samples where no moment can wait for the
/// others come behind the loop; returns what they need so.
SmallVector<OpOperand *> TimeAxis::assignLoops() {
  SmallVector<OpOperand *> mixes;
  loopOf.clear();
  turns.clear();
  freeOps.clear();
  loops = 0;
  for (Operation &op : main.front().without_terminator()) {
    bool inLoop = isInLoop(&op);
    Waiting waiting = findWaiting(&op);
    OpOperand *mix = inLoop ? findNestedMix(&op) : nullptr;
    if (inLoop && !mix && phaseOf(&op) == Phase::Forward &&
        !statistics.contains(&op)) {
      auto *it = llvm::find_if_not(waiting.operands, [&](OpOperand *operand) {
        return waitsForUpdate(*operand);
      });
      mix = it == waiting.operands.end() ? nullptr : *it;
    }
    if (mix)
      mixes.push_back(mix);
    if (!inLoop || mix) {
      turns[&op] = waiting.turn;
      continue;
    }
    loopOf[&op] = waiting.turn;
    if (needsNoLoop(&op))
      freeOps.insert(&op);
    loops = std::max(loops, waiting.turn + 1);
  }
  return mixes;
}

} // namespace whale
