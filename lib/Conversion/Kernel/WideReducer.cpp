//===- WideReducer.cpp - Reducers in the type they accumulate in ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the body of a reduction and how types are widened. Out: what it computes
// in wider types. The body is cloned, and the types of its arguments, results
// and constants are replaced by wider ones. It keeps its own types where an
// operation depends on them: where one converts, reads bits, has a region, or
// uses a value of its surroundings that is no splat constant. Constants from
// outside are copied into the clone. A body that only chooses among its
// arguments, as a maximum does, rounds nothing, and is widened to f32 at most.
//
// Cost: making one, emitting it and asking whether it is one choice are linear
// in the body; asking for a type or conversion is constant, and whether it is
// one operation linear in its results.
//
//===----------------------------------------------------------------------===//

#include "Kernel/WideReducer.h"
#include "Kernel/ScalarOps.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

Type WideReducer::toF32(Type element) {
  if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() <= 16)
    return Float32Type::get(element.getContext());
  return element;
}

Type WideReducer::toWider(Type element) {
  Type wide = Float64Type::get(element.getContext());
  if (element.isF32())
    return wide;
  if (auto complex = dyn_cast<ComplexType>(element))
    return ComplexType::get(wide);
  return toF32(element);
}

/// A constant of another type.
static DenseElementsAttr convertConstant(DenseElementsAttr value, Type to) {
  auto convert = [](APFloat number, Type type) {
    bool inexact;
    number.convert(cast<FloatType>(type).getFloatSemantics(),
                   APFloat::rmNearestTiesToEven, &inexact);
    return number;
  };
  auto type = cast<ShapedType>(value.getType()).clone(to);
  if (auto complex = dyn_cast<ComplexType>(to)) {
    auto number = value.getSplatValue<std::complex<APFloat>>();
    return DenseElementsAttr::get(
        type, std::complex<APFloat>(
                  convert(number.real(), complex.getElementType()),
                  convert(number.imag(), complex.getElementType())));
  }
  return DenseElementsAttr::get(type,
                                convert(value.getSplatValue<APFloat>(), to));
}

/// Whether the operations of `body` mean the same in types that are wider: they
/// compute in those that are widened, ask of no bits and convert nothing.
static bool canWiden(Block &body, WideReducer::Widen widen) {
  auto isGood = [&](Type type) {
    Type element = getElementTypeOrSelf(type);
    if (widen(element) != element)
      return true;
    return isa<IntegerType>(element);
  };
  for (Operation &op : body) {
    if (isa<stablehlo::BitcastConvertOp, stablehlo::ConvertOp,
            stablehlo::ReducePrecisionOp>(op) ||
        op.getNumRegions() != 0 || !llvm::all_of(op.getOperandTypes(), isGood))
      return false;
    DenseElementsAttr constant;
    for (Value operand : op.getOperands())
      if (operand.getParentBlock() != &body &&
          (!matchPattern(operand, m_Constant(&constant)) ||
           !constant.isSplat()))
        return false;
    if (isa<stablehlo::ConstantOp>(op) &&
        (!matchPattern(&op, m_Constant(&constant)) || !constant.isSplat()))
      return false;
  }
  return llvm::all_of(body.getArgumentTypes(), isGood);
}

bool WideReducer::isChoice(Block &body) {
  return llvm::all_of(body, [](Operation &op) {
    return isa<stablehlo::MaxOp, stablehlo::MinOp, stablehlo::CompareOp,
               stablehlo::ConstantOp, stablehlo::SelectOp, stablehlo::AndOp,
               stablehlo::OrOp, stablehlo::ReturnOp>(op);
  });
}

