//===- ScalarMath.cpp - Math functions on scalars -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Transcendental functions and rounding of stored floats, computed in f32 or
// f64.
//
//===----------------------------------------------------------------------===//

#include "Kernel/ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace whale;

static Value makeFloat(OpBuilder &b, Location loc, Type type, double value) {
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
}

/// -1, 0 or 1; zeros and NaN stay themselves.
static Value emitSign(OpBuilder &b, Location loc, Value x) {
  Value zero = makeFloat(b, loc, x.getType(), 0.0);
  Value one = makeFloat(b, loc, x.getType(), 1.0);
  Value signedOne = math::CopySignOp::create(b, loc, one, x);
  Value other =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, x, zero);
  return arith::SelectOp::create(b, loc, other, signedOne, x);
}

FailureOr<Value> whale::emitScalarMath(OpBuilder &b, Operation *op,
                                       ValueRange operands) {
  Location loc = op->getLoc();
  Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  if (!isa<FloatType>(from)) {
    // Only is_finite of an integer is defined, and true.
    if (isa<stablehlo::IsFiniteOp>(op))
      return arith::ConstantOp::create(b, loc, b.getBoolAttr(true)).getResult();
    return failure();
  }
  SmallVector<Value> values;
  for (Value operand : operands)
    values.push_back(toCompute(b, loc, operand, from));
  Value x = values[0];
  Type compute = x.getType();
  Value y =
      TypeSwitch<Operation *, Value>(op)
          .Case(
              [&](stablehlo::AbsOp) { return math::AbsFOp::create(b, loc, x); })
          .Case([&](stablehlo::Atan2Op) {
            return math::Atan2Op::create(b, loc, x, values[1]);
          })
          .Case([&](stablehlo::CbrtOp) {
            return math::CbrtOp::create(b, loc, x);
          })
          .Case([&](stablehlo::CeilOp) {
            return math::CeilOp::create(b, loc, x);
          })
          .Case([&](stablehlo::CosineOp) {
            return math::CosOp::create(b, loc, x);
          })
          .Case(
              [&](stablehlo::ExpOp) { return math::ExpOp::create(b, loc, x); })
          .Case([&](stablehlo::Expm1Op) {
            return math::ExpM1Op::create(b, loc, x);
          })
          .Case([&](stablehlo::FloorOp) {
            return math::FloorOp::create(b, loc, x);
          })
          .Case([&](stablehlo::IsFiniteOp) {
            Value infinity = makeFloat(b, loc, compute, INFINITY);
            return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT,
                                         math::AbsFOp::create(b, loc, x),
                                         infinity);
          })
          .Case([&](stablehlo::Log1pOp) {
            return math::Log1pOp::create(b, loc, x);
          })
          .Case(
              [&](stablehlo::LogOp) { return math::LogOp::create(b, loc, x); })
          .Case([&](stablehlo::LogisticOp) {
            Value one = makeFloat(b, loc, compute, 1.0);
            Value exp =
                math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x));
            return arith::DivFOp::create(
                b, loc, one, arith::AddFOp::create(b, loc, one, exp));
          })
          .Case([&](stablehlo::PowOp) {
            return math::PowFOp::create(b, loc, x, values[1]);
          })
          .Case([&](stablehlo::RoundOp) {
            return math::RoundOp::create(b, loc, x);
          })
          .Case([&](stablehlo::RoundNearestEvenOp) {
            return math::RoundEvenOp::create(b, loc, x);
          })
          .Case([&](stablehlo::RsqrtOp) {
            Value one = makeFloat(b, loc, compute, 1.0);
            return arith::DivFOp::create(b, loc, one,
                                         math::SqrtOp::create(b, loc, x));
          })
          .Case([&](stablehlo::SignOp) { return emitSign(b, loc, x); })
          .Case(
              [&](stablehlo::SineOp) { return math::SinOp::create(b, loc, x); })
          .Case([&](stablehlo::SqrtOp) {
            return math::SqrtOp::create(b, loc, x);
          })
          .Case(
              [&](stablehlo::TanOp) { return math::TanOp::create(b, loc, x); })
          .Case([&](stablehlo::TanhOp) {
            return math::TanhOp::create(b, loc, x);
          })
          .Default([](Operation *) { return Value(); });
  if (!y)
    return failure();
  return isa<FloatType>(type) ? fromCompute(b, loc, y, type) : y;
}
