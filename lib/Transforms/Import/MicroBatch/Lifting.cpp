//===- Lifting.cpp - Statistics of each micro-batch -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: values that are computed of sums over samples. Out: the same with a
// leading dimension for the micro-batches, and one value for all of these.
// Cost: linear in the operations that are lifted.
//
//===----------------------------------------------------------------------===//

#include "Lifting.h"

#include "../CarryAttributes.h"
#include "whale/Sharding/Reducers.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

static bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() || isa<hlo::SelectOp>(op);
}

static SmallVector<int64_t> shift(ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims, [](int64_t dim) { return dim + 1; });
}

static Value scale(OpBuilder &builder, Value value, double factor) {
  auto type = cast<RankedTensorType>(value.getType());
  Attribute number = builder.getFloatAttr(type.getElementType(), factor);
  Value factors = hlo::ConstantOp::create(builder, value.getLoc(),
                                          DenseElementsAttr::get(type, number));
  return hlo::MulOp::create(builder, value.getLoc(), value, factors);
}

RankedTensorType Lifting::liftType(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape{moments};
  llvm::append_range(shape, type.getShape());
  return type.clone(shape);
}

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

/// Whether it says that there is a NaN in a value.
static bool isNanCheck(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto reduce = dyn_cast_or_null<hlo::ReduceOp>(op))
    return reduce.getInputs().size() == 1 &&
           getReductionKind(reduce.getBody()) == Reduction::Or &&
           isNanCheck(reduce.getInputs().front());
  auto compare = dyn_cast_or_null<hlo::CompareOp>(op);
  return compare && compare.getLhs() == compare.getRhs() &&
         compare.getComparisonDirection() == hlo::ComparisonDirection::NE;
}

bool Lifting::canJoin(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value)) || isNanCheck(value);
}

Value Lifting::getJoined(Value value) {
  if (Value known = joined.lookup(value))
    return known;
  bool isMean = isa<FloatType>(getElementTypeOrSelf(value));
  Value own = lifted.lookup(value);
  auto type = cast<RankedTensorType>(value.getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  CarryAttributes carry;
  OpBuilder builder(value.getContext(), &carry);
  builder.setInsertionPointAfterValue(own);
  Location loc = value.getLoc();
  Value zero = hlo::ConstantOp::create(
      builder, loc, cast<DenseElementsAttr>(builder.getZeroAttr(scalar)));
  auto all =
      hlo::ReduceOp::create(builder, loc, TypeRange{type}, ValueRange{own},
                            ValueRange{zero}, builder.getDenseI64ArrayAttr(0));
  {
    OpBuilder::InsertionGuard guard(builder);
    Block *block =
        builder.createBlock(&all.getBody(), {}, {scalar, scalar}, {loc, loc});
    Value one = block->getArgument(0), other = block->getArgument(1);
    Value both = isMean
                     ? hlo::AddOp::create(builder, loc, one, other).getResult()
                     : hlo::OrOp::create(builder, loc, one, other).getResult();
    hlo::ReturnOp::create(builder, loc, both);
  }
  Value result = all.getResult(0);
  if (isMean)
    result = scale(builder, result, 1.0 / double(moments));
  carry.carryFrom(value.getDefiningOp());
  return joined[value] = result;
}

} // namespace whale
