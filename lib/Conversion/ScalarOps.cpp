//===- ScalarOps.cpp - Elementwise StableHLO on scalars -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arithmetic, comparisons, logic and selection with XLA's results in the
// corners: division by zero, shifts beyond the width, NaN in minimum and
// maximum.
//
//===----------------------------------------------------------------------===//

#include "ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace whale;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

namespace {
/// Builds scalar operations of one StableHLO element type.
struct Scalar {
  OpBuilder &b;
  Location loc;
  Type type;

  Value integer(const APInt &value) {
    return arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(getScalarType(type), value));
  }
  Value integer(int64_t value) {
    return integer(APInt(width(), value, /*isSigned=*/true,
                         /*implicitTrunc=*/true));
  }
  unsigned width() { return cast<IntegerType>(type).getWidth(); }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, loc, condition, yes, no);
  }

  /// x / 0 is -1 (all ones), the least integer / -1 is itself; x % 0 is x.
  Value divide(Value lhs, Value rhs, bool remainder) {
    Value zero = integer(0), one = integer(1);
    Value byZero = compare(arith::CmpIPredicate::eq, rhs, zero);
    Value bad = byZero;
    Value overflow;
    if (!isUnsigned(type)) {
      overflow = arith::AndIOp::create(
          b, loc,
          compare(arith::CmpIPredicate::eq, lhs,
                  integer(APInt::getSignedMinValue(width()))),
          compare(arith::CmpIPredicate::eq, rhs, integer(-1)));
      bad = arith::OrIOp::create(b, loc, byZero, overflow);
    }
    Value safe = select(bad, one, rhs);
    if (remainder) {
      Value value = isUnsigned(type)
                        ? arith::RemUIOp::create(b, loc, lhs, safe).getResult()
                        : arith::RemSIOp::create(b, loc, lhs, safe).getResult();
      return select(byZero, lhs, value);
    }
    Value value = isUnsigned(type)
                      ? arith::DivUIOp::create(b, loc, lhs, safe).getResult()
                      : arith::DivSIOp::create(b, loc, lhs, safe).getResult();
    return select(byZero, integer(-1), value);
  }

  /// Square and multiply; a negative exponent gives 0 unless the base is 1
  /// or -1.
  Value power(Value base, Value exponent) {
    Value zero = integer(0), one = integer(1);
    Value from = arith::ConstantIndexOp::create(b, loc, 0);
    Value to = arith::ConstantIndexOp::create(b, loc, width());
    Value step = arith::ConstantIndexOp::create(b, loc, 1);
    auto loop = scf::ForOp::create(
        b, loc, from, to, step, ValueRange{one, base, exponent},
        [&](OpBuilder &inner, Location, Value, ValueRange carried) {
          Scalar s{inner, loc, type};
          Value bit = arith::AndIOp::create(inner, loc, carried[2], one);
          Value odd = s.compare(arith::CmpIPredicate::ne, bit, zero);
          Value product =
              arith::MulIOp::create(inner, loc, carried[0], carried[1]);
          Value square =
              arith::MulIOp::create(inner, loc, carried[1], carried[1]);
          Value rest = arith::ShRUIOp::create(inner, loc, carried[2], one);
          scf::YieldOp::create(
              inner, loc,
              ValueRange{s.select(odd, product, carried[0]), square, rest});
        });
    Value result = loop.getResult(0);
    if (isUnsigned(type))
      return result;
    Value odd = compare(arith::CmpIPredicate::ne,
                        arith::AndIOp::create(b, loc, exponent, one), zero);
    Value isOne = compare(arith::CmpIPredicate::eq, base, one);
    Value isMinus = compare(arith::CmpIPredicate::eq, base, integer(-1));
    Value negative = select(
        isOne, one, select(isMinus, select(odd, integer(-1), one), zero));
    return select(compare(arith::CmpIPredicate::slt, exponent, zero), negative,
                  result);
  }

  /// A shift by the width or more gives 0, or the sign.
  Value shift(Operation *op, Value value, Value amount) {
    Value inside = compare(arith::CmpIPredicate::ult, amount, integer(width()));
    Value safe = select(inside, amount, integer(0));
    if (isa<stablehlo::ShiftLeftOp>(op))
      return select(inside, arith::ShLIOp::create(b, loc, value, safe),
                    integer(0));
    if (isa<stablehlo::ShiftRightLogicalOp>(op))
      return select(inside, arith::ShRUIOp::create(b, loc, value, safe),
                    integer(0));
    Value last = select(inside, amount, integer(width() - 1));
    return arith::ShRSIOp::create(b, loc, value, last);
  }

  Value bits(Value value) {
    Type stored = value.getType();
    if (stored.isInteger())
      return value;
    return arith::BitcastOp::create(
        b, loc, b.getIntegerType(stored.getIntOrFloatBitWidth()), value);
  }

  /// Maps the bits of a float to an integer of the same (total) order.
  Value totalOrder(Value value) {
    Value raw = bits(value);
    auto integerType = cast<IntegerType>(raw.getType());
    Scalar s{b, loc, integerType};
    Value flipped = arith::XOrIOp::create(
        b, loc, raw,
        s.integer(APInt::getSignedMaxValue(integerType.getWidth())));
    return s.select(s.compare(arith::CmpIPredicate::slt, raw, s.integer(0)),
                    flipped, raw);
  }
};
} // namespace

