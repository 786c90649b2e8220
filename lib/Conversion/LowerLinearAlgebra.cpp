//===- LowerLinearAlgebra.cpp - Transforms and factorizations -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations, and custom calls of JAX, that a routine of the runtime computes.
//
//===----------------------------------------------------------------------===//

#include "LowerLinearAlgebra.h"
#include "whale/Dialect/StableHLO/IR/LinearAlgebraCalls.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"

using namespace mlir;
using namespace whale;

/// Replaces `op` by a call of the runtime's `function` with `attributes`.
/// Half precision is computed in f32.
static void replaceByCall(PatternRewriter &rewriter, Operation *op,
                          StringRef function,
                          ArrayRef<NamedAttribute> attributes) {
  auto widen = [&](Type type) -> Type {
    auto tensor = cast<RankedTensorType>(type);
    auto floating = dyn_cast<FloatType>(tensor.getElementType());
    if (!floating || floating.getWidth() >= 32)
      return type;
    return tensor.clone(rewriter.getF32Type());
  };
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    Type type = widen(operand.getType());
    operands.push_back(type == operand.getType()
                           ? operand
                           : stablehlo::ConvertOp::create(
                                 rewriter, op->getLoc(), type, operand)
                                 .getResult());
  }
  auto types = llvm::map_to_vector(op->getResultTypes(), widen);
  auto call =
      LibraryCallOp::create(rewriter, op->getLoc(), types, function, operands);
  for (NamedAttribute attribute : attributes)
    call->setAttr(attribute.getName(), attribute.getValue());
  SmallVector<Value> results;
  for (auto [result, type] :
       llvm::zip_equal(call->getResults(), op->getResultTypes()))
    results.push_back(result.getType() == type
                          ? Value(result)
                          : stablehlo::ConvertOp::create(rewriter, op->getLoc(),
                                                         type, result));
  rewriter.replaceOp(op, results);
}

namespace {

struct LowerFft : OpRewritePattern<stablehlo::FftOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::FftOp op,
                                PatternRewriter &rewriter) const override {
    replaceByCall(
        rewriter, op, "fft",
        {rewriter.getNamedAttr(
             "type", rewriter.getStringAttr(stringifyFftType(op.getFftType()))),
         rewriter.getNamedAttr("length", op.getFftLengthAttr())});
    return success();
  }
};

struct LowerCholesky : OpRewritePattern<stablehlo::CholeskyOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::CholeskyOp op,
                                PatternRewriter &rewriter) const override {
    replaceByCall(
        rewriter, op, "cholesky",
        rewriter.getNamedAttr("lower", rewriter.getBoolAttr(op.getLower())));
    return success();
  }
};

struct LowerTriangularSolve : OpRewritePattern<stablehlo::TriangularSolveOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::TriangularSolveOp op,
                                PatternRewriter &rewriter) const override {
    auto flag = [&](StringRef name, bool value) {
      return rewriter.getNamedAttr(name, rewriter.getBoolAttr(value));
    };
    replaceByCall(
        rewriter, op, "triangular_solve",
        {flag("left_side", op.getLeftSide()), flag("lower", op.getLower()),
         flag("unit_diagonal", op.getUnitDiagonal()),
         rewriter.getNamedAttr(
             "transpose_a",
             rewriter.getStringAttr(stringifyTranspose(op.getTransposeA())))});
    return success();
  }
};

/// Pattern: custom_call @lapack_sgetrf_ffi -> library_call "lapack.getrf"
struct LowerLapack : OpRewritePattern<stablehlo::CustomCallOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::CustomCallOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<StringRef> routine = getLapackRoutine(op.getCallTargetName());
    if (!routine)
      return failure();
    auto config = op->getAttrOfType<DictionaryAttr>("mhlo.backend_config");
    SmallVector<NamedAttribute> attributes;
    if (config)
      llvm::append_range(attributes, config);
    replaceByCall(rewriter, op, ("lapack." + *routine).str(), attributes);
    return success();
  }
};

} // namespace

void whale::populateLinearAlgebraPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerCholesky, LowerFft, LowerLapack, LowerTriangularSolve>(
      patterns.getContext());
}
