//===- RankClassLoops.cpp - Micro-batches of a rank class -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: loops over micro-batches, with the order of this rank's stage. Out: in
// the schedule of the rank class calls of segments, collectives between them,
// and the sums and values that leave the loop.
//
// The part of RankClassBuilder that writes segments and loops over
// micro-batches: opens and closes segments, calls them, and writes or repeats
// the turns of each moment.
//
// A sum over moments is carried from call to call: a segment takes the sum so
// far as an operand and adds the term that is there by then. Where a sum is
// reduced over devices behind the loop, segments end behind about every bucket
// of such terms, in about 8 parts at most, so that the first reductions can
// begin before the last terms are there.
//
// Cost: a turn that is written looks, after each of its operations, at all sums
// of the loop: operations times sums. A turn that is repeated is first compared
// with those of its kind that are known, by the state of the values that they
// have seen; then it costs its calls with their operands. At the end of a loop
// all that each moment yields is looked at.
//
//===----------------------------------------------------------------------===//

#include "RankClassBuilder.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Placement/Resolver.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Sharding/Reducers.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Placed/GradientCuts.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

void RankClassBuilder::openSegment(Location loc) {
  if (open)
    return;
  open.emplace(loc, builder.getContext());
  builder.setInsertionPointToEnd(open->getBody());
}

void RankClassBuilder::closeSegment() {
  if (!open)
    return;
  builder.setInsertionPointToEnd(&schedule.front());
  const Segment *segment = turns.add(open->close());
  open.reset();
  call(*segment, *loop);
  if (turn)
    turn->parts.push_back({.segment = segment});
}

/// What differs between the ranks of a class is made once, in its schedule.
Value RankClassBuilder::getOffset(ShardOffsetOp op) {
  Value &local = offsets[{op.getPlacementAttr().getAsOpaquePointer(),
                          op.getDim(), op.getType().getAsOpaquePointer()}];
  if (!local) {
    OpBuilder start = OpBuilder::atBlockBegin(&schedule.front());
    local = start.clone(*op)->getResult(0);
  }
  return local;
}

/// The sum so far: at first, what a term is added to without a change.
Value RankClassBuilder::getSum(LoopState &loop, unsigned i) {
  Value &sum = loop.sums[i];
  if (sum)
    return sum;
  MicroBatchesOp op = loop.op;
  auto type = cast<RankedTensorType>(getLocalTypeOrAbsent(op.getResult(i)));
  auto kind = cast<ReductionAttr>(op.getReductions()[i]).getValue();
  Value term = lookThroughTaskGraph(op.getYield(0)->getOperand(i));
  // What nobody adds to, such as a row of a table's gradient, stays as it is.
  Attribute identity = kind == Reduction::Sum && isNeverMinusZero(term)
                           ? getIdentity(kind, type.getElementType())
                           : getExactIdentity(kind, type.getElementType());
  sum = hlo::ConstantOp::create(builder, op.getLoc(),
                                DenseElementsAttr::get(type, identity));
  return sum;
}

void RankClassBuilder::call(const Segment &segment, LoopState &loop) {
  auto get = [&](const SegmentInput &input) {
    if (input.value)
      return find(input.value);
    return input.reduced ? getSum(loop, *input.reduced)
                         : getOffset(input.offset);
  };
  func::CallOp call;
  if (func::FuncOp callee = segment.getFunction()) {
    SmallVector<Value> operands = llvm::map_to_vector(segment.inputs, get);
    call = func::CallOp::create(builder, callee.getLoc(), callee, operands);
    call->setAttr(kMomentAttr, builder.getI64IntegerAttr(momentNumber));
    auto [it, isNew] = numbers.try_emplace(&segment, segments.size());
    if (isNew)
      segments.emplace_back(&segment);
    segments[it->second].calls.push_back(call);
  }
  for (const SegmentOutput &output : segment.outputs) {
    // A moment without a term leaves the sum as it is.
    if (output.reduced && output.kind == SegmentOutput::Input &&
        output.input.reduced == output.reduced)
      continue;
    Value local;
    if (output.kind == SegmentOutput::Result)
      local = call.getResult(output.result);
    else if (output.kind == SegmentOutput::Input)
      local = get(output.input);
    else
      local = builder.clone(*output.constant)->getResult(0);
    if (output.value)
      map(output.value, local);
    else
      loop.sums[*output.reduced] = local;
  }
}

