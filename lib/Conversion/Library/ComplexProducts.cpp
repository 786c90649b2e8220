//===- ComplexProducts.cpp - Products and quotients of complex numbers ----===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: contractions of complex numbers of f32. Out: four of their real and
// imaginary parts, which are the library's; vectors and few elements stay, as
// they do for real numbers, and what the library multiplies whole. The sums of
// two products are formed by who adds products in place, the parts by kernels
// with what makes the operands. Cost: the multiplications that complex ones
// are, and the parts in memory.
//
// In: complex numbers divided by a constant without imaginary parts, as those
// of Fourier transforms and their gradients, or by real numbers in which a
// constant stands for zeros, as in gradients of magnitudes. Out: their parts
// divided by its real parts, two divisions instead of three in f64 and what is
// special.
//
//===----------------------------------------------------------------------===//

#include "Library/LowerLinearAlgebra.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

bool whale::isComplexOfF32(Value value) {
  auto complex = dyn_cast<ComplexType>(getElementTypeOrSelf(value));
  return complex && complex.getElementType().isF32();
}

namespace {
struct Parts {
  Value re, im;
};
} // namespace

static Parts split(OpBuilder &b, Location loc, Value value) {
  if (auto whole = value.getDefiningOp<stablehlo::ComplexOp>())
    return {whole.getLhs(), whole.getRhs()};
  return {stablehlo::RealOp::create(b, loc, value),
          stablehlo::ImagOp::create(b, loc, value)};
}

/// Whether all are the complex zero.
static bool isZero(Value value) {
  if (auto spread = value.getDefiningOp<stablehlo::BroadcastInDimOp>())
    return isZero(spread.getOperand());
  auto constant = value.getDefiningOp<stablehlo::ConstantOp>();
  auto elements =
      constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
  if (!elements || !elements.isSplat() ||
      !isa<ComplexType>(elements.getElementType()))
    return false;
  auto number = elements.getSplatValue<std::complex<APFloat>>();
  return number.real().isZero() && number.imag().isZero();
}

/// The real parts of numbers that, but for a constant where they are zero, are
/// real ones; or null.
static Value getRealParts(OpBuilder &b, stablehlo::SelectOp choice,
                          Value constant) {
  auto compare = choice.getPred().getDefiningOp<stablehlo::CompareOp>();
  auto real = choice.getOnFalse().getDefiningOp<stablehlo::ConvertOp>();
  if (!constant || !compare || !real ||
      compare.getComparisonDirection() != stablehlo::ComparisonDirection::EQ ||
      compare.getLhs() != real.getResult() ||
      real.getOperand().getType() != constant.getType() ||
      !isZero(compare.getRhs()))
    return {};
  return stablehlo::SelectOp::create(b, choice.getLoc(), choice.getPred(),
                                     constant, real.getOperand());
}

/// The real parts of what is made of constants, perhaps broadcast or stored in
/// each other, of finite numbers but zero without imaginary parts, or of what
/// is not zero because such numbers stand there; or null.
static Value getRealParts(OpBuilder &b, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  auto part =
      type.clone(cast<ComplexType>(type.getElementType()).getElementType());
  if (auto spread = value.getDefiningOp<stablehlo::BroadcastInDimOp>()) {
    Value parts = getRealParts(b, spread.getOperand());
    return parts ? stablehlo::BroadcastInDimOp::create(
                       b, spread.getLoc(), part, parts,
                       spread.getBroadcastDimensionsAttr())
                       .getResult()
                 : Value();
  }
  if (auto choice = value.getDefiningOp<stablehlo::SelectOp>())
    return getRealParts(b, choice, getRealParts(b, choice.getOnTrue()));
  if (auto store = value.getDefiningOp<stablehlo::DynamicUpdateSliceOp>()) {
    Value whole = getRealParts(b, store.getOperand());
    Value update = whole ? getRealParts(b, store.getUpdate()) : Value();
    return update ? stablehlo::DynamicUpdateSliceOp::create(
                        b, store.getLoc(), part, whole, update,
                        store.getStartIndices())
                        .getResult()
                  : Value();
  }
  auto constant = value.getDefiningOp<stablehlo::ConstantOp>();
  auto elements =
      constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
  if (!elements)
    return {};
  SmallVector<APFloat> parts;
  for (const std::complex<APFloat> &number :
       elements.getValues<std::complex<APFloat>>()) {
    if (!number.imag().isPosZero() || !number.real().isFiniteNonZero())
      return {};
    parts.push_back(number.real());
    if (elements.isSplat())
      break;
  }
  return stablehlo::ConstantOp::create(b, constant.getLoc(),
                                       DenseElementsAttr::get(part, parts));
}

