//===- EmulateArithmetic.cpp - GPU arithmetic on a processor --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a call of an NVVM intrinsic, or of inline assembly of the device library.
// Out: what it computes, by LLVM's own operations, rounded in the direction
// that its name says. What the hardware approximates (reciprocals, roots,
// functions) is what the processor computes. The intrinsics and the texts of
// assembly that are known are listed one by one; anything else gives null.
//
// Cost: a call is compared with the whole list at most. It becomes one or a few
// instructions; some 40 where an f32 is rounded in a direction, some 15 where a
// sum of f64 is rounded towards zero.
//
//===----------------------------------------------------------------------===//

#include "EmulateArithmetic.h"

#include "llvm/IR/Intrinsics.h"

using namespace llvm;

/// "fma.rn.f" and the like, without rounding and type.
static StringRef dropSuffixes(StringRef name, StringRef &rounding) {
  for (StringRef type : {".f32", ".f64", ".f", ".d"})
    if (name.consume_back(type))
      break;
  name.consume_back(".ftz"); // Only where __nvvm_reflect asks for it: nowhere.
  for (StringRef each : {".rn", ".rz", ".rm", ".rp", ".approx"})
    if (name.consume_back(each)) {
      rounding = each.drop_front();
      break;
    }
  return name;
}

/// An integer of a float that is rounded as `rounding` says; what is out of
/// range becomes the nearest integer.
static Value *toInteger(IRBuilder<> &b, CallBase &call, StringRef rounding,
                        bool isSigned) {
  Value *value = call.getArgOperand(0);
  Intrinsic::ID round = rounding == "rn"   ? Intrinsic::roundeven
                        : rounding == "rm" ? Intrinsic::floor
                        : rounding == "rp" ? Intrinsic::ceil
                                           : Intrinsic::trunc;
  value = b.CreateUnaryIntrinsic(round, value);
  return b.CreateIntrinsic(isSigned ? Intrinsic::fptosi_sat
                                    : Intrinsic::fptoui_sat,
                           {call.getType(), value->getType()}, {value});
}

/// a * b + c in f32, rounded down ("rm"), up or towards zero. The product is
/// exact in f64, and so are the sum and its error together.
static Value *roundFma(IRBuilder<> &b, ArrayRef<Value *> operands,
                       StringRef rounding) {
  Type *wide = b.getDoubleTy(), *narrow = b.getFloatTy();
  auto extend = [&](Value *value) { return b.CreateFPExt(value, wide); };
  Value *product = b.CreateFMul(extend(operands[0]), extend(operands[1]));
  Value *term = extend(operands[2]);
  Value *sum = b.CreateFAdd(product, term);
  Value *part = b.CreateFSub(sum, product);
  Value *error = b.CreateFAdd(b.CreateFSub(product, b.CreateFSub(sum, part)),
                              b.CreateFSub(term, part));
  Value *result = b.CreateFPTrunc(sum, narrow);
  Value *back = extend(result), *zero = ConstantFP::get(wide, 0.0);
  auto isBeyond = [&](CmpInst::Predicate predicate) {
    return b.CreateOr(b.CreateFCmp(predicate, back, sum),
                      b.CreateAnd(b.CreateFCmpOEQ(back, sum),
                                  b.CreateFCmp(predicate, zero, error)));
  };
  Value *isAbove = isBeyond(CmpInst::FCMP_OGT);
  Value *isBelow = isBeyond(CmpInst::FCMP_OLT);
  // To the neighbour below or above: one less or more, seen as integers, away
  // from or towards zero.
  Value *bits = b.CreateBitCast(result, b.getInt32Ty());
  Value *isNegative = b.CreateICmpSLT(bits, b.getInt32(0));
  auto step = [&](bool down) {
    Value *away = b.CreateAdd(bits, b.getInt32(1));
    Value *towards = b.CreateSub(bits, b.getInt32(1));
    Value *next = down ? b.CreateSelect(isNegative, away, towards)
                       : b.CreateSelect(isNegative, towards, away);
    Value *isZero = b.CreateICmpEQ(b.CreateAnd(bits, b.getInt32(0x7fffffff)),
                                   b.getInt32(0));
    next = b.CreateSelect(isZero, b.getInt32(down ? 0x80000001 : 1), next);
    return b.CreateBitCast(next, narrow);
  };
  Value *isPositive = b.CreateFCmpOGT(sum, zero);
  Value *down = b.CreateSelect(isAbove, step(true), result);
  Value *up = b.CreateSelect(isBelow, step(false), result);
  if (rounding == "rm")
    return down;
  if (rounding == "rp")
    return up;
  return b.CreateSelect(isPositive, down, up);
}