//===----------------------------------------------------------------------===//
// Loops over micro-batches
//===----------------------------------------------------------------------===//

/// Whether nobody but the sum needs the term of a moment.
static bool isUsedOnce(MicroBatchesOp op, int64_t m, unsigned number) {
  Value term = op.getYield(m)->getOperand(number);
  return term.hasOneUse() && lookThroughTaskGraph(term).hasOneUse();
}

/// Adds updates to the sum itself: a table's gradient is added to without a
/// table of zeros, and without a pass over both.
static Value scatterInto(Value sum, Value updates) {
  updates.getDefiningOp<hlo::ScatterOp>().getInputsMutable().assign(sum);
  return updates;
}

/// Adds what a moment has yielded by now to the sums.
void RankClassBuilder::reduce(LoopState &loop, int64_t m) {
  MicroBatchesOp op = loop.op;
  auto isThere = [&](Value value) {
    return (open && open->contains(value)) || find(value);
  };
  for (unsigned i = 0; i < op.getNumReduced(); ++i) {
    if (loop.isReduced[m][i])
      continue;
    Value yielded = op.getYield(m)->getOperand(i);
    // Of a task graph that is not over yet.
    if (!isThere(yielded))
      yielded = lookThroughTaskGraph(yielded);
    if (!isThere(yielded))
      continue;
    loop.isReduced[m].set(i);
    openSegment(yielded.getLoc());
    auto kind = cast<ReductionAttr>(op.getReductions()[i]).getValue();
    auto type = cast<RankedTensorType>(getLocalTypeOrAbsent(op.getResult(i)));
    Value term = adapt(lookup(yielded), type);
    Value sum = open->addInput({.reduced = i}, type);
    // What another segment has made is an argument of this one, without a line.
    Location loc =
        isa<BlockArgument>(term) ? getProducerLoc(yielded) : term.getLoc();
    open->addSum(i, isUsedOnce(op, m, i) && isSumOfUpdates(term)
                        ? scatterInto(sum, term)
                        : emitCombination(builder, loc, kind, sum, term));
  }
}

/// A reduction over devices behind the loop can begin when the segment that
/// makes its last term is over. So one that makes many of them ends several
/// times, in each moment.
void RankClassBuilder::findCuts(LoopState &loop) {
  MicroBatchesOp op = loop.op;
  auto isExchanged = [&](Value sum) {
    return llvm::any_of(sum.getUsers(), [&](Operation *user) {
      return isa<ReshardOp>(user) && communicates(user);
    });
  };
  auto bytesOfTerm = [&](TaskGraphOp, OpResult sum) -> int64_t {
    return holds(sum) && isExchanged(sum)
               ? getTensorBytes(getLocalTypeOrAbsent(sum))
               : 0;
  };
  for (Region &body : op.getBodies())
    for (const auto &[graph, cuts] :
         findGradientCuts(op, body.front().getTerminator(), bytesOfTerm))
      loop.cuts.insert_range(cuts);
}

/// Whether all that the turn depends on is as it was before the turn.
bool RankClassBuilder::fits(const Turn &turn, const LoopState &loop,
                            int64_t m) const {
  return turn.isReduced == loop.isReduced[m] &&
         llvm::all_of(turn.seen, [&](const auto &entry) {
           return getState(entry.first) == entry.second;
         });
}

LogicalResult RankClassBuilder::visitTurn(LoopState &loop,
                                          ArrayRef<Operation *> ops,
                                          int64_t m) {
  moment = &loop.moments[m];
  momentNumber = m;
  TurnKind &kind = turns.getKind(loop.op, ops);
  TurnVariant *&variant = loop.variants[&kind];
  if (!variant)
    variant = &kind.getVariant(device);
  std::unique_lock lock(variant->mutex);
  for (const std::unique_ptr<const Turn> &known : variant->turns)
    if (fits(*known, loop, m)) {
      const Turn &same = *known;
      lock.unlock();
      return repeat(loop, same, m);
    }
  auto written = std::make_unique<Turn>();
  written->isReduced = loop.isReduced[m];
  turn = written.get();
  made.clear();
  LogicalResult result = write(loop, ops, m);
  turn = nullptr;
  if (succeeded(result))
    variant->turns.push_back(std::move(written));
  return result;
}