template <typename FloatOp, typename SignedOp, typename UnsignedOp>
static Value emitBinary(Scalar &s, Value lhs, Value rhs) {
  if (isa<FloatType>(s.type)) {
    Value result =
        FloatOp::create(s.b, s.loc, toCompute(s.b, s.loc, lhs, s.type),
                        toCompute(s.b, s.loc, rhs, s.type));
    return fromCompute(s.b, s.loc, result, s.type);
  }
  if (isUnsigned(s.type))
    return UnsignedOp::create(s.b, s.loc, lhs, rhs);
  return SignedOp::create(s.b, s.loc, lhs, rhs);
}

static Value emitCompare(OpBuilder &b, stablehlo::CompareOp op, Value lhs,
                         Value rhs) {
  using Direction = stablehlo::ComparisonDirection;
  Location loc = op.getLoc();
  Type type = getElementTypeOrSelf(op.getLhs().getType());
  Direction direction = op.getComparisonDirection();
  Scalar s{b, loc, type};
  bool total = op.getCompareType() &&
               *op.getCompareType() == stablehlo::ComparisonType::TOTALORDER;
  if (isa<FloatType>(type) && !total) {
    arith::CmpFPredicate predicate;
    switch (direction) {
    case Direction::EQ:
      predicate = arith::CmpFPredicate::OEQ;
      break;
    case Direction::NE:
      predicate = arith::CmpFPredicate::UNE;
      break;
    case Direction::GE:
      predicate = arith::CmpFPredicate::OGE;
      break;
    case Direction::GT:
      predicate = arith::CmpFPredicate::OGT;
      break;
    case Direction::LE:
      predicate = arith::CmpFPredicate::OLE;
      break;
    case Direction::LT:
      predicate = arith::CmpFPredicate::OLT;
      break;
    }
    return arith::CmpFOp::create(b, loc, predicate,
                                 toCompute(b, loc, lhs, type),
                                 toCompute(b, loc, rhs, type));
  }
  if (isa<FloatType>(type)) {
    lhs = s.totalOrder(lhs);
    rhs = s.totalOrder(rhs);
  }
  bool isSigned = isa<FloatType>(type) || !isUnsigned(type);
  arith::CmpIPredicate predicate;
  switch (direction) {
  case Direction::EQ:
    predicate = arith::CmpIPredicate::eq;
    break;
  case Direction::NE:
    predicate = arith::CmpIPredicate::ne;
    break;
  case Direction::GE:
    predicate =
        isSigned ? arith::CmpIPredicate::sge : arith::CmpIPredicate::uge;
    break;
  case Direction::GT:
    predicate =
        isSigned ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::ugt;
    break;
  case Direction::LE:
    predicate =
        isSigned ? arith::CmpIPredicate::sle : arith::CmpIPredicate::ule;
    break;
  case Direction::LT:
    predicate =
        isSigned ? arith::CmpIPredicate::slt : arith::CmpIPredicate::ult;
    break;
  }
  return s.compare(predicate, lhs, rhs);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// `operands` and the result are scalars: integers of their own width.
static FailureOr<Value> emitOnScalars(OpBuilder &b, Operation *op,
                                      ValueRange operands) {
  Location loc = op->getLoc();
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  Scalar s{b, loc, type};
  bool isFloat = isa<FloatType>(type);
  bool isBool = type.isInteger(1);
  using Result = FailureOr<Value>;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](stablehlo::AddOp) -> Result {
        if (isBool)
          return arith::OrIOp::create(b, loc, operands[0], operands[1])
              .getResult();
        return emitBinary<arith::AddFOp, arith::AddIOp, arith::AddIOp>(
            s, operands[0], operands[1]);
      })
      .Case([&](stablehlo::SubtractOp) -> Result {
        return emitBinary<arith::SubFOp, arith::SubIOp, arith::SubIOp>(
            s, operands[0], operands[1]);
      })
      .Case([&](stablehlo::MulOp) -> Result {
        if (isBool)
          return arith::AndIOp::create(b, loc, operands[0], operands[1])
              .getResult();
        return emitBinary<arith::MulFOp, arith::MulIOp, arith::MulIOp>(
            s, operands[0], operands[1]);
      })
      .Case([&](stablehlo::MaxOp) -> Result {
        return emitBinary<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(
            s, operands[0], operands[1]);
      })
      .Case([&](stablehlo::MinOp) -> Result {
        return emitBinary<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(
            s, operands[0], operands[1]);
      })
      .Case([&](stablehlo::DivOp) -> Result {
        if (!isFloat)
          return s.divide(operands[0], operands[1], /*remainder=*/false);
        return emitBinary<arith::DivFOp, arith::DivSIOp, arith::DivUIOp>(
            s, operands[0], operands[1]);
      })
      .Case([&](stablehlo::RemOp) -> Result {
        if (!isFloat)
          return s.divide(operands[0], operands[1], /*remainder=*/true);
        return emitBinary<arith::RemFOp, arith::RemSIOp, arith::RemUIOp>(
            s, operands[0], operands[1]);
      })
      .Case([&](stablehlo::PowOp) -> Result {
        if (!isFloat)
          return s.power(operands[0], operands[1]);
        return emitScalarMath(b, op, operands);
      })
      .Case([&](stablehlo::AndOp) -> Result {
        return arith::AndIOp::create(b, loc, operands[0], operands[1])
            .getResult();
      })
      .Case([&](stablehlo::OrOp) -> Result {
        return arith::OrIOp::create(b, loc, operands[0], operands[1])
            .getResult();
      })
      .Case([&](stablehlo::XorOp) -> Result {
        return arith::XOrIOp::create(b, loc, operands[0], operands[1])
            .getResult();
      })
      .Case([&](stablehlo::NotOp) -> Result {
        return arith::XOrIOp::create(b, loc, operands[0],
                                     s.integer(APInt::getAllOnes(s.width())))
            .getResult();
      })
      .Case<stablehlo::ShiftLeftOp, stablehlo::ShiftRightLogicalOp,
            stablehlo::ShiftRightArithmeticOp>(
          [&](auto) -> Result { return s.shift(op, operands[0], operands[1]); })
      .Case([&](stablehlo::PopulationCountOp) -> Result {
        return math::CtPopOp::create(b, loc, operands[0]).getResult();
      })
      .Case([&](stablehlo::ClzOp) -> Result {
        return math::CountLeadingZerosOp::create(b, loc, operands[0])
            .getResult();
      })
      .Case([&](stablehlo::NegOp) -> Result {
        if (!isFloat)
          return arith::SubIOp::create(b, loc, s.integer(0), operands[0])
              .getResult();
        Value value =
            arith::NegFOp::create(b, loc, toCompute(b, loc, operands[0], type));
        return fromCompute(b, loc, value, type);
      })
      .Case([&](stablehlo::AbsOp) -> Result {
        if (isFloat)
          return emitScalarMath(b, op, operands);
        if (isUnsigned(type))
          return operands[0];
        return math::AbsIOp::create(b, loc, operands[0]).getResult();
      })
      .Case([&](stablehlo::SignOp) -> Result {
        if (isFloat)
          return emitScalarMath(b, op, operands);
        Value zero = s.integer(0);
        Value positive =
            s.select(s.compare(isUnsigned(type) ? arith::CmpIPredicate::ugt
                                                : arith::CmpIPredicate::sgt,
                               operands[0], zero),
                     s.integer(1), zero);
        if (isUnsigned(type))
          return positive;
        return s.select(s.compare(arith::CmpIPredicate::slt, operands[0], zero),
                        s.integer(-1), positive);
      })
      .Case([&](stablehlo::CompareOp compare) -> Result {
        return emitCompare(b, compare, operands[0], operands[1]);
      })
      .Case([&](stablehlo::SelectOp) -> Result {
        return s.select(operands[0], operands[1], operands[2]);
      })
      .Case([&](stablehlo::ClampOp) -> Result {
        Value low =
            emitBinary<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(
                s, operands[0], operands[1]);
        return emitBinary<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(
            s, low, operands[2]);
      })
      .Case([&](stablehlo::BitcastConvertOp) -> Result {
        if (from.getIntOrFloatBitWidth() != type.getIntOrFloatBitWidth() ||
            from.isInteger(1) != type.isInteger(1))
          return failure();
        Type scalar = getScalarType(type);
        if (operands[0].getType() == scalar)
          return operands[0];
        return arith::BitcastOp::create(b, loc, scalar, operands[0])
            .getResult();
      })
      .Case([&](stablehlo::ReducePrecisionOp reduce) -> Result {
        return reducePrecision(b, loc, operands[0], type,
                               reduce.getExponentBits(),
                               reduce.getMantissaBits());
      })
      .Default([&](Operation *) -> Result {
        return emitScalarMath(b, op, operands);
      });
}

