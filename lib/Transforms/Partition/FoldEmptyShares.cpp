//===- FoldEmptyShares.cpp - whale-fold-empty-shares ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A rank that has no samples of a micro-batch computes with empty tensors, and
// its term of every gradient is zero. Zeros that are known to be so need no
// room, no time, and no code.
//
//===----------------------------------------------------------------------===//

#include "FoldEmptyShares.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Threading.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Sharding/Reducers.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_FOLDEMPTYSHARES
#include "whale/Transforms/Partition/Passes.h.inc"

namespace {

bool isEmpty(Value value) {
  return cast<ShapedType>(value.getType()).getNumElements() == 0;
}

/// Whether zero stays zero when it is multiplied with the value, or divided by
/// it: a number other than 0, infinity or NaN.
bool isScale(Value value) {
  DenseFPElementsAttr numbers;
  if (!matchPattern(value, m_Constant(&numbers)) || !numbers.isSplat())
    return false;
  return numbers.getSplatValue<APFloat>().isFiniteNonZero();
}

class Folder {
public:
  void run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      if (op.getNumResults() == 1 && isPure(&op) && !isEmpty(op.getResult(0)))
        fold(&op);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

private:
  bool isNothing(Value value) const { return nothing.contains(value); }

  void fold(Operation *op) {
    if (isSumOfNothing(op))
      replaceByZero(op);
    else if (Value same = findOnlyTerm(op))
      op->getResult(0).replaceAllUsesWith(same);
  }

  /// Whether the result is zero because nothing is added up, here or before.
  bool isSumOfNothing(Operation *op) const {
    if (isa<hlo::DotGeneralOp, hlo::ConvolutionOp>(op))
      return llvm::any_of(op->getOperands(), isEmpty);
    if (isa<hlo::ReduceOp>(op))
      return isEmpty(op->getOperand(0)) && isZero(op->getOperand(1)) &&
             getReductionKind(op->getRegion(0)) == Reduction::Sum;
    if (auto scatter = dyn_cast<hlo::ScatterOp>(op))
      return isEmpty(scatter.getUpdates().front()) &&
             isZero(scatter.getInputs().front());
    if (isa<hlo::MulOp>(op))
      return (isNothing(op->getOperand(0)) && isScale(op->getOperand(1))) ||
             (isNothing(op->getOperand(1)) && isScale(op->getOperand(0)));
    if (isa<hlo::DivOp>(op))
      return isNothing(op->getOperand(0)) && isScale(op->getOperand(1));
    if (isa<hlo::TransposeOp, hlo::ReshapeOp, hlo::BroadcastInDimOp,
            hlo::SliceOp, hlo::ConvertOp, hlo::NegOp>(op))
      return isNothing(op->getOperand(0));
    if (isa<hlo::AddOp, hlo::SubtractOp>(op)) {
      Value left = op->getOperand(0), right = op->getOperand(1);
      return (isNothing(left) && (isNothing(right) || isZero(right))) ||
             (isNothing(right) && isZero(left));
    }
    return false;
  }

  /// The value that the result is, if all that is added to it is nothing.
  Value findOnlyTerm(Operation *op) const {
    if (auto scatter = dyn_cast<hlo::ScatterOp>(op))
      return isEmpty(scatter.getUpdates().front()) ? scatter.getInputs().front()
                                                   : Value();
    if (!isa<hlo::AddOp, hlo::SubtractOp>(op))
      return {};
    Value left = op->getOperand(0), right = op->getOperand(1);
    if (isNothing(right))
      return left;
    return isa<hlo::AddOp>(op) && isNothing(left) ? right : Value();
  }

  void replaceByZero(Operation *op) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Attribute value = getIdentity(Reduction::Sum, type.getElementType());
    OpBuilder builder(op);
    auto zero = hlo::ConstantOp::create(builder, op->getLoc(),
                                        DenseElementsAttr::get(type, value));
    nothing.insert(zero);
    op->getResult(0).replaceAllUsesWith(zero);
  }

  /// Zeros that stand for the sum of no terms.
  llvm::DenseSet<Value> nothing;
};

} // namespace

void foldEmptyShares(Block &block) { Folder().run(block); }

namespace {

struct FoldEmptyShares : impl::FoldEmptySharesBase<FoldEmptyShares> {
  void runOnOperation() override {
    SmallVector<ScheduleOp> classes = getRankClasses(getOperation());
    parallelForEach(&getContext(), classes, [](ScheduleOp schedule) {
      foldEmptyShares(schedule.front());
    });
  }
};

} // namespace
} // namespace whale
