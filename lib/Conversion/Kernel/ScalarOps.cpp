//===- ScalarOps.cpp - Elementwise StableHLO on scalars -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an elementwise operation, or a block of them, and its operands as
// scalars. Out: its result. Arithmetic, comparisons, logic and selection give
// what XLA does in the corners: division by zero, shifts beyond the width, NaN
// in minimum and maximum. Cost: a constant number of operations for each one;
// floats of 16 bits and less are converted to f32 and back for each. A power of
// integers is a loop with an iteration for each bit. A block takes as long as
// its operations together.
//
//===----------------------------------------------------------------------===//

#include "Kernel/ScalarOps.h"
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

static arith::CmpFPredicate
findFloatPredicate(stablehlo::ComparisonDirection direction) {
  using Direction = stablehlo::ComparisonDirection;
  using Predicate = arith::CmpFPredicate;
  switch (direction) {
  case Direction::EQ:
    return Predicate::OEQ;
  case Direction::NE:
    return Predicate::UNE;
  case Direction::GE:
    return Predicate::OGE;
  case Direction::GT:
    return Predicate::OGT;
  case Direction::LE:
    return Predicate::OLE;
  case Direction::LT:
    return Predicate::OLT;
  }
  llvm_unreachable("unknown direction");
}

static arith::CmpIPredicate
findIntegerPredicate(stablehlo::ComparisonDirection direction, bool isSigned) {
  using Direction = stablehlo::ComparisonDirection;
  using Predicate = arith::CmpIPredicate;
  switch (direction) {
  case Direction::EQ:
    return Predicate::eq;
  case Direction::NE:
    return Predicate::ne;
  case Direction::GE:
    return isSigned ? Predicate::sge : Predicate::uge;
  case Direction::GT:
    return isSigned ? Predicate::sgt : Predicate::ugt;
  case Direction::LE:
    return isSigned ? Predicate::sle : Predicate::ule;
  case Direction::LT:
    return isSigned ? Predicate::slt : Predicate::ult;
  }
  llvm_unreachable("unknown direction");
}

static Value emitCompare(OpBuilder &b, stablehlo::CompareOp op, Value lhs,
                         Value rhs) {
  Location loc = op.getLoc();
  Type type = getElementTypeOrSelf(op.getLhs().getType());
  bool isFloat = isa<FloatType>(type);
  Scalar s{b, loc, type};
  bool total = op.getCompareType() &&
               *op.getCompareType() == stablehlo::ComparisonType::TOTALORDER;
  if (isFloat && !total)
    return arith::CmpFOp::create(
        b, loc, findFloatPredicate(op.getComparisonDirection()),
        toCompute(b, loc, lhs, type), toCompute(b, loc, rhs, type));
  if (isFloat) {
    lhs = s.totalOrder(lhs);
    rhs = s.totalOrder(rhs);
  }
  return s.compare(findIntegerPredicate(op.getComparisonDirection(),
                                        isFloat || !isUnsigned(type)),
                   lhs, rhs);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Sums, products, quotients and extremes. A sum of booleans is "or", their
/// product "and".
static Value emitArithmetic(Scalar &s, Operation *op, Value lhs, Value rhs) {
  bool isFloat = isa<FloatType>(s.type);
  bool isBool = s.type.isInteger(1);
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](stablehlo::AddOp) -> Value {
        if (isBool)
          return arith::OrIOp::create(s.b, s.loc, lhs, rhs);
        return emitBinary<arith::AddFOp, arith::AddIOp, arith::AddIOp>(s, lhs,
                                                                       rhs);
      })
      .Case([&](stablehlo::SubtractOp) {
        return emitBinary<arith::SubFOp, arith::SubIOp, arith::SubIOp>(s, lhs,
                                                                       rhs);
      })
      .Case([&](stablehlo::MulOp) -> Value {
        if (isBool)
          return arith::AndIOp::create(s.b, s.loc, lhs, rhs);
        return emitBinary<arith::MulFOp, arith::MulIOp, arith::MulIOp>(s, lhs,
                                                                       rhs);
      })
      .Case([&](stablehlo::MaxOp) {
        return emitBinary<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(
            s, lhs, rhs);
      })
      .Case([&](stablehlo::MinOp) {
        return emitBinary<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(
            s, lhs, rhs);
      })
      .Case([&](stablehlo::DivOp) {
        if (!isFloat)
          return s.divide(lhs, rhs, /*remainder=*/false);
        return emitBinary<arith::DivFOp, arith::DivSIOp, arith::DivUIOp>(s, lhs,
                                                                         rhs);
      })
      .Case([&](stablehlo::RemOp) {
        if (!isFloat)
          return s.divide(lhs, rhs, /*remainder=*/true);
        return emitBinary<arith::RemFOp, arith::RemSIOp, arith::RemUIOp>(s, lhs,
                                                                         rhs);
      });
}

