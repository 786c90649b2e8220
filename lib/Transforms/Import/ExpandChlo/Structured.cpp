//===- Structured.cpp - Operations of chlo that are no formulas -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// top_k is a stable sort of the whole dimension with its indices, and a slice
// of both: it costs the sort, whatever k is. mulhi is a product in twice the
// bits. ragged_dot is one dot_general over a copy of the left operand for each
// group, zero outside of the group's rows: it does the work of a dense product
// for each group.
//
//===----------------------------------------------------------------------===//

#include "Structured.h"
#include "whale/Dialect/CHLO/IR/CHLOOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;

namespace whale::elementwise {

namespace {

stablehlo::CompareOp compare(ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                             stablehlo::ComparisonDirection direction,
                             stablehlo::ComparisonType kind) {
  Type type = cast<RankedTensorType>(lhs.getType()).clone(b.getI1Type());
  return stablehlo::CompareOp::create(
      b, type, lhs, rhs,
      stablehlo::ComparisonDirectionAttr::get(b.getContext(), direction),
      stablehlo::ComparisonTypeAttr::get(b.getContext(), kind));
}

Value broadcast(ImplicitLocOpBuilder &b, Value value, RankedTensorType type,
                ArrayRef<int64_t> dims) {
  return stablehlo::BroadcastInDimOp::create(b, type, value,
                                             b.getDenseI64ArrayAttr(dims));
}

// Pattern: chlo.top_k(x) -> slice(sort(x, iota)), largest first, stable
struct ExpandTopK : OpRewritePattern<mlir::chlo::TopKOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(mlir::chlo::TopKOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<RankedTensorType>(op.getOperand().getType());
    Type element = type.getElementType();
    if (!type.hasStaticShape() || type.getRank() == 0)
      return failure();
    int64_t last = type.getRank() - 1;
    auto indexType = cast<RankedTensorType>(op.getIndices().getType())
                         .clone(type.getShape());
    Value iota = stablehlo::IotaOp::create(b, cast<RankedTensorType>(indexType),
                                           b.getI64IntegerAttr(last));
    auto sort = stablehlo::SortOp::create(b, ValueRange{op.getOperand(), iota},
                                          last, /*isStable=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      Type scalar = RankedTensorType::get({}, element);
      Type index = RankedTensorType::get(
          {}, cast<RankedTensorType>(indexType).getElementType());
      Block *block = b.createBlock(&sort.getComparator(), {},
                                   {scalar, scalar, index, index},
                                   SmallVector<Location>(4, op.getLoc()));
      auto kind = stablehlo::ComparisonType::TOTALORDER;
      if (element.isUnsignedInteger() || element.isInteger(1))
        kind = stablehlo::ComparisonType::UNSIGNED;
      else if (isa<IntegerType>(element))
        kind = stablehlo::ComparisonType::SIGNED;
      Value first = compare(b, block->getArgument(0), block->getArgument(1),
                            stablehlo::ComparisonDirection::GT, kind);
      stablehlo::ReturnOp::create(b, first);
    }
    SmallVector<int64_t> starts(type.getRank(), 0), strides(type.getRank(), 1);
    SmallVector<int64_t> limits(type.getShape());
    limits[last] = op.getK();
    SmallVector<Value> results;
    for (auto [sorted, result] :
         llvm::zip_equal(sort.getResults(), op.getResults()))
      results.push_back(stablehlo::SliceOp::create(b, result.getType(), sorted,
                                                   starts, limits, strides));
    rewriter.replaceOp(op, results);
    return success();
  }
};

// Pattern: chlo.mulhi(x, y) -> shift(convert(x) * convert(y)) in twice the bits
struct ExpandMulhi : OpRewritePattern<mlir::chlo::MulhiOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(mlir::chlo::MulhiOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = dyn_cast<RankedTensorType>(op.getType());
    auto element =
        type ? dyn_cast<IntegerType>(type.getElementType()) : nullptr;
    if (!element || element.getWidth() > 32 || !type.hasStaticShape())
      return failure();
    unsigned width = element.getWidth();
    auto wide = type.clone(
        IntegerType::get(b.getContext(), 2 * width, element.getSignedness()));
    Value lhs = stablehlo::ConvertOp::create(b, wide, op.getLhs());
    Value rhs = stablehlo::ConvertOp::create(b, wide, op.getRhs());
    Value product = stablehlo::MulOp::create(b, wide, lhs, rhs);
    Value shift = stablehlo::ConstantOp::create(
        b, DenseElementsAttr::get(wide, APInt(2 * width, width)));
    Value high =
        element.isUnsigned()
            ? stablehlo::ShiftRightLogicalOp::create(b, wide, product, shift)
                  .getResult()
            : stablehlo::ShiftRightArithmeticOp::create(b, wide, product, shift)
                  .getResult();
    rewriter.replaceOpWithNewOp<stablehlo::ConvertOp>(op, type, high);
    return success();
  }
};

// Pattern: chlo.ragged_dot(x, w, sizes)
//   -> dot_general(x in copies for each group, masked to the group's rows, w)
//
// A ragged free dimension sums over the groups, since each row is left in one
// copy alone; a ragged contracting dimension keeps the groups as a dimension of
// the result.
struct ExpandRaggedDot : OpRewritePattern<mlir::chlo::RaggedDotOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(mlir::chlo::RaggedDotOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto dims = op.getRaggedDotDimensionNumbers();
    auto lhsType = cast<RankedTensorType>(op.getLhs().getType());
    auto sizesType = cast<RankedTensorType>(op.getGroupSizes().getType());
    if (dims.getLhsRaggedDimensions().size() != 1 ||
        !dims.getLhsBatchingDimensions().empty() || sizesType.getRank() != 1 ||
        !lhsType.hasStaticShape() || !sizesType.hasStaticShape())
      return failure();
    int64_t ragged = dims.getLhsRaggedDimensions().front();
    int64_t groups = sizesType.getDimSize(0);
    bool contractsRagged =
        llvm::is_contained(dims.getLhsContractingDimensions(), ragged);
    if (!contractsRagged && dims.getRhsGroupDimensions().size() != 1)
      return failure();

    // Dimension 0 of the copies is the group.
    SmallVector<int64_t> shape = {groups};
    llvm::append_range(shape, lhsType.getShape());
    auto copiesType = lhsType.clone(shape);
    auto indexType =
        cast<RankedTensorType>(copiesType.clone(sizesType.getElementType()));
    auto copies = broadcast(
        b, op.getLhs(), cast<RankedTensorType>(copiesType),
        llvm::to_vector(llvm::seq<int64_t>(1, lhsType.getRank() + 1)));
    auto [starts, ends] = bounds(b, op.getGroupSizes());
    Value row = stablehlo::IotaOp::create(b, indexType,
                                          b.getI64IntegerAttr(ragged + 1));
    auto kind = sizesType.getElementType().isUnsignedInteger()
                    ? stablehlo::ComparisonType::UNSIGNED
                    : stablehlo::ComparisonType::SIGNED;
    Value fromStart = compare(b, row, broadcast(b, starts, indexType, {0}),
                              stablehlo::ComparisonDirection::GE, kind);
    Value toEnd = compare(b, row, broadcast(b, ends, indexType, {0}),
                          stablehlo::ComparisonDirection::LT, kind);
    Value mask =
        stablehlo::AndOp::create(b, fromStart.getType(), fromStart, toEnd);
    Value zero = stablehlo::ConstantOp::create(
        b, cast<DenseElementsAttr>(b.getZeroAttr(copiesType)));
    Value masked =
        stablehlo::SelectOp::create(b, copiesType, mask, copies, zero);

    SmallVector<int64_t> lhsContracting,
        rhsContracting(dims.getRhsContractingDimensions());
    for (int64_t dim : dims.getLhsContractingDimensions())
      lhsContracting.push_back(dim + 1);
    if (!contractsRagged) {
      lhsContracting.push_back(0);
      rhsContracting.push_back(dims.getRhsGroupDimensions().front());
    }
    ArrayAttr precision;
    if (auto config = op.getPrecisionConfig()) {
      SmallVector<Attribute> values;
      for (Attribute attr : *config)
        values.push_back(stablehlo::PrecisionAttr::get(
            b.getContext(),
            static_cast<stablehlo::Precision>(
                cast<mlir::chlo::PrecisionAttr>(attr).getValue())));
      precision = b.getArrayAttr(values);
    }
    rewriter.replaceOpWithNewOp<stablehlo::DotGeneralOp>(
        op, op.getType(), masked, op.getRhs(),
        stablehlo::DotDimensionNumbersAttr::get(b.getContext(), {}, {},
                                                lhsContracting, rhsContracting),
        precision, stablehlo::DotAlgorithmAttr());
    return success();
  }

  /// The first row of each group and the row after its last one: sums of the
  /// sizes under a triangular mask.
  static std::pair<Value, Value> bounds(ImplicitLocOpBuilder &b, Value sizes) {
    auto type = cast<RankedTensorType>(sizes.getType());
    int64_t groups = type.getDimSize(0);
    auto square =
        cast<RankedTensorType>(type.clone(ArrayRef<int64_t>{groups, groups}));
    auto kind = stablehlo::ComparisonType::SIGNED;
    if (type.getElementType().isUnsignedInteger())
      kind = stablehlo::ComparisonType::UNSIGNED;
    Value group = stablehlo::IotaOp::create(b, square, b.getI64IntegerAttr(0));
    Value other = stablehlo::IotaOp::create(b, square, b.getI64IntegerAttr(1));
    Value isBefore =
        compare(b, other, group, stablehlo::ComparisonDirection::LE, kind);
    Value zeros = stablehlo::ConstantOp::create(
        b, cast<DenseElementsAttr>(b.getZeroAttr(square)));
    Value counted = stablehlo::SelectOp::create(
        b, square, isBefore, broadcast(b, sizes, square, {1}), zeros);
    auto scalar = cast<RankedTensorType>(type.clone(ArrayRef<int64_t>{}));
    Value zero = stablehlo::ConstantOp::create(
        b, cast<DenseElementsAttr>(b.getZeroAttr(scalar)));
    auto reduce = stablehlo::ReduceOp::create(
        b, TypeRange{type}, ValueRange{counted}, ValueRange{zero},
        b.getDenseI64ArrayAttr({1}));
    {
      OpBuilder::InsertionGuard guard(b);
      Block *block = b.createBlock(&reduce.getBody(), {}, {scalar, scalar},
                                   {b.getLoc(), b.getLoc()});
      Value sum = stablehlo::AddOp::create(b, scalar, block->getArgument(0),
                                           block->getArgument(1));
      stablehlo::ReturnOp::create(b, sum);
    }
    Value ends = reduce.getResult(0);
    Value starts = stablehlo::SubtractOp::create(b, type, ends, sizes);
    return {starts, ends};
  }
};

} // namespace

void populateStructuredPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandMulhi, ExpandRaggedDot, ExpandTopK>(patterns.getContext());
}

} // namespace whale::elementwise
