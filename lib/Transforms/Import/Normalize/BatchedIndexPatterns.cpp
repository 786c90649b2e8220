//===- BatchedIndexPatterns.cpp - Indices that count along ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a gather or scatter whose indices are concatenated, one of them an iota.
// Out: the same with a batching dimension in place of that index.
//
// `x[jnp.arange(n), i]` looks up row r for result r: the first index is the
// number of the result, so that dimension is a batching dimension, along which
// devices and micro-batches can share the lookup out. Cost: for each gather or
// scatter, a walk from each of its indices back through broadcasts; each
// rewrite moves one of them.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/IR/Matchers.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;

namespace whale::normalize {

namespace {

bool isZero(Value value) {
  while (auto broadcast = value.getDefiningOp<stablehlo::BroadcastInDimOp>())
    value = broadcast.getOperand();
  return matchPattern(value, m_Zero());
}

/// The `i` in what jnp writes around every index: where(i < 0, i + n, i).
Value wrappedIndex(Value value) {
  auto select = value.getDefiningOp<stablehlo::SelectOp>();
  if (!select)
    return {};
  auto compare = select.getPred().getDefiningOp<stablehlo::CompareOp>();
  bool isWrapped =
      compare && compare.getLhs() == select.getOnFalse() &&
      compare.getComparisonDirection() == stablehlo::ComparisonDirection::LT &&
      isZero(compare.getRhs());
  return isWrapped ? select.getOnFalse() : Value();
}

/// The dimension along which the elements of `value` count 0, 1, 2, ...: each
/// is its own index there.
std::optional<int64_t> countedDim(Value value) {
  SmallVector<stablehlo::BroadcastInDimOp> broadcasts;
  auto iota = value.getDefiningOp<stablehlo::IotaOp>();
  while (!iota) {
    if (auto broadcast = value.getDefiningOp<stablehlo::BroadcastInDimOp>()) {
      broadcasts.push_back(broadcast);
      value = broadcast.getOperand();
    } else if (Value index = wrappedIndex(value)) {
      value = index;
    } else {
      return std::nullopt;
    }
    iota = value.getDefiningOp<stablehlo::IotaOp>();
  }
  auto element = dyn_cast<IntegerType>(iota.getType().getElementType());
  // Narrow types may wrap round, and go on below zero.
  if (!element || element.getWidth() < 32)
    return std::nullopt;
  int64_t dim = iota.getIotaDimension();
  for (stablehlo::BroadcastInDimOp broadcast : llvm::reverse(broadcasts)) {
    int64_t target = broadcast.getBroadcastDimensions()[dim];
    if (broadcast.getOperand().getType().getDimSize(dim) !=
        broadcast.getType().getDimSize(target))
      return std::nullopt;
    dim = target;
  }
  return dim;
}

/// The indices of a gather or scatter, and which dimension of the operand each
/// of them stands for.
struct Indices {
  Value value;
  int64_t vectorDim;
  SmallVector<int64_t> map, operandBatching, indicesBatching;
  /// Dimensions of the operand of which each index takes one element.
  SmallVector<int64_t> taken;

  /// Turns an index that counts along into a batching dimension. False if there
  /// is none.
  bool moveCounted(ArrayRef<int64_t> operandShape, PatternRewriter &rewriter);
};

bool Indices::moveCounted(ArrayRef<int64_t> operandShape,
                          PatternRewriter &rewriter) {
  auto pieces = value.getDefiningOp<stablehlo::ConcatenateOp>();
  auto isOneIndex = [&](Type piece) {
    return cast<RankedTensorType>(piece).getDimSize(vectorDim) == 1;
  };
  if (!pieces || int64_t(pieces.getDimension()) != vectorDim ||
      !llvm::all_of(pieces->getOperandTypes(), isOneIndex) || map.size() < 2)
    return false;
  for (auto [index, piece] : llvm::enumerate(pieces.getInputs())) {
    std::optional<int64_t> dim = countedDim(piece);
    auto type = cast<RankedTensorType>(piece.getType());
    int64_t operandDim = map[index];
    if (!dim || *dim == vectorDim || !llvm::is_contained(taken, operandDim) ||
        llvm::is_contained(indicesBatching, *dim) ||
        type.getDimSize(*dim) != operandShape[operandDim])
      continue;
    SmallVector<Value> rest(pieces.getInputs());
    rest.erase(rest.begin() + index);
    map.erase(map.begin() + index);
    llvm::erase(taken, operandDim);
    auto at = llvm::lower_bound(operandBatching, operandDim);
    indicesBatching.insert(
        indicesBatching.begin() + (at - operandBatching.begin()), *dim);
    operandBatching.insert(at, operandDim);
    value = rest.size() == 1 ? rest.front()
                             : Value(stablehlo::ConcatenateOp::create(
                                   rewriter, pieces.getLoc(), rest, vectorDim));
    return true;
  }
  return false;
}

// Pattern: gather(x, concatenate(iota, i)) -> gather(x, i), batched
struct BatchGather : OpRewritePattern<stablehlo::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::GatherOp op,
                                PatternRewriter &rewriter) const override {
    stablehlo::GatherDimensionNumbersAttr numbers = op.getDimensionNumbers();
    Indices indices{op.getStartIndices(),
                    numbers.getIndexVectorDim(),
                    llvm::to_vector(numbers.getStartIndexMap()),
                    llvm::to_vector(numbers.getOperandBatchingDims()),
                    llvm::to_vector(numbers.getStartIndicesBatchingDims()),
                    llvm::to_vector(numbers.getCollapsedSliceDims())};
    if (!indices.moveCounted(op.getOperand().getType().getShape(), rewriter))
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getStartIndicesMutable().assign(indices.value);
      op.setDimensionNumbersAttr(stablehlo::GatherDimensionNumbersAttr::get(
          op.getContext(), numbers.getOffsetDims(), indices.taken,
          indices.operandBatching, indices.indicesBatching, indices.map,
          indices.vectorDim));
    });
    return success();
  }
};

// Pattern: scatter(x, concatenate(iota, i), u) -> scatter(x, i, u), batched
struct BatchScatter : OpRewritePattern<stablehlo::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ScatterOp op,
                                PatternRewriter &rewriter) const override {
    stablehlo::ScatterDimensionNumbersAttr numbers =
        op.getScatterDimensionNumbers();
    Indices indices{op.getScatterIndices(),
                    numbers.getIndexVectorDim(),
                    llvm::to_vector(numbers.getScatterDimsToOperandDims()),
                    llvm::to_vector(numbers.getInputBatchingDims()),
                    llvm::to_vector(numbers.getScatterIndicesBatchingDims()),
                    llvm::to_vector(numbers.getInsertedWindowDims())};
    auto type = cast<RankedTensorType>(op.getInputs().front().getType());
    if (!indices.moveCounted(type.getShape(), rewriter))
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getScatterIndicesMutable().assign(indices.value);
      op.setScatterDimensionNumbersAttr(
          stablehlo::ScatterDimensionNumbersAttr::get(
              op.getContext(), numbers.getUpdateWindowDims(), indices.taken,
              indices.operandBatching, indices.indicesBatching, indices.map,
              indices.vectorDim));
    });
    return success();
  }
};

} // namespace

void populateBatchedIndexPatterns(RewritePatternSet &patterns) {
  patterns.add<BatchGather, BatchScatter>(patterns.getContext());
}

} // namespace whale::normalize