/// Operations on the bits of integers.
static Value emitBits(Scalar &s, Operation *op, ValueRange operands) {
  Value x = operands[0];
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](stablehlo::AndOp) {
        return arith::AndIOp::create(s.b, s.loc, x, operands[1]);
      })
      .Case([&](stablehlo::OrOp) {
        return arith::OrIOp::create(s.b, s.loc, x, operands[1]);
      })
      .Case([&](stablehlo::XorOp) {
        return arith::XOrIOp::create(s.b, s.loc, x, operands[1]);
      })
      .Case([&](stablehlo::NotOp) {
        return arith::XOrIOp::create(s.b, s.loc, x,
                                     s.integer(APInt::getAllOnes(s.width())));
      })
      .Case([&](stablehlo::PopulationCountOp) {
        return math::CtPopOp::create(s.b, s.loc, x);
      })
      .Case([&](stablehlo::ClzOp) {
        return math::CountLeadingZerosOp::create(s.b, s.loc, x);
      })
      .Default([&](Operation *) { return s.shift(op, x, operands[1]); });
}

static Value emitNegative(Scalar &s, Value x) {
  if (!isa<FloatType>(s.type))
    return arith::SubIOp::create(s.b, s.loc, s.integer(0), x);
  Value value =
      arith::NegFOp::create(s.b, s.loc, toCompute(s.b, s.loc, x, s.type));
  return fromCompute(s.b, s.loc, value, s.type);
}

static Value emitIntegerSign(Scalar &s, Value x) {
  Value zero = s.integer(0);
  Value positive =
      s.select(s.compare(isUnsigned(s.type) ? arith::CmpIPredicate::ugt
                                            : arith::CmpIPredicate::sgt,
                         x, zero),
               s.integer(1), zero);
  if (isUnsigned(s.type))
    return positive;
  return s.select(s.compare(arith::CmpIPredicate::slt, x, zero), s.integer(-1),
                  positive);
}

/// Fails if the types have not as many bits.
static FailureOr<Value> emitBitcast(Scalar &s, Type from, Value x) {
  if (from.getIntOrFloatBitWidth() != s.type.getIntOrFloatBitWidth() ||
      from.isInteger(1) != s.type.isInteger(1))
    return failure();
  Type scalar = getScalarType(s.type);
  if (x.getType() == scalar)
    return x;
  return arith::BitcastOp::create(s.b, s.loc, scalar, x).getResult();
}

/// `operands` and the result are scalars: integers of their own width.
static FailureOr<Value> emitOnScalars(OpBuilder &b, Operation *op,
                                      ValueRange operands) {
  Location loc = op->getLoc();
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  Scalar s{b, loc, type};
  if (isa<FloatType>(type) &&
      isa<stablehlo::PowOp, stablehlo::AbsOp, stablehlo::SignOp>(op))
    return emitScalarMath(b, op, operands);
  return TypeSwitch<Operation *, FailureOr<Value>>(op)
      .Case<stablehlo::AddOp, stablehlo::SubtractOp, stablehlo::MulOp,
            stablehlo::MaxOp, stablehlo::MinOp, stablehlo::DivOp,
            stablehlo::RemOp>(
          [&](auto) { return emitArithmetic(s, op, operands[0], operands[1]); })
      .Case<stablehlo::AndOp, stablehlo::OrOp, stablehlo::XorOp,
            stablehlo::NotOp, stablehlo::PopulationCountOp, stablehlo::ClzOp,
            stablehlo::ShiftLeftOp, stablehlo::ShiftRightLogicalOp,
            stablehlo::ShiftRightArithmeticOp>(
          [&](auto) { return emitBits(s, op, operands); })
      .Case([&](stablehlo::PowOp) { return s.power(operands[0], operands[1]); })
      .Case([&](stablehlo::NegOp) { return emitNegative(s, operands[0]); })
      .Case([&](stablehlo::AbsOp) -> Value {
        if (isUnsigned(type))
          return operands[0];
        return math::AbsIOp::create(b, loc, operands[0]);
      })
      .Case([&](stablehlo::SignOp) { return emitIntegerSign(s, operands[0]); })
      .Case([&](stablehlo::CompareOp compare) {
        return emitCompare(b, compare, operands[0], operands[1]);
      })
      .Case([&](stablehlo::SelectOp) {
        return s.select(operands[0], operands[1], operands[2]);
      })
      .Case([&](stablehlo::ClampOp) {
        Value low =
            emitBinary<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(
                s, operands[0], operands[1]);
        return emitBinary<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(
            s, low, operands[2]);
      })
      .Case([&](stablehlo::BitcastConvertOp) {
        return emitBitcast(s, getElementTypeOrSelf(op->getOperand(0).getType()),
                           operands[0]);
      })
      .Case([&](stablehlo::ReducePrecisionOp reduce) {
        return reducePrecision(b, loc, operands[0], type,
                               reduce.getExponentBits(),
                               reduce.getMantissaBits());
      })
      .Default([&](Operation *) { return emitScalarMath(b, op, operands); });
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
                                                     ValueRange arguments,
                                                     const IRMapping *outside) {
  IRMapping mapping = outside ? *outside : IRMapping();
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
