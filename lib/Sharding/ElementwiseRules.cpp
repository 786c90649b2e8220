//===- ElementwiseRules.cpp - Sharding rules, element by element ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpRuleBuilder.h"
#include "whale/Dialect/Shardy/IR/ShardyOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/LocalShapes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// Every dimension of the result is a factor; operands of its shape share it,
/// scalar operands (the predicate of a select, the bounds of a clamp) have
/// none.
static OpRule elementwise(Operation *op,
                          ArrayRef<SmallVector<unsigned>> linear = {}) {
  OpRuleBuilder builder(op);
  for (int64_t dim = 0; dim < builder.rank(resultRef(0)); ++dim) {
    SmallVector<std::pair<TensorRef, unsigned>> places;
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      places.push_back({resultRef(i), dim});
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (builder.rank(operandRef(i)) != 0)
        places.push_back({operandRef(i), dim});
    builder.same(places);
  }
  for (const SmallVector<unsigned> &operands : linear)
    builder.linear(operands);
  return builder.take();
}

/// Sums survive a conversion only where it rounds nothing: between floats, to
/// at least the same precision and range. Sums of half precision are kept in a
/// wider type, and rounded to their own when they are complete: what widens
/// them, too, needs them rounded. Only in a loop, which can't wait for what
/// comes after it, those that have the range of the wider type stay sums.
static bool isExactFloatConversion(hlo::ConvertOp op) {
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(op.getOperand()));
  auto to = dyn_cast<FloatType>(getElementTypeOrSelf(op.getResult()));
  if (!from || !to)
    return false;
  bool isInLoop = op->getParentOfType<hlo::WhileOp>() != nullptr;
  if (getWideType(from) != from && (!isInLoop || hasSmallRange(from)))
    return false;
  const llvm::fltSemantics &narrow = from.getFloatSemantics();
  const llvm::fltSemantics &wide = to.getFloatSemantics();
  return llvm::APFloat::isRepresentableBy(narrow, wide);
}

std::optional<OpRule> getElementwiseRule(Operation *op) {
  bool isFloat =
      isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
  if (isa<hlo::AddOp, hlo::SubtractOp>(op))
    return elementwise(op, {{0, 1}});
  if (isa<hlo::NegOp, sdy::ShardingConstraintOp>(op))
    return elementwise(op, {{0}});
  if (isa<hlo::MulOp>(op))
    return elementwise(op, {{0}, {1}});
  if (isa<hlo::DivOp>(op))
    return isFloat ? elementwise(op, {{0}}) : elementwise(op);
  if (isa<hlo::SelectOp>(op))
    return elementwise(op, {{1, 2}});
  if (auto convert = dyn_cast<hlo::ConvertOp>(op))
    return isExactFloatConversion(convert) ? elementwise(op, {{0}})
                                           : elementwise(op);
  if (isa<hlo::AbsOp, hlo::AndOp, hlo::Atan2Op, hlo::CbrtOp, hlo::CeilOp,
          hlo::ClampOp, hlo::ClzOp, hlo::CompareOp, hlo::ComplexOp,
          hlo::CosineOp, hlo::ExpOp, hlo::Expm1Op, hlo::FloorOp, hlo::ImagOp,
          hlo::IsFiniteOp, hlo::Log1pOp, hlo::LogOp, hlo::LogisticOp,
          hlo::MaxOp, hlo::MinOp, hlo::NotOp, hlo::OrOp, hlo::PopulationCountOp,
          hlo::PowOp, hlo::RealOp, hlo::ReducePrecisionOp, hlo::RemOp,
          hlo::RoundNearestEvenOp, hlo::RoundOp, hlo::RsqrtOp, hlo::ShiftLeftOp,
          hlo::ShiftRightArithmeticOp, hlo::ShiftRightLogicalOp, hlo::SignOp,
          hlo::SineOp, hlo::SqrtOp, hlo::TanOp, hlo::TanhOp, hlo::XorOp>(op))
    return elementwise(op);
  // Of the same width; other widths change the rank.
  if (isa<hlo::BitcastConvertOp>(op) &&
      cast<ShapedType>(op->getOperand(0).getType()).getRank() ==
          cast<ShapedType>(op->getResult(0).getType()).getRank())
    return elementwise(op);
  return std::nullopt;
}

} // namespace whale
