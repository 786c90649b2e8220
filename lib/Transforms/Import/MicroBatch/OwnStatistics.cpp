//===- OwnStatistics.cpp - Statistics of each micro-batch -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a step in whose forward pass layers follow on statistics of the
// mini-batch, as on those of a batch norm, and batch_norm = "micro" in
// whale.config. Out: the same step with statistics of each micro-batch.
//
// A sum over samples [N, ...] becomes one over [M, N/M, ...], times M, since
// the program divides by N. All that is computed of it has the leading
// dimension M then, up to where it is spread over the samples again; in the
// backward pass, too, where the sums are the gradients of the statistics. What
// leaves for the optimizer or the caller is the mean over the micro-batches.
// The outcome is a program like any other, which the axis of time can cut.
// Cost: linear in the operations of @main.
//
//===----------------------------------------------------------------------===//

#include "../CarryAttributes.h"
#include "TimeAxis.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Sharding/Reducers.h"
#include "whale/Transforms/Attributes.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
namespace {

bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() || isa<hlo::SelectOp>(op);
}

SmallVector<int64_t> shift(ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims, [](int64_t dim) { return dim + 1; });
}

/// Statistics with a leading dimension for the micro-batches.
class Lifting {
public:
  Lifting(int64_t moments, llvm::function_ref<bool(Value)> dependsOnSamples,
          llvm::function_ref<bool(Value)> isOfSamples,
          llvm::function_ref<bool(Operation *)> mayBeOwn)
      : moments(moments), dependsOnSamples(dependsOnSamples),
        isOfSamples(isOfSamples), mayBeOwn(mayBeOwn) {}

  /// Whether a value is computed of sums over samples, by operations that have
  /// a form for all micro-batches at once. What the backward pass computes of
  /// the forward's statistics needs those that were lifted there.
  bool canLift(Value value, Phase phase);

  Value lift(Value value);

  /// What the operation makes of the statistics of each micro-batch.
  Value spread(hlo::BroadcastInDimOp op);

  Value lookup(Value value) const { return lifted.lookup(value); }

  /// The mean over the micro-batches of what was lifted.
  Value getMean(Value value);

private:
  bool isSum(Operation *op) const;
  Value group(OpBuilder &builder, Value samples) const;
  RankedTensorType liftType(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape{moments};
    llvm::append_range(shape, type.getShape());
    return type.clone(shape);
  }
  static Value scale(OpBuilder &builder, Value value, double factor) {
    auto type = cast<RankedTensorType>(value.getType());
    Attribute number = builder.getFloatAttr(type.getElementType(), factor);
    Value factors = hlo::ConstantOp::create(
        builder, value.getLoc(), DenseElementsAttr::get(type, number));
    return hlo::MulOp::create(builder, value.getLoc(), value, factors);
  }

  int64_t moments;
  llvm::function_ref<bool(Value)> dependsOnSamples, isOfSamples;
  llvm::function_ref<bool(Operation *)> mayBeOwn;
  llvm::DenseMap<Value, Value> lifted, means;
  llvm::DenseMap<std::pair<Value, unsigned>, bool> known;
};

bool Lifting::isSum(Operation *op) const {
  auto reduce = dyn_cast<hlo::ReduceOp>(op);
  return reduce && reduce.getInputs().size() == 1 &&
         isOfSamples(reduce.getInputs().front()) &&
         llvm::is_contained(reduce.getDimensions(), 0) &&
         getReductionKind(reduce.getBody()) == Reduction::Sum &&
         isa<FloatType>(getElementTypeOrSelf(reduce.getResult(0))) &&
         isZero(reduce.getInitValues().front());
}

bool Lifting::canLift(Value value, Phase phase) {
  if (!dependsOnSamples(value) || lifted.contains(value))
    return true;
  auto [it, isNew] = known.try_emplace({value, unsigned(phase)}, false);
  if (!isNew)
    return it->second;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1 || isOfSamples(value))
    return false;
  bool result;
  if (isSum(op)) {
    result = phaseOf(op) == phase && mayBeOwn(op);
  } else {
    auto reduce = dyn_cast<hlo::ReduceOp>(op);
    bool hasForm = isElementwise(op) ||
                   isa<hlo::BroadcastInDimOp, hlo::ReshapeOp>(op) ||
                   (reduce && reduce.getInputs().size() == 1);
    result = hasForm && llvm::all_of(op->getOperands(), [&](Value operand) {
               return canLift(operand, phase);
             });
  }
  return known[{value, unsigned(phase)}] = result;
}

/// Samples [N, ...] as [M, N/M, ...].
Value Lifting::group(OpBuilder &builder, Value samples) const {
  auto type = cast<RankedTensorType>(samples.getType());
  SmallVector<int64_t> shape{moments, type.getDimSize(0) / moments};
  llvm::append_range(shape, type.getShape().drop_front());
  return hlo::ReshapeOp::create(builder, samples.getLoc(), type.clone(shape),
                                samples);
}

