//===- LowerLinearAlgebra.cpp - Transforms and factorizations -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In come fft, cholesky, triangular_solve and JAX's custom calls of LAPACK, out
// come calls of the runtime's routines, in the forms that the libraries of CPUs
// and GPUs share: matrices in column-major order, inverse transforms unscaled.
// What is around a call (transposes, factors, NaNs where a factorization has
// failed) are operations, which become kernels with their neighbours. It costs
// the transposes of those matrices that are not symmetric or wide.
//
//===----------------------------------------------------------------------===//

#include "Library/LowerLinearAlgebra.h"
#include "Kernel/KernelWork.h"
#include "whale/Dialect/StableHLO/IR/CustomCalls.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"

using namespace mlir;
using namespace whale;

/// The type that a routine computes in: f32 for half precision.
static Type widen(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  auto floating = dyn_cast<FloatType>(tensor.getElementType());
  if (!floating || floating.getWidth() >= 32)
    return type;
  return tensor.clone(Float32Type::get(type.getContext()));
}

static Value convert(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return stablehlo::ConvertOp::create(b, loc, type, value);
}

/// With the last two dimensions exchanged.
static RankedTensorType exchangeLast(RankedTensorType type) {
  SmallVector<int64_t> shape(type.getShape());
  std::swap(shape.end()[-1], shape.end()[-2]);
  return type.clone(shape);
}

static Value exchangeLast(OpBuilder &b, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  auto order = llvm::to_vector(llvm::seq<int64_t>(type.getRank()));
  std::swap(order.end()[-1], order.end()[-2]);
  return stablehlo::TransposeOp::create(b, loc, exchangeLast(type), value,
                                        order);
}

/// Calls the runtime's `function` for `op`. What has `matrixRank` dimensions is
/// passed in column-major order; nothing is if it is 0.
static SmallVector<Value> createCall(PatternRewriter &rewriter, Operation *op,
                                     StringRef function,
                                     ArrayRef<NamedAttribute> attributes,
                                     ValueRange operands, TypeRange types,
                                     int64_t matrixRank = 0) {
  Location loc = op->getLoc();
  auto isMatrix = [&](Type type) {
    return matrixRank >= 2 &&
           cast<RankedTensorType>(type).getRank() == matrixRank;
  };
  SmallVector<Value> passed;
  for (Value operand : operands) {
    Value value = convert(rewriter, loc, operand, widen(operand.getType()));
    passed.push_back(
        isMatrix(value.getType()) ? exchangeLast(rewriter, loc, value) : value);
  }
  SmallVector<Type> given;
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(widen(type));
    if (isMatrix(tensor))
      tensor = exchangeLast(tensor);
    given.push_back(tensor);
  }
  auto call = LibraryCallOp::create(rewriter, loc, given, function, passed);
  noteWork(call, op);
  for (NamedAttribute attribute : attributes)
    call->setAttr(attribute.getName(), attribute.getValue());
  SmallVector<Value> results;
  for (auto [result, type] : llvm::zip_equal(call->getResults(), types)) {
    Value value =
        isMatrix(type) ? exchangeLast(rewriter, loc, result) : Value(result);
    results.push_back(convert(rewriter, loc, value, type));
  }
  return results;
}

/// A constant of all elements `number`, real or complex.
static Value constant(OpBuilder &b, Location loc, RankedTensorType type,
                      double number) {
  auto complex = dyn_cast<ComplexType>(type.getElementType());
  APFloat value =
      b.getFloatAttr(complex ? complex.getElementType() : type.getElementType(),
                     number)
          .getValue();
  std::complex<APFloat> both(value, APFloat::getZero(value.getSemantics()));
  return stablehlo::ConstantOp::create(
      b, loc,
      complex ? DenseElementsAttr::get(type, both)
              : DenseElementsAttr::get(type, value));
}

