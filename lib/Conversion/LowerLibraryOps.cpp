//===- LowerLibraryOps.cpp - whale-lower-library-ops ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contractions and convolutions that the library computes. Of the dimensions of
// a contraction only their strides matter; a copy is made only where a group of
// dimensions has no single stride.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include <numeric>

namespace whale {
#define GEN_PASS_DEF_LOWERLIBRARYOPS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

/// A matrix product in the library costs a call: below this many rows, a group
/// of dimensions that has no single stride is copied instead of looped over.
static constexpr int64_t kMinRows = 32;

/// The types that the library multiplies.
static bool isLibraryType(Type type) {
  return type.isF32() || type.isBF16() || type.isF16();
}

static SmallVector<int64_t> getStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

namespace {

/// Dimensions that are walked together, with a stride in each of two buffers.
struct Group {
  int64_t size = 1, first = 0, second = 0;
};

/// Merges neighbours of `dims` (outermost first) that one stride covers in both
/// buffers.
SmallVector<Group> collapse(ArrayRef<Group> dims) {
  SmallVector<Group> result;
  for (Group dim : dims) {
    if (dim.size == 1)
      continue;
    if (!result.empty() && result.back().first == dim.size * dim.first &&
        result.back().second == dim.size * dim.second)
      result.back() = {result.back().size * dim.size, dim.first, dim.second};
    else
      result.push_back(dim);
  }
  if (result.empty())
    result.push_back({1, 0, 0});
  return result;
}

/// One operand of a contraction.
struct Side {
  Value value;
  SmallVector<int64_t> batch, contracting, free;

  ArrayRef<int64_t> shape() const {
    return cast<RankedTensorType>(value.getType()).getShape();
  }

  void findFree() {
    for (int64_t dim = 0, rank = shape().size(); dim < rank; ++dim)
      if (!llvm::is_contained(batch, dim) &&
          !llvm::is_contained(contracting, dim))
        free.push_back(dim);
  }

  /// Copies the operand to the order batch, free, contracting.
  void transpose(OpBuilder &b, Location loc) {
    SmallVector<int64_t> order(batch);
    llvm::append_range(order, free);
    llvm::append_range(order, contracting);
    SmallVector<int64_t> to;
    for (int64_t dim : order)
      to.push_back(shape()[dim]);
    auto type = cast<RankedTensorType>(value.getType());
    value = stablehlo::TransposeOp::create(
        b, loc, RankedTensorType::get(to, type.getElementType()), value,
        b.getDenseI64ArrayAttr(order));
    auto count = [&](SmallVector<int64_t> &dims, int64_t from) {
      for (int64_t &dim : dims)
        dim = from++;
    };
    count(batch, 0);
    count(free, batch.size());
    count(contracting, batch.size() + free.size());
  }

  SmallVector<Group> groups(ArrayRef<int64_t> dims,
                            ArrayRef<int64_t> other) const {
    SmallVector<int64_t> strides = getStrides(shape());
    SmallVector<Group> result;
    for (auto [dim, stride] : llvm::zip_equal(dims, other))
      result.push_back({shape()[dim], strides[dim], stride});
    return result;
  }

  /// True if one stride covers the contracted dimensions in their order.
  bool contractsInOneStride() const {
    SmallVector<int64_t> strides = getStrides(shape());
    SmallVector<Group> dims;
    for (int64_t dim : contracting)
      dims.push_back({shape()[dim], strides[dim], strides[dim]});
    return collapse(dims).size() == 1;
  }
};

/// Pattern: dot_general -> whale.matmul
struct DotGeneralToMatmul : OpRewritePattern<stablehlo::DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::DotGeneralOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getType());
    auto numbers = op.getDotDimensionNumbers();
    Side lhs{op.getLhs(), {}, {}, {}}, rhs{op.getRhs(), {}, {}, {}};
    llvm::append_range(lhs.batch, numbers.getLhsBatchingDimensions());
    llvm::append_range(lhs.contracting, numbers.getLhsContractingDimensions());
    llvm::append_range(rhs.batch, numbers.getRhsBatchingDimensions());
    llvm::append_range(rhs.contracting, numbers.getRhsContractingDimensions());
    lhs.findFree();
    rhs.findFree();
    int64_t contracted = 1;
    for (int64_t dim : lhs.contracting)
      contracted *= lhs.shape()[dim];
    if (contracted == 0) {
      rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(
          op, cast<DenseElementsAttr>(rewriter.getZeroAttr(type)));
      return success();
    }
    if (!makeLibraryTypes(rewriter, op, lhs.value, rhs.value) ||
        !isLibraryType(type.getElementType()) || type.getNumElements() == 0)
      return failure();