Value Lifting::lift(Value value) {
  if (Value own = lifted.lookup(value))
    return own;
  Operation *op = value.getDefiningOp();
  CarryAttributes carry;
  OpBuilder builder(value.getContext(), &carry);
  builder.setInsertionPointAfterValue(value);
  Value own;
  if (!dependsOnSamples(value)) {
    int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
    own = hlo::BroadcastInDimOp::create(
        builder, value.getLoc(), liftType(value), value,
        builder.getDenseI64ArrayAttr(
            llvm::to_vector(llvm::seq<int64_t>(1, rank + 1))));
  } else {
    auto reduce = dyn_cast<hlo::ReduceOp>(op);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      auto type = cast<RankedTensorType>(operand.getType());
      bool isShared = (reduce && operand == reduce.getInitValues().front()) ||
                      (isa<hlo::SelectOp>(op) && type.getRank() == 0 &&
                       !dependsOnSamples(operand));
      operands.push_back(isShared    ? operand
                         : isSum(op) ? group(builder, operand)
                                     : lift(operand));
    }
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    own = copy->getResult(0);
    own.setType(liftType(value));
    if (auto sum = dyn_cast<hlo::ReduceOp>(copy))
      sum.setDimensions(shift(sum.getDimensions()));
    if (auto spread = dyn_cast<hlo::BroadcastInDimOp>(copy)) {
      SmallVector<int64_t> dims{0};
      llvm::append_range(dims, shift(spread.getBroadcastDimensions()));
      spread.setBroadcastDimensions(dims);
    }
    if (isSum(op))
      own = scale(builder, own, double(moments));
  }
  carry.carryFrom(op ? op : *value.getUsers().begin());
  return lifted[value] = own;
}

Value Lifting::spread(hlo::BroadcastInDimOp op) {
  Value own = lift(op.getOperand());
  CarryAttributes carry;
  OpBuilder builder(op.getContext(), &carry);
  builder.setInsertionPoint(op);
  SmallVector<int64_t> shape{moments, op.getType().getDimSize(0) / moments};
  llvm::append_range(shape, op.getType().getShape().drop_front());
  SmallVector<int64_t> dims{0};
  llvm::append_range(dims, shift(op.getBroadcastDimensions()));
  Value all = hlo::BroadcastInDimOp::create(builder, op.getLoc(),
                                            op.getType().clone(shape), own,
                                            builder.getDenseI64ArrayAttr(dims));
  Value samples =
      hlo::ReshapeOp::create(builder, op.getLoc(), op.getType(), all);
  carry.carryFrom(op);
  return samples;
}

Value Lifting::getMean(Value value) {
  if (Value mean = means.lookup(value))
    return mean;
  Value own = lifted.lookup(value);
  auto type = cast<RankedTensorType>(value.getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  CarryAttributes carry;
  OpBuilder builder(value.getContext(), &carry);
  builder.setInsertionPointAfterValue(own);
  Location loc = value.getLoc();
  Value zero = hlo::ConstantOp::create(
      builder, loc, cast<DenseElementsAttr>(builder.getZeroAttr(scalar)));
  auto sum =
      hlo::ReduceOp::create(builder, loc, TypeRange{type}, ValueRange{own},
                            ValueRange{zero}, builder.getDenseI64ArrayAttr(0));
  {
    OpBuilder::InsertionGuard guard(builder);
    Block *block =
        builder.createBlock(&sum.getBody(), {}, {scalar, scalar}, {loc, loc});
    Value added = hlo::AddOp::create(builder, loc, block->getArgument(0),
                                     block->getArgument(1));
    hlo::ReturnOp::create(builder, loc, added);
  }
  Value mean = scale(builder, sum.getResult(0), 1.0 / double(moments));
  carry.carryFrom(value.getDefiningOp());
  return means[value] = mean;
}

/// Whether an operation of the optimizer, or one that just collects results,
/// takes a statistic as it leaves the step.
bool takesMean(Operation *op) {
  return phaseOf(op) == Phase::Apply ||
         isa<func::ReturnOp, hlo::ConcatenateOp, hlo::TransposeOp, hlo::SliceOp,
             hlo::PadOp, hlo::DynamicUpdateSliceOp>(op);
}

} // namespace