namespace {

/// Libraries leave out the factor of inverse transforms.
struct LowerFft : OpRewritePattern<stablehlo::FftOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::FftOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getType());
    StringRef kind = stringifyFftType(op.getFftType());
    Value result =
        createCall(rewriter, op, "fft",
                   {rewriter.getNamedAttr("type", rewriter.getStringAttr(kind)),
                    rewriter.getNamedAttr("length", op.getFftLengthAttr())},
                   op->getOperands(), type)
            .front();
    if (kind.starts_with("I")) {
      double count = 1;
      for (int64_t length : op.getFftLength())
        count *= static_cast<double>(length);
      auto divide = [&](Value value) -> Value {
        auto part = cast<RankedTensorType>(value.getType());
        return stablehlo::DivOp::create(rewriter, loc, value,
                                        constant(rewriter, loc, part, count));
      };
      if (isa<ComplexType>(type.getElementType()))
        result = stablehlo::ComplexOp::create(
            rewriter, loc,
            divide(stablehlo::RealOp::create(rewriter, loc, result)),
            divide(stablehlo::ImagOp::create(rewriter, loc, result)));
      else
        result = divide(result);
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Attributes of a routine that reads a triangle of a matrix in row-major order
/// as if it were in column-major order: the other triangle.
static SmallVector<NamedAttribute>
exchangeTriangles(ArrayRef<NamedAttribute> attributes) {
  SmallVector<NamedAttribute> result(attributes);
  for (NamedAttribute &attribute : result)
    if (auto code = dyn_cast<IntegerAttr>(attribute.getValue());
        code && attribute.getName() == "uplo")
      if (int64_t letter = code.getValue().getZExtValue();
          letter == 'L' || letter == 'U')
        attribute.setValue(
            IntegerAttr::get(code.getType(), letter == 'L' ? 'U' : 'L'));
  return result;
}

/// Pattern: cholesky -> the triangle of library_call "lapack.potrf", or NaNs
struct LowerCholesky : OpRewritePattern<stablehlo::CholeskyOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::CholeskyOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(widen(op.getType()));
    int64_t rank = type.getRank();
    auto i32 = rewriter.getI32Type();
    auto infoType = RankedTensorType::get(type.getShape().drop_back(2), i32);
    SmallVector<Value> results = createCall(
        rewriter, op, "lapack.potrf",
        rewriter.getNamedAttr(
            "uplo", rewriter.getIntegerAttr(
                        rewriter.getIntegerType(8, /*isSigned=*/false),
                        op.getLower() ? 'U' : 'L')),
        op->getOperands(), {type, infoType});
    Value zero = stablehlo::ConstantOp::create(
        rewriter, loc,
        DenseElementsAttr::get(infoType, rewriter.getI32IntegerAttr(0)));
    Value isDone = stablehlo::BroadcastInDimOp::create(
        rewriter, loc, type.clone(rewriter.getI1Type()),
        stablehlo::CompareOp::create(rewriter, loc, results[1], zero,
                                     stablehlo::ComparisonDirection::EQ),
        llvm::to_vector(llvm::seq<int64_t>(rank - 2)));
    Value row =
        stablehlo::IotaOp::create(rewriter, loc, type.clone(i32), rank - 2);
    Value column =
        stablehlo::IotaOp::create(rewriter, loc, type.clone(i32), rank - 1);
    Value isInside = stablehlo::CompareOp::create(
        rewriter, loc, row, column,
        op.getLower() ? stablehlo::ComparisonDirection::GE
                      : stablehlo::ComparisonDirection::LE);
    auto select = [&](Value pred, Value value, double otherwise) -> Value {
      return stablehlo::SelectOp::create(
          rewriter, loc, pred, value, constant(rewriter, loc, type, otherwise));
    };
    Value factor =
        select(isDone, results[0], std::numeric_limits<double>::quiet_NaN());
    rewriter.replaceOp(
        op, convert(rewriter, loc, select(isInside, factor, 0), op.getType()));
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
    rewriter.replaceOp(
        op,
        createCall(
            rewriter, op, "triangular_solve",
            {flag("left_side", op.getLeftSide()), flag("lower", op.getLower()),
             flag("unit_diagonal", op.getUnitDiagonal()),
             rewriter.getNamedAttr(
                 "transpose_a", rewriter.getStringAttr(
                                    stringifyTranspose(op.getTransposeA())))},
            op->getOperands(), op->getResultTypes()));
    return success();
  }
};

/// Pattern: custom_call @lapack_sgetrf_ffi -> library_call "lapack.getrf"
///
/// Matrices are passed in column-major order, the largest of the operands'
/// ranks is theirs. Some are so without being moved: the transpose of a
/// Hermitian matrix has the other triangle, that of a wide matrix is a tall
/// one, with the two sides' singular vectors exchanged.
struct LowerLapack : OpRewritePattern<stablehlo::CustomCallOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::CustomCallOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<StringRef> routine = getLapackRoutine(op.getCallTargetName());
    if (!routine)
      return failure();
    SmallVector<NamedAttribute> attributes(getConfiguration(op).getValue());
    int64_t rank = 0;
    for (Type type : op->getOperandTypes())
      rank = std::max(rank, cast<RankedTensorType>(type).getRank());
    SmallVector<Type> types(op->getResultTypes());
    bool isWide = false;
    if (*routine == "trsm") {
      // Both are in row-major order in our own solver.
      rank = 0;
    } else if (*routine == "potrf") {
      rank = 0;
      attributes = exchangeTriangles(attributes);
    } else if (*routine == "gesdd") {
      auto type = cast<RankedTensorType>(op->getOperand(0).getType());
      isWide = type.getDimSize(rank - 2) < type.getDimSize(rank - 1);
    }
    if (isWide) {
      rank = 0;
      std::swap(types[2], types[3]);
    }
    SmallVector<Value> results =
        createCall(rewriter, op, ("lapack." + *routine).str(), attributes,
                   op->getOperands(), types, rank);
    if (isWide)
      std::swap(results[2], results[3]);
    rewriter.replaceOp(op, results);
    return success();
  }
};

/// Pattern: custom_call @xla_ffi_python_cpu_callback -> library_call "python"
struct LowerPython : OpRewritePattern<stablehlo::CustomCallOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::CustomCallOp op,
                                PatternRewriter &rewriter) const override {
    if (!isPythonCallback(op.getCallTargetName()))
      return failure();
    auto call =
        LibraryCallOp::create(rewriter, op.getLoc(), op->getResultTypes(),
                              LibraryCallOp::kPython, op->getOperands());
    call->setAttr("index", getConfiguration(op).get("index"));
    rewriter.replaceOp(op, call);
    return success();
  }
};

} // namespace

void whale::populateLinearAlgebraPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerCholesky, LowerFft, LowerLapack, LowerPython,
               LowerTriangularSolve>(patterns.getContext());
}