    // Contract in the order in which the right operand lies in memory.
    SmallVector<int64_t> order(lhs.contracting.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](int64_t a, int64_t b) {
      return rhs.contracting[a] < rhs.contracting[b];
    });
    auto permute = [&](SmallVector<int64_t> &dims) {
      SmallVector<int64_t> old(dims);
      for (auto [to, from] : llvm::enumerate(order))
        dims[to] = old[from];
    };
    permute(lhs.contracting);
    permute(rhs.contracting);
    if (!lhs.contractsInOneStride())
      lhs.transpose(rewriter, loc);
    if (!rhs.contractsInOneStride())
      rhs.transpose(rewriter, loc);

    SmallVector<int64_t> outStrides = getStrides(type.getShape());
    ArrayRef<int64_t> out(outStrides);
    auto rowsOf = [&] {
      return collapse(
          lhs.groups(lhs.free, out.slice(lhs.batch.size(), lhs.free.size())));
    };
    auto columnsOf = [&] {
      return collapse(rhs.groups(rhs.free, out.take_back(rhs.free.size())));
    };
    auto needsCopy = [](ArrayRef<Group> groups, const Side &side) {
      if (groups.size() > 1 && groups.back().size < kMinRows)
        return true;
      // The library wants a stride of one in each matrix.
      SmallVector<int64_t> strides = getStrides(side.shape());
      bool unit = groups.back().size == 1 || groups.back().first == 1;
      for (int64_t dim : side.contracting)
        unit |= strides[dim] == 1;
      return !unit;
    };
    SmallVector<Group> rows = rowsOf(), columns = columnsOf();
    if (needsCopy(rows, lhs)) {
      lhs.transpose(rewriter, loc);
      rows = rowsOf();
    }
    if (needsCopy(columns, rhs)) {
      rhs.transpose(rewriter, loc);
      columns = columnsOf();
    }

    SmallVector<int64_t> lhsStrides = getStrides(lhs.shape());
    SmallVector<int64_t> rhsStrides = getStrides(rhs.shape());
    SmallVector<int64_t> batch;
    auto addBatch = [&](int64_t size, int64_t left, int64_t right,
                        int64_t result) {
      if (size == 1)
        return;
      size_t last = batch.size();
      if (last && batch[last - 3] == size * left &&
          batch[last - 2] == size * right && batch[last - 1] == size * result) {
        batch[last - 4] *= size;
        batch[last - 3] = left;
        batch[last - 2] = right;
        batch[last - 1] = result;
        return;
      }
      batch.append({size, left, right, result});
    };
    for (auto [number, dims] :
         llvm::enumerate(llvm::zip_equal(lhs.batch, rhs.batch)))
      addBatch(lhs.shape()[std::get<0>(dims)], lhsStrides[std::get<0>(dims)],
               rhsStrides[std::get<1>(dims)], outStrides[number]);
    for (Group group : ArrayRef(rows).drop_back())
      addBatch(group.size, group.first, 0, group.second);
    for (Group group : ArrayRef(columns).drop_back())
      addBatch(group.size, 0, group.first, group.second);

    SmallVector<int64_t> strides;
    for (int64_t dim : rhs.contracting)
      strides.push_back(rhsStrides[dim]);
    Group inner = collapse(lhs.groups(lhs.contracting, strides)).back();
    Group row = rows.back(), column = columns.back();
    rewriter.replaceOpWithNewOp<MatmulOp>(
        op, type, lhs.value, rhs.value, batch,
        ArrayRef<int64_t>{row.size, row.first, row.second},
        ArrayRef<int64_t>{column.size, column.first, column.second},
        ArrayRef<int64_t>{inner.size, inner.first, inner.second});
    return success();
  }

  /// Converts 8-bit floats, and the narrower of two unlike types, to a type of
  /// the library; false if there is none.
  static bool makeLibraryTypes(PatternRewriter &rewriter, Operation *op,
                               Value &lhs, Value &rhs) {
    auto wanted = [](Type type) -> Type {
      if (isLibraryType(type))
        return type;
      auto floating = dyn_cast<FloatType>(type);
      if (floating && floating.getWidth() == 8)
        return Float32Type::get(type.getContext());
      return {};
    };
    Type left = wanted(getElementTypeOrSelf(lhs.getType()));
    Type right = wanted(getElementTypeOrSelf(rhs.getType()));
    if (!left || !right)
      return false;
    Type common = left == right ? left : rewriter.getF32Type();
    for (Value *value : {&lhs, &rhs}) {
      auto type = cast<RankedTensorType>(value->getType());
      if (type.getElementType() != common)
        *value = stablehlo::ConvertOp::create(rewriter, op->getLoc(),
                                              type.clone(common), *value);
    }
    return true;
  }
};