FailureOr<bool> TimeAxis::takeOwnStatistics() {
  SmallVector<Operation *> ops =
      llvm::map_to_vector(main.front(), [](Operation &op) { return &op; });
  // What depends on samples, and what is behind a layer: in the forward pass
  // those before which one comes, in the backward pass those behind one.
  llvm::DenseSet<Value> ofSamples;
  llvm::DenseSet<Operation *> hasLayer;
  for (BlockArgument argument : main.getArguments())
    if (getState(argument).isCut())
      ofSamples.insert(argument);
  auto isLayer = [&](Operation *op) {
    return isInLoop(op) && usesParameters(op);
  };
  for (Operation *op : ops) {
    llvm::SetVector<Value> reads = getReads(op);
    if (llvm::any_of(reads, [&](Value v) { return ofSamples.contains(v); }))
      ofSamples.insert_range(op->getResults());
    if (phaseOf(op) == Phase::Backward &&
        (isLayer(op) || llvm::any_of(reads, [&](Value v) {
           return v.getDefiningOp() && hasLayer.contains(v.getDefiningOp()) &&
                  phaseOf(v.getDefiningOp()) == Phase::Backward;
         })))
      hasLayer.insert(op);
  }
  for (Operation *op : llvm::reverse(ops))
    if (phaseOf(op) == Phase::Forward)
      for (Operation *user : op->getUsers()) {
        user = main.front().findAncestorOpInBlock(*user);
        if (phaseOf(user) == Phase::Forward &&
            (isLayer(user) || hasLayer.contains(user)))
          hasLayer.insert(op);
      }

  auto isCutThere = [&](const AxisState &state, Value value) {
    return state.isSplit() && state.piece.dim == 0 &&
           state.piece.extent * state.piece.minor ==
               cast<RankedTensorType>(value.getType()).getDimSize(0);
  };
  auto dependsOnSamples = [&](Value value) {
    return ofSamples.contains(value);
  };
  // What was a statistic of all samples for each of them.
  llvm::DenseSet<Value> ownValues;
  auto isOfSamples = [&](Value value) {
    return ownValues.contains(value) ||
           (ofSamples.contains(value) && isCutThere(getState(value), value));
  };
  // Not what is computed once for the whole mini-batch, as of arguments alone.
  auto mayBeOwn = [&](Operation *op) {
    return !wholeOps.contains(op) &&
           (phaseOf(op) == Phase::Forward || hasLayer.contains(op));
  };
  Lifting lifting(moments, dependsOnSamples, isOfSamples, mayBeOwn);

  // Spreads a statistic of each micro-batch over its samples, if it is one.
  llvm::DenseSet<Operation *> spreads;
  auto spreadOwn = [&](Operation *op, bool isOwn) -> LogicalResult {
    auto spread = dyn_cast<hlo::BroadcastInDimOp>(op);
    if (!spread || !ofSamples.contains(spread) ||
        spread.getType().getRank() == 0 || spreads.contains(op))
      return success();
    int64_t samples = spread.getType().getDimSize(0);
    ArrayRef<int64_t> dims = spread.getBroadcastDimensions();
    const auto *dim = llvm::find(dims, 0);
    bool grows = dim == dims.end() || spread.getOperand().getType().getDimSize(
                                          dim - dims.begin()) < samples;
    bool isCut = isCutThere(getState(spread), spread) ||
                 llvm::any_of(spread->getUses(), [&](OpOperand &use) {
                   return isCutThere(getRequired(use), spread);
                 });
    if (!grows || !isCut || !(isOwn || lifting.lookup(spread.getOperand())) ||
        !lifting.canLift(spread.getOperand(), phaseOf(op)))
      return success();
    if (samples % moments != 0)
      return op->emitError("batch_norm: 'micro' takes micro-batches of one "
                           "size, and ")
             << moments << " of them don't divide " << samples
             << " samples; use a number of micro-batches that does";
    Value own = lifting.spread(spread);
    ofSamples.insert(own);
    ownValues.insert(own);
    spread.replaceAllUsesWith(own);
    spreads.insert(spread);
    return success();
  };
  for (Operation *op : ops)
    if (failed(spreadOwn(op, phaseOf(op) == Phase::Backward ||
                                 hasLayer.contains(op))))
      return failure();

  // What else is computed of these statistics.
  for (Operation *op : ops) {
    bool isOwn = op->getNumResults() == 1 && lifting.lookup(op->getResult(0));
    for (OpOperand &operand : op->getOpOperands()) {
      if (isOwn || spreads.contains(op) || !ofSamples.contains(operand.get()) ||
          !lifting.lookup(operand.get()))
        continue;
      if (failed(spreadOwn(op, /*isOwn=*/true)))
        return failure();
      if (spreads.contains(op))
        break;
      if (op->getNumResults() == 1 && phaseOf(op) != Phase::Apply &&
          lifting.canLift(op->getResult(0), phaseOf(op))) {
        lifting.lift(op->getResult(0));
        break;
      }
      if (!takesMean(op))
        return op->emitError("batch_norm: 'micro' can't compute this of the "
                             "statistics of each micro-batch; use one "
                             "micro-batch, or sums and elementwise operations");
      operand.set(lifting.getMean(operand.get()));
    }
  }
  return !spreads.empty();
}

} // namespace whale