/// x + y in f64, rounded towards zero: the error of the sum is a number of f64,
/// and has the other sign where the sum is too far from zero.
static Value *addTowardsZero(IRBuilder<> &b, Value *x, Value *y) {
  Value *zero = ConstantFP::get(x->getType(), 0.0);
  Value *sum = b.CreateFAdd(x, y);
  Value *part = b.CreateFSub(sum, x);
  Value *error = b.CreateFAdd(b.CreateFSub(x, b.CreateFSub(sum, part)),
                              b.CreateFSub(y, part));
  auto differ = [&](Value *below, Value *above) {
    return b.CreateAnd(b.CreateFCmpOLT(below, zero),
                       b.CreateFCmpOGT(above, zero));
  };
  Value *bits = b.CreateBitCast(sum, b.getInt64Ty());
  Value *towards = b.CreateSub(bits, b.getInt64(1));
  return b.CreateSelect(b.CreateOr(differ(sum, error), differ(error, sum)),
                        b.CreateBitCast(towards, x->getType()), sum);
}

Value *whale::emulateArithmetic(IRBuilder<> &b, CallBase &call,
                                StringRef name) {
  Type *type = call.getType();
  StringRef rounding;
  StringRef plain = dropSuffixes(name, rounding);
  bool isNearest = rounding.empty() || rounding == "rn";
  auto operand = [&](unsigned number) { return call.getArgOperand(number); };
  auto unary = [&](Intrinsic::ID id) {
    return b.CreateUnaryIntrinsic(id, operand(0));
  };
  auto one = [&] { return ConstantFP::get(type, 1.0); };
  if (isNearest) {
    if (plain == "fma")
      return b.CreateIntrinsic(Intrinsic::fma, {type},
                               {operand(0), operand(1), operand(2)});
    if (plain == "add")
      return b.CreateFAdd(operand(0), operand(1));
    if (plain == "mul")
      return b.CreateFMul(operand(0), operand(1));
    if (plain == "d2f")
      return b.CreateFPTrunc(operand(0), type);
    if (plain == "i2d" || plain == "i2f" || plain == "ll2f" || plain == "ll2d")
      return b.CreateSIToFP(operand(0), type);
    if (plain == "ui2d" || plain == "ui2f" || plain == "ull2f" ||
        plain == "ull2d")
      return b.CreateUIToFP(operand(0), type);
  }
  if (isNearest || rounding == "approx") {
    if (plain == "div")
      return b.CreateFDiv(operand(0), operand(1));
    if (plain == "rcp")
      return b.CreateFDiv(one(), operand(0));
    if (plain == "sqrt")
      return unary(Intrinsic::sqrt);
    if (plain == "rsqrt")
      return b.CreateFDiv(one(), unary(Intrinsic::sqrt));
    if (plain == "ex2")
      return unary(Intrinsic::exp2);
    if (plain == "lg2")
      return unary(Intrinsic::log2);
    if (plain == "sin")
      return unary(Intrinsic::sin);
    if (plain == "cos")
      return unary(Intrinsic::cos);
    if (plain == "floor")
      return unary(Intrinsic::floor);
    if (plain == "ceil")
      return unary(Intrinsic::ceil);
    if (plain == "trunc")
      return unary(Intrinsic::trunc);
    if (plain == "round")
      return unary(Intrinsic::roundeven);
    if (plain == "fabs")
      return unary(Intrinsic::fabs);
    if (plain == "fmin")
      return b.CreateBinaryIntrinsic(Intrinsic::minnum, operand(0), operand(1));
    if (plain == "fmax")
      return b.CreateBinaryIntrinsic(Intrinsic::maxnum, operand(0), operand(1));
  }
  if (type->isFloatTy() && !isNearest && rounding != "approx") {
    if (plain == "fma")
      return roundFma(b, {operand(0), operand(1), operand(2)}, rounding);
    if (plain == "add")
      return roundFma(b, {operand(0), one(), operand(1)}, rounding);
    if (plain == "mul")
      return roundFma(b, {operand(0), operand(1), ConstantFP::get(type, -0.0)},
                      rounding);
  }
  if (plain == "add" && type->isDoubleTy() && rounding == "rz")
    return addTowardsZero(b, operand(0), operand(1));
  if (plain == "saturate") {
    Value *low = b.CreateBinaryIntrinsic(Intrinsic::maxnum, operand(0),
                                         ConstantFP::get(type, 0.0));
    return b.CreateBinaryIntrinsic(Intrinsic::minnum, low, one());
  }
  for (StringRef from : {"f", "d"})
    for (StringRef to : {"i", "ll"})
      for (bool isSigned : {true, false})
        if (plain == (from + "2" + (isSigned ? "" : "u") + to).str())
          return toInteger(b, call, rounding, isSigned);
  if (plain == "mulhi.i" || plain == "mulhi.ll" || plain == "mulhi.ui" ||
      plain == "mulhi.ull") {
    bool isSigned = !plain.contains(".u");
    unsigned bits = type->getIntegerBitWidth();
    Type *wide = b.getIntNTy(2 * bits);
    auto extend = [&](Value *value) {
      return isSigned ? b.CreateSExt(value, wide) : b.CreateZExt(value, wide);
    };
    Value *product = b.CreateMul(extend(operand(0)), extend(operand(1)));
    return b.CreateTrunc(b.CreateLShr(product, bits), type);
  }
  auto asPair = [&](Value *value) {
    return b.CreateBitCast(value, b.getInt64Ty());
  };
  if (plain == "d2i.lo")
    return b.CreateTrunc(asPair(operand(0)), type);
  if (plain == "d2i.hi")
    return b.CreateTrunc(b.CreateLShr(asPair(operand(0)), 32), type);
  if (plain == "lohi.i2d")
    return b.CreateBitCast(
        b.CreateOr(b.CreateZExt(operand(0), b.getInt64Ty()),
                   b.CreateShl(b.CreateZExt(operand(1), b.getInt64Ty()), 32)),
        type);
  return nullptr;
}

