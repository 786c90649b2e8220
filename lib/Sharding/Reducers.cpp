//===- Reducers.cpp - What a reduction's region computes -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the region of a reduction, or a value. Out: the reduction that it is, its
// identity, whether the value is that. A region counts only if it is one
// commutative operation on its two arguments; on truth values a sum is *or* and
// a product *and*; of complex numbers none counts. A value is known if it is a
// splat constant that was only broadcast, reshaped, transposed or sliced. Cost:
// constant for a region; for a value the number of such operations behind one
// another.
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/Reducers.h"
#include "mlir/IR/Matchers.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

std::optional<Reduction> getReductionKind(Region &body) {
  using Kind = std::optional<Reduction>;
  if (!body.hasOneBlock() || body.front().getOperations().size() != 2 ||
      body.front().getNumArguments() != 2)
    return std::nullopt;
  Operation *op = &body.front().front();
  Operation *terminator = body.front().getTerminator();
  Value lhs = body.getArgument(0), rhs = body.getArgument(1);
  if (op->getNumOperands() != 2 || terminator->getNumOperands() != 1 ||
      terminator->getOperand(0).getDefiningOp() != op)
    return std::nullopt;
  if (!(op->getOperand(0) == lhs && op->getOperand(1) == rhs) &&
      !(op->getOperand(0) == rhs && op->getOperand(1) == lhs))
    return std::nullopt;
  Type type = getElementTypeOrSelf(lhs.getType());
  if (isa<ComplexType>(type))
    return std::nullopt;
  bool isBool = type.isInteger(1);
  return llvm::TypeSwitch<Operation *, Kind>(op)
      .Case([&](hlo::AddOp) { return isBool ? Reduction::Or : Reduction::Sum; })
      .Case([&](hlo::MulOp) {
        return isBool ? Reduction::And : Reduction::Product;
      })
      .Case([](hlo::MaxOp) { return Reduction::Max; })
      .Case([](hlo::MinOp) { return Reduction::Min; })
      .Case([&](hlo::AndOp) { return Reduction::And; })
      .Case([&](hlo::OrOp) { return Reduction::Or; })
      .Default([](Operation *) { return std::nullopt; });
}

bool combinesTerms(Operation *op, Reduction kind) {
  return (isa<hlo::MinOp>(op) && kind == Reduction::Min) ||
         (isa<hlo::MaxOp>(op) && kind == Reduction::Max) ||
         (isa<hlo::AndOp>(op) && kind == Reduction::And) ||
         (isa<hlo::OrOp>(op) && kind == Reduction::Or);
}

/// The splat element of a constant, looking through operations that keep it.
static Attribute splatElement(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<hlo::BroadcastInDimOp, hlo::ReshapeOp, hlo::TransposeOp,
            hlo::SliceOp>(op)) {
      value = op->getOperand(0);
      continue;
    }
    DenseElementsAttr constant;
    if (matchPattern(op, m_Constant(&constant)) && constant.isSplat())
      return constant.getSplatValue<Attribute>();
    return {};
  }
  return {};
}

Value emitCombination(OpBuilder &builder, Location loc, Reduction kind, Value a,
                      Value b) {
  switch (kind) {
  case Reduction::Sum:
    return hlo::AddOp::create(builder, loc, a, b);
  case Reduction::Product:
    return hlo::MulOp::create(builder, loc, a, b);
  case Reduction::Min:
    return hlo::MinOp::create(builder, loc, a, b);
  case Reduction::Max:
    return hlo::MaxOp::create(builder, loc, a, b);
  case Reduction::And:
    return hlo::AndOp::create(builder, loc, a, b);
  case Reduction::Or:
    return hlo::OrOp::create(builder, loc, a, b);
  }
  llvm_unreachable("unknown reduction");
}