/// Pattern: convolution -> whale.convolution
struct ConvolutionToLibrary : OpRewritePattern<stablehlo::ConvolutionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ConvolutionOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    Value lhs = op.getLhs(), rhs = op.getRhs();
    if (type.getNumElements() == 0 || !isLibraryType(type.getElementType()) ||
        !DotGeneralToMatmul::makeLibraryTypes(rewriter, op, lhs, rhs))
      return failure();
    if (cast<ShapedType>(lhs.getType()).getNumElements() == 0 ||
        cast<ShapedType>(rhs.getType()).getNumElements() == 0) {
      rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(
          op, cast<DenseElementsAttr>(rewriter.getZeroAttr(type)));
      return success();
    }
    auto numbers = op.getDimensionNumbers();
    size_t rank = numbers.getInputSpatialDimensions().size();
    auto orOnes = [&](std::optional<ArrayRef<int64_t>> values) {
      return values ? SmallVector<int64_t>(*values)
                    : SmallVector<int64_t>(rank, 1);
    };
    SmallVector<int64_t> padding(2 * rank, 0);
    if (auto attribute = op.getPadding())
      padding = llvm::to_vector(attribute->getValues<int64_t>());
    SmallVector<bool> reversal(rank, false);
    if (auto attribute = op.getWindowReversal())
      reversal.assign(attribute->begin(), attribute->end());
    rewriter.replaceOpWithNewOp<ConvolutionOp>(
        op, type, lhs, rhs, orOnes(op.getWindowStrides()), padding,
        orOnes(op.getLhsDilation()), orOnes(op.getRhsDilation()), reversal,
        numbers.getInputBatchDimension(), numbers.getInputFeatureDimension(),
        numbers.getInputSpatialDimensions(),
        numbers.getKernelInputFeatureDimension(),
        numbers.getKernelOutputFeatureDimension(),
        numbers.getKernelSpatialDimensions(), numbers.getOutputBatchDimension(),
        numbers.getOutputFeatureDimension(),
        numbers.getOutputSpatialDimensions(), op.getFeatureGroupCount(),
        op.getBatchGroupCount());
    return success();
  }
};

struct LowerLibraryOps : whale::impl::LowerLibraryOpsBase<LowerLibraryOps> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<DotGeneralToMatmul, ConvolutionToLibrary>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