LogicalResult RankClassBuilder::write(LoopState &loop,
                                      ArrayRef<Operation *> ops, int64_t m) {
  for (Operation *op : ops) {
    if (failed(visit(op)))
      return failure();
    reduce(loop, m);
  }
  closeSegment();
  return success();
}

LogicalResult RankClassBuilder::repeat(LoopState &loop, const Turn &turn,
                                       int64_t m) {
  for (const TurnPart &part : turn.parts) {
    if (part.segment) {
      call(*part.segment, loop);
      for (const SegmentOutput &output : part.segment->outputs)
        if (output.reduced)
          loop.isReduced[m].set(*output.reduced);
    } else if (part.op) {
      if (failed(visit(part.op)))
        return failure();
    } else {
      map(part.result, find(part.yielded));
    }
  }
  return success();
}

/// Writes the moments in the order of this rank's stage.
LogicalResult RankClassBuilder::visitMicroBatches(MicroBatchesOp op) {
  LoopState state(op);
  loop = &state;
  findCuts(state);
  for (int64_t m = 0; m < op.getNumMoments(); ++m)
    for (BlockArgument argument : op.getBody(m).getArguments())
      if (Value local =
              values.lookup(op.getSlice(argument.getArgNumber(), m).get())) {
        state.moments[m][argument] = local;
        state.pieces.insert(local);
      }
  auto isExchange = [&](ReshardOp reshard) {
    return llvm::any_of(reshards.at(reshard).steps, [](const Step &step) {
      return step.kind != StepKind::LocalSlice;
    });
  };
  SmallVector<MomentItem> items = orders.at(op).itemsOf(device, isExchange);
  for (ArrayRef<MomentItem> rest = items; !rest.empty();) {
    int64_t m = rest.front().moment;
    auto turnItems = rest.take_while(
        [&](const MomentItem &item) { return item.moment == m; });
    rest = rest.drop_front(turnItems.size());
    auto ops = llvm::map_to_vector(
        turnItems, [](const MomentItem &item) { return item.op; });
    if (failed(visitTurn(state, ops, m)))
      return failure();
  }
  // Moments share bodies: what this device holds of each is found once.
  llvm::DenseMap<Operation *, SmallVector<OpOperand *>> held;
  for (Region &body : op.getBodies())
    for (OpOperand &operand : body.front().getTerminator()->getOpOperands())
      if (holds(operand.get()))
        held[operand.getOwner()].push_back(&operand);
  for (int64_t m = 0; m < op.getNumMoments(); ++m) {
    moment = &state.moments[m];
    momentNumber = m;
    for (OpOperand *operand : held[op.getYield(m)]) {
      unsigned index = operand->getOperandNumber();
      bool isDone = index < op.getNumReduced() && state.isReduced[m][index];
      if (!isDone && !getOperand(*operand))
        return failure();
    }
    reduce(state, m);
    closeSegment();
  }
  for (OpResult result : op->getResults()) {
    auto [index, m] = op.getYielded(result.getResultNumber());
    Value local = state.sums.size() > index && !m ? state.sums[index] : Value();
    if (m) {
      moment = &state.moments[*m];
      local = find(op.getYield(*m)->getOperand(index));
    }
    moment = nullptr;
    // None of the terms is this device's.
    if (!m && !local && holds(result)) {
      auto type = cast<RankedTensorType>(getLocalTypeOrAbsent(result));
      auto kind = cast<ReductionAttr>(op.getReductions()[index]).getValue();
      local = hlo::ConstantOp::create(
          builder, op.getLoc(),
          DenseElementsAttr::get(type,
                                 getIdentity(kind, type.getElementType())));
    }
    if (local)
      map(result, local);
  }
  moment = nullptr;
  loop = nullptr;
  return success();
}

} // namespace whale