Attribute getIdentity(Reduction kind, Type element) {
  if (auto type = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    switch (kind) {
    case Reduction::Sum:
      return FloatAttr::get(type, APFloat::getZero(semantics));
    case Reduction::Product:
      return FloatAttr::get(type, APFloat::getOne(semantics));
    case Reduction::Max:
    case Reduction::Min:
      return FloatAttr::get(
          type, APFloat::semanticsHasInf(semantics)
                    ? APFloat::getInf(semantics, kind == Reduction::Max)
                    : APFloat::getLargest(semantics, kind == Reduction::Max));
    default:
      return {};
    }
  }
  if (auto type = dyn_cast<ComplexType>(element)) {
    Attribute imaginary = getIdentity(Reduction::Sum, type.getElementType());
    Attribute real = getIdentity(kind, type.getElementType());
    return ArrayAttr::get(element.getContext(), {real, imaginary});
  }
  auto type = cast<IntegerType>(element);
  unsigned width = type.getWidth();
  bool isSigned = !type.isUnsigned() && width != 1;
  auto get = [&](APInt number) { return IntegerAttr::get(type, number); };
  switch (kind) {
  case Reduction::Sum:
  case Reduction::Or:
    return get(APInt::getZero(width));
  case Reduction::Product:
    return get(APInt(width, 1));
  case Reduction::And:
    return get(APInt::getAllOnes(width));
  case Reduction::Max:
    return get(isSigned ? APInt::getSignedMinValue(width)
                        : APInt::getZero(width));
  case Reduction::Min:
    return get(isSigned ? APInt::getSignedMaxValue(width)
                        : APInt::getAllOnes(width));
  }
  llvm_unreachable("unknown reduction");
}

Attribute getExactIdentity(Reduction kind, Type element) {
  auto type = dyn_cast<FloatType>(element);
  if (type && kind == Reduction::Sum)
    return FloatAttr::get(
        type, APFloat::getZero(type.getFloatSemantics(), /*Negative=*/true));
  if (auto complex = dyn_cast<ComplexType>(element);
      complex && kind == Reduction::Sum) {
    Attribute part = getExactIdentity(kind, complex.getElementType());
    return ArrayAttr::get(element.getContext(), {part, part});
  }
  return getIdentity(kind, element);
}

bool isIdentity(Reduction kind, Value value) {
  // Both zeros are that of a sum.
  if (kind == Reduction::Sum)
    return isZero(value);
  Attribute element = splatElement(value);
  return element && element == getIdentity(kind, getElementTypeOrSelf(value));
}

bool isZero(Value value) {
  Attribute element = splatElement(value);
  if (auto attr = dyn_cast_or_null<FloatAttr>(element))
    return attr.getValue().isZero();
  if (auto attr = dyn_cast_or_null<IntegerAttr>(element))
    return attr.getValue().isZero();
  return element && isa<ComplexType>(getElementTypeOrSelf(value)) &&
         element == getIdentity(Reduction::Sum, getElementTypeOrSelf(value));
}

bool isPlusZero(Value value) {
  auto number = dyn_cast_or_null<FloatAttr>(splatElement(value));
  return isZero(value) && !(number && number.getValue().isNegative());
}

bool isSumOfUpdates(Value value) {
  auto scatter = value.getDefiningOp<hlo::ScatterOp>();
  if (!scatter || scatter.getInputs().size() != 1 ||
      !isPlusZero(scatter.getInputs()[0]) ||
      scatter.getInputs()[0].getType() != value.getType() ||
      getReductionKind(scatter.getUpdateComputation()) != Reduction::Sum)
    return false;
  Type element = getElementTypeOrSelf(value.getType());
  return !isa<FloatType>(element) || element.getIntOrFloatBitWidth() >= 32;
}

bool isNeverMinusZero(Value value) {
  auto isKnown = [](Value term) {
    return isPlusZero(term) || isSumOfUpdates(term);
  };
  auto sum = value.getDefiningOp<hlo::AddOp>();
  return sum ? isKnown(sum.getLhs()) || isKnown(sum.getRhs()) : isKnown(value);
}

} // namespace whale
