//===- ComplexProducts.cpp - Products of complex matrices -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: contractions of complex numbers of f32. Out: four of their real and
// imaginary parts, which are the library's; vectors and few elements stay, as
// they do for real numbers. The sums of two products are formed by who adds
// products in place, the parts by kernels with what makes the operands. Cost:
// the multiplications that complex ones are, and the parts in memory.
//
//===----------------------------------------------------------------------===//

#include "LowerLinearAlgebra.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

static bool isComplexOfF32(Value value) {
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

bool whale::isForLoops(int64_t rows, int64_t columns, int64_t contracted,
                       int64_t fewProducts) {
  return rows == 1 || columns == 1 ||
         (rows <= fewProducts / contracted &&
          columns <= fewProducts / contracted / rows);
}

LogicalResult whale::splitComplexProduct(RewriterBase &rewriter,
                                         stablehlo::DotGeneralOp op,
                                         int64_t fewProducts) {
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
  if (all(op.getResult()) == 0 || contracted == 0 ||
      isForLoops(all(op.getLhs()) / batch / contracted,
                 all(op.getRhs()) / batch / contracted, contracted,
                 fewProducts))
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