namespace {
/// Pattern: divide(x, complex(c, 0)) ->
///   complex(real(x) / c - imag(x) * 0, imag(x) / c + real(x) * 0)
/// Of an infinite part, the other one is NaN, as where the product with the
/// reciprocal is written out. The zero has the sign of c, also of an infinite
/// one.
struct DivideParts : OpRewritePattern<stablehlo::DivOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::DivOp op,
                                PatternRewriter &rewriter) const override {
    if (!isa<ComplexType>(getElementTypeOrSelf(op.getType())))
      return failure();
    Value divisor = getRealParts(rewriter, op.getRhs());
    if (!divisor)
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Parts parts = split(rewriter, op.getLoc(), op.getLhs());
    auto type = cast<RankedTensorType>(divisor.getType());
    Value none = stablehlo::ConstantOp::create(
        b, DenseElementsAttr::get(type, b.getZeroAttr(type.getElementType())));
    Value finite = divisor.getDefiningOp<stablehlo::SelectOp>()
                       ? stablehlo::SignOp::create(b, divisor).getResult()
                       : divisor;
    Value zero = stablehlo::MulOp::create(b, finite, none);
    auto divide = [&](Value part) -> Value {
      return stablehlo::DivOp::create(b, part, divisor);
    };
    auto timesZero = [&](Value part) -> Value {
      return stablehlo::MulOp::create(b, part, zero);
    };
    Value re =
        stablehlo::SubtractOp::create(b, divide(parts.re), timesZero(parts.im));
    Value im =
        stablehlo::AddOp::create(b, divide(parts.im), timesZero(parts.re));
    rewriter.replaceOpWithNewOp<stablehlo::ComplexOp>(op, op.getType(), re, im);
    return success();
  }
};
} // namespace

void whale::populateComplexPatterns(RewritePatternSet &patterns) {
  patterns.add<DivideParts>(patterns.getContext());
}

bool whale::isForLoops(int64_t batch, int64_t rows, int64_t columns,
                       int64_t contracted, int64_t fewProducts) {
  // What the library spends on each product of a batch, which is less than on
  // the first.
  int64_t least = fewProducts / 32;
  int64_t few = std::max(fewProducts / batch, least);
  return rows == 1 || columns == 1 ||
         (rows <= few / contracted && columns <= few / contracted / rows);
}

LogicalResult whale::splitComplexProduct(RewriterBase &rewriter,
                                         stablehlo::DotGeneralOp op,
                                         int64_t fewProducts,
                                         int64_t wholeProducts) {
  if (!isComplexOfF32(op.getLhs()) || !isComplexOfF32(op.getRhs()) ||
      !isComplexOfF32(op.getResult()))
    return failure();
  auto numbers = op.getDotDimensionNumbers();
  auto count = [](Value value, ArrayRef<int64_t> dims) {
    int64_t count = 1;
    for (int64_t dim : dims)
      count *= cast<RankedTensorType>(value.getType()).getDimSize(dim);
    return count;
  };
  auto all = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements();
  };
  int64_t contracted =
      count(op.getLhs(), numbers.getLhsContractingDimensions());
  int64_t batch = count(op.getLhs(), numbers.getLhsBatchingDimensions());
  // Real and imaginary parts are differences and sums of two long sums each,
  // and err as both do; loops form sums in blocks, which is more exact.
  constexpr int64_t mostTerms = 1024;
  if (all(op.getResult()) == 0 || contracted == 0 || contracted > mostTerms)
    return failure();
  int64_t rows = all(op.getLhs()) / batch / contracted;
  int64_t columns = all(op.getRhs()) / batch / contracted;
  if (rows <= wholeProducts / contracted / columns ||
      isForLoops(batch, rows, columns, contracted, fewProducts))
    return failure();

  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getType()).clone(rewriter.getF32Type());
  // As exact as f32 is, on processors that would round its products, too.
  auto highest = stablehlo::PrecisionAttr::get(rewriter.getContext(),
                                               stablehlo::Precision::HIGHEST);
  ArrayAttr precision = rewriter.getArrayAttr({highest, highest});
  auto multiply = [&](Value left, Value right) -> Value {
    return stablehlo::DotGeneralOp::create(rewriter, loc, type, left, right,
                                           numbers, precision,
                                           /*algorithm=*/nullptr);
  };
  Parts left = split(rewriter, loc, op.getLhs());
  Parts right = split(rewriter, loc, op.getRhs());
  Value re = stablehlo::SubtractOp::create(
      rewriter, loc, multiply(left.re, right.re), multiply(left.im, right.im));
  Value im = stablehlo::AddOp::create(
      rewriter, loc, multiply(left.re, right.im), multiply(left.im, right.re));
  rewriter.replaceOpWithNewOp<stablehlo::ComplexOp>(op, op.getType(), re, im);
  return success();
}