Value *whale::emulateAssembly(IRBuilder<> &b, CallBase &call, StringRef text) {
  Type *type = call.getType();
  auto operand = [&](unsigned number) { return call.getArgOperand(number); };
  if (text.starts_with("rcp.approx.ftz.f32 "))
    return b.CreateFDiv(ConstantFP::get(type, 1.0), operand(0));
  if (text.starts_with("rsqrt.approx.ftz.f64 "))
    return b.CreateFDiv(ConstantFP::get(type, 1.0),
                        b.CreateUnaryIntrinsic(Intrinsic::sqrt, operand(0)));
  if (text.starts_with("sub.rn.f32 ") || text.starts_with("sub.rn.f64 "))
    return b.CreateFSub(operand(0), operand(1));
  if (text.contains("setp.equ.f64") && text.contains("selp.f64"))
    return b.CreateSelect(b.CreateFCmpUEQ(operand(0), operand(1)), operand(2),
                          operand(3));
  // Products and sums of 128 bits, as pairs of 64.
  if (text.contains("mov.b64         $1, {r2,r3};")) {
    auto wide = [&](unsigned number) {
      return b.CreateZExt(operand(number), b.getInt128Ty());
    };
    auto pair = [&](unsigned number) {
      return b.CreateOr(wide(number), b.CreateShl(wide(number + 1), 64));
    };
    Value *value = nullptr;
    if (text.contains("mad.lo.cc.u32   r0, alo, blo, clo;"))
      value = b.CreateAdd(b.CreateMul(wide(0), wide(1)), wide(2));
    else if (text.contains("mul.lo.u32      r0, alo, blo;"))
      value = b.CreateMul(wide(0), wide(1));
    else if (text.contains("add.cc.u32      r0, a0, b0;"))
      value = b.CreateAdd(pair(0), pair(2));
    else if (text.contains("sub.cc.u32      r0, a0, b0;"))
      value = b.CreateSub(pair(0), pair(2));
    else
      return nullptr;
    Value *result = PoisonValue::get(type);
    result =
        b.CreateInsertValue(result, b.CreateTrunc(value, b.getInt64Ty()), 0);
    return b.CreateInsertValue(
        result, b.CreateTrunc(b.CreateLShr(value, 64), b.getInt64Ty()), 1);
  }
  if (text.contains("mad.lo.cc.u32   $0, $2, $3, $4;") &&
      text.contains("madc.hi.u32     $1, $2, $3,  0;")) {
    auto wide = [&](unsigned number) {
      return b.CreateZExt(operand(number), b.getInt64Ty());
    };
    Value *sum = b.CreateAdd(b.CreateMul(wide(0), wide(1)), wide(2));
    Value *result = PoisonValue::get(type);
    result = b.CreateInsertValue(result, b.CreateTrunc(sum, b.getInt32Ty()), 0);
    return b.CreateInsertValue(
        result, b.CreateTrunc(b.CreateLShr(sum, 32), b.getInt32Ty()), 1);
  }
  return nullptr;
}