FailureOr<Value> whale::emitScalarOp(OpBuilder &b, Operation *op,
                                     ValueRange operands) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0)
    return failure();
  Location loc = op->getLoc();
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  if (!getStorageType(type))
    return failure();
  SmallVector<Value> scalars;
  for (auto [operand, value] : llvm::zip_equal(op->getOperands(), operands)) {
    Type from = getElementTypeOrSelf(operand.getType());
    if (!getStorageType(from))
      return failure();
    scalars.push_back(fromStored(b, loc, value, from));
  }
  if (isa<stablehlo::ConvertOp>(op))
    return convertScalar(b, loc, operands[0],
                         getElementTypeOrSelf(op->getOperand(0).getType()),
                         type);
  bool isComplex = isa<ComplexType>(type) ||
                   llvm::any_of(op->getOperandTypes(), [](Type operand) {
                     return isa<ComplexType>(getElementTypeOrSelf(operand));
                   });
  if (isComplex || isa<stablehlo::RealOp, stablehlo::ImagOp>(op))
    return emitComplexOp(b, op, operands);
  FailureOr<Value> result = emitOnScalars(b, op, scalars);
  if (failed(result))
    return failure();
  return toStored(b, loc, *result, type);
}

bool whale::isElementwise(Operation *op) {
  return isa<stablehlo::AbsOp, stablehlo::AddOp, stablehlo::AndOp,
             stablehlo::Atan2Op, stablehlo::BitcastConvertOp, stablehlo::CbrtOp,
             stablehlo::CeilOp, stablehlo::ClampOp, stablehlo::ClzOp,
             stablehlo::CompareOp, stablehlo::ComplexOp, stablehlo::ConvertOp,
             stablehlo::CosineOp, stablehlo::ImagOp, stablehlo::RealOp,
             stablehlo::DivOp, stablehlo::ExpOp, stablehlo::Expm1Op,
             stablehlo::FloorOp, stablehlo::IsFiniteOp, stablehlo::Log1pOp,
             stablehlo::LogOp, stablehlo::LogisticOp, stablehlo::MaxOp,
             stablehlo::MinOp, stablehlo::MulOp, stablehlo::NegOp,
             stablehlo::NotOp, stablehlo::OrOp, stablehlo::PopulationCountOp,
             stablehlo::PowOp, stablehlo::ReducePrecisionOp, stablehlo::RemOp,
             stablehlo::RoundOp, stablehlo::RoundNearestEvenOp,
             stablehlo::RsqrtOp, stablehlo::SelectOp, stablehlo::ShiftLeftOp,
             stablehlo::ShiftRightArithmeticOp, stablehlo::ShiftRightLogicalOp,
             stablehlo::SignOp, stablehlo::SineOp, stablehlo::SqrtOp,
             stablehlo::SubtractOp, stablehlo::TanOp, stablehlo::TanhOp,
             stablehlo::XorOp>(op);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> whale::emitScalarBlock(OpBuilder &b, Block &block,
                                                     ValueRange arguments) {
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  for (Operation &op : block) {
    SmallVector<Value> operands;
    for (Value operand : op.getOperands()) {
      Value value = mapping.lookupOrNull(operand);
      if (!value) {
        DenseElementsAttr constant;
        if (!matchPattern(operand, m_Constant(&constant)) ||
            !constant.isSplat())
          return op.emitOpError(
              "uses a value from outside of its reduction, which kernels "
              "cannot");
        value =
            makeConstant(b, op.getLoc(), constant.getSplatValue<Attribute>(),
                         constant.getElementType());
      }
      operands.push_back(value);
    }
    if (op.hasTrait<OpTrait::IsTerminator>())
      return operands;
    if (auto constant = dyn_cast<stablehlo::ConstantOp>(op)) {
      auto value = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (!value || !value.isSplat() || !getStorageType(value.getElementType()))
        return op.emitOpError("is not a scalar that kernels handle");
      mapping.map(op.getResult(0),
                  makeConstant(b, op.getLoc(), value.getSplatValue<Attribute>(),
                               value.getElementType()));
      continue;
    }
    // On scalars these change nothing.
    if (isa<stablehlo::ReshapeOp, stablehlo::BroadcastInDimOp,
            stablehlo::TransposeOp, stablehlo::OptimizationBarrierOp>(op)) {
      mapping.map(op.getResults(), operands);
      continue;
    }
    FailureOr<Value> result = emitScalarOp(b, &op, operands);
    if (failed(result))
      return op.emitOpError("is not supported in the body of a reduction");
    mapping.map(op.getResult(0), *result);
  }
  return failure();
}