WideReducer::WideReducer(Block &body, Widen widen) {
  unsigned count = body.getNumArguments() / 2;
  for (BlockArgument argument : body.getArguments().take_front(count))
    elements.push_back(getElementTypeOrSelf(argument.getType()));
  IRMapping mapping;
  body.getParent()->cloneInto(&region, mapping);
  // Comparing what is narrower than f32 takes f32 anyway.
  if (isChoice(body))
    widen = toF32;
  if (!canWiden(body, widen))
    return;
  Block &block = region.front();
  auto change = [&](Value value) {
    auto type = cast<ShapedType>(value.getType());
    value.setType(type.clone(widen(type.getElementType())));
  };
  OpBuilder b(body.getParentOp()->getContext());
  for (BlockArgument argument : block.getArguments())
    change(argument);
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (OpOperand &operand : op.getOpOperands()) {
      DenseElementsAttr value;
      if (operand.get().getParentBlock() == &block ||
          !matchPattern(operand.get(), m_Constant(&value)))
        continue;
      Type wide = widen(value.getElementType());
      b.setInsertionPoint(&op);
      operand.set(stablehlo::ConstantOp::create(
          b, op.getLoc(),
          wide == value.getElementType() ? value
                                         : convertConstant(value, wide)));
    }
    if (auto constant = dyn_cast<stablehlo::ConstantOp>(op)) {
      auto value = cast<DenseElementsAttr>(constant.getValue());
      if (Type wide = widen(value.getElementType());
          wide != value.getElementType())
        constant.setValueAttr(convertConstant(value, wide));
    }
    for (Value result : op.getResults())
      change(result);
  }
}

Type WideReducer::getType(unsigned number) const {
  return getElementTypeOrSelf(
      const_cast<Region &>(region).getArgument(number).getType());
}

bool WideReducer::isWide(unsigned number) const {
  return getType(number) != elements[number];
}

bool WideReducer::roundsTerms() const {
  if (isChoice(const_cast<Region &>(region).front()))
    return false;
  for (auto [number, element] : llvm::enumerate(elements))
    if (isa<FloatType, ComplexType>(element) && !isWide(number))
      return true;
  return false;
}

bool whale::isCombined(Value value, Value lhs, Value rhs) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<stablehlo::AddOp, stablehlo::MulOp, stablehlo::MaxOp,
                         stablehlo::MinOp, stablehlo::AndOp, stablehlo::OrOp,
                         stablehlo::XorOp>(op) &&
         llvm::is_contained(op->getOperands(), lhs) &&
         llvm::is_contained(op->getOperands(), rhs);
}

bool WideReducer::isCombiner() const {
  Block &body = const_cast<Region &>(region).front();
  unsigned count = body.getNumArguments() / 2;
  return llvm::all_of(
      llvm::enumerate(body.getTerminator()->getOperands()), [&](auto result) {
        return isCombined(result.value(), body.getArgument(result.index()),
                          body.getArgument(count + result.index()));
      });
}

Value WideReducer::widen(OpBuilder &b, Location loc, Value value,
                         unsigned number) const {
  return convertScalar(b, loc, value, elements[number], getType(number));
}

Value WideReducer::narrow(OpBuilder &b, Location loc, Value value,
                          unsigned number) const {
  return convertScalar(b, loc, value, getType(number), elements[number]);
}

SmallVector<Value> WideReducer::join(OpBuilder &b, ValueRange before,
                                     ValueRange more, bool &good) {
  SmallVector<Value> arguments(before);
  llvm::append_range(arguments, more);
  FailureOr<SmallVector<Value>> result = emit(b, arguments);
  good &= succeeded(result);
  return good ? *result : SmallVector<Value>(before);
}

FailureOr<SmallVector<Value>> WideReducer::emit(OpBuilder &b,
                                                ValueRange arguments) {
  Block &body = region.front();
  // One operation, which what follows can find again.
  Operation *op = &body.front();
  if (isa<ComplexType>(arguments[0].getType()) && llvm::hasNItems(body, 2) &&
      isa<stablehlo::AddOp, stablehlo::MulOp>(op) &&
      body.back().getOperands() == op->getResults()) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand);
          argument && argument.getOwner() == &body)
        operands.push_back(arguments[argument.getArgNumber()]);
    if (operands.size() == 2) {
      Value result;
      if (isa<stablehlo::AddOp>(op))
        result =
            complex::AddOp::create(b, op->getLoc(), operands[0], operands[1]);
      else
        result =
            complex::MulOp::create(b, op->getLoc(), operands[0], operands[1]);
      return SmallVector<Value>{result};
    }
  }
  return emitScalarBlock(b, body, arguments);
}
