//===- IndexingRules.cpp - Sharding rules of gather and scatter ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpRuleBuilder.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/Reducers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// Zeros of the devices that don't hold a row must be neutral in the sum.
static bool sumsWithZeros(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<FloatType>(element) ||
         (isa<IntegerType>(element) && !element.isInteger(1));
}

static OpRule gather(hlo::GatherOp op) {
  OpRuleBuilder builder(op);
  hlo::GatherDimensionNumbersAttr dims = op.getDimensionNumbers();
  TensorRef operand = operandRef(0), indices = operandRef(1),
            result = resultRef(0);

  // Batch dimensions of the result follow those of the indices.
  SmallVector<unsigned> batchDims;
  for (int64_t dim = 0; dim < builder.rank(result); ++dim)
    if (!llvm::is_contained(dims.getOffsetDims(), dim))
      batchDims.push_back(dim);
  unsigned next = 0;
  for (int64_t dim = 0; dim < builder.rank(indices); ++dim) {
    if (dim == dims.getIndexVectorDim())
      continue;
    SmallVector<std::pair<TensorRef, unsigned>> places{
        {indices, unsigned(dim)}, {result, batchDims[next++]}};
    const auto *it = llvm::find(dims.getStartIndicesBatchingDims(), dim);
    if (it != dims.getStartIndicesBatchingDims().end()) {
      size_t position = it - dims.getStartIndicesBatchingDims().begin();
      places.push_back(
          {operand, unsigned(dims.getOperandBatchingDims()[position])});
    }
    builder.same(places);
  }

  // Dimensions of the operand: taken whole, or looked up row by row.
  SmallVector<int64_t> offsetDims(dims.getOffsetDims());
  llvm::sort(offsetDims);
  unsigned offset = 0;
  for (int64_t dim = 0; dim < builder.rank(operand); ++dim) {
    if (llvm::is_contained(dims.getOperandBatchingDims(), dim))
      continue;
    if (llvm::is_contained(dims.getCollapsedSliceDims(), dim)) {
      if (llvm::is_contained(dims.getStartIndexMap(), dim) &&
          sumsWithZeros(op.getType()))
        builder.same({{operand, unsigned(dim)}}, FactorKind::MaskedGather);
      continue;
    }
    unsigned resultDim = offsetDims[offset++];
    if (op.getSliceSizes()[dim] == builder.size(operand, dim))
      builder.same({{operand, unsigned(dim)}, {result, resultDim}});
  }
  builder.linear({0});
  return builder.take();
}

static std::optional<OpRule> scatter(hlo::ScatterOp op) {
  // One operand is what JAX prints; several are computed whole.
  if (op.getInputs().size() != 1)
    return std::nullopt;
  OpRuleBuilder builder(op);
  hlo::ScatterDimensionNumbersAttr dims = op.getScatterDimensionNumbers();
  TensorRef operand = operandRef(0), indices = operandRef(1),
            updates = operandRef(2), result = resultRef(0);
  std::optional<Reduction> kind = getReductionKind(op.getUpdateComputation());
  bool combines = kind && isIdentity(*kind, op.getInputs()[0]);

  SmallVector<unsigned> scatterDims;
  for (int64_t dim = 0; dim < builder.rank(updates); ++dim)
    if (!llvm::is_contained(dims.getUpdateWindowDims(), dim))
      scatterDims.push_back(dim);
  unsigned next = 0;
  for (int64_t dim = 0; dim < builder.rank(indices); ++dim) {
    if (dim == dims.getIndexVectorDim())
      continue;
    SmallVector<std::pair<TensorRef, unsigned>> places{
        {indices, unsigned(dim)}, {updates, scatterDims[next++]}};
    const auto *it = llvm::find(dims.getScatterIndicesBatchingDims(), dim);
    if (it != dims.getScatterIndicesBatchingDims().end()) {
      size_t position = it - dims.getScatterIndicesBatchingDims().begin();
      unsigned inputDim = dims.getInputBatchingDims()[position];
      places.push_back({operand, inputDim});
      places.push_back({result, inputDim});
      builder.same(places);
    } else if (combines) {
      builder.same(places, FactorKind::Reduction, *kind);
    } else {
      builder.same(places, FactorKind::Blocked);
    }
  }

  SmallVector<int64_t> windowDims(dims.getUpdateWindowDims());
  llvm::sort(windowDims);
  unsigned window = 0;
  for (int64_t dim = 0; dim < builder.rank(operand); ++dim) {
    if (llvm::is_contained(dims.getInputBatchingDims(), dim))
      continue;
    SmallVector<std::pair<TensorRef, unsigned>> places{{operand, unsigned(dim)},
                                                       {result, unsigned(dim)}};
    if (llvm::is_contained(dims.getInsertedWindowDims(), dim)) {
      if (llvm::is_contained(dims.getScatterDimsToOperandDims(), dim))
        builder.same(places, FactorKind::MaskedScatter);
      continue;
    }
    unsigned updateDim = windowDims[window++];
    // A window as wide as the operand can only start at 0: out of bounds
    // otherwise, and dropped on every device alike.
    if (builder.size(updates, updateDim) == builder.size(operand, dim)) {
      places.push_back({updates, updateDim});
      builder.same(places);
    }
  }
  if (kind == Reduction::Sum)
    builder.linear({0, 2});
  return builder.take();
}

std::optional<OpRule> getIndexingRule(Operation *op) {
  using Result = std::optional<OpRule>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([](hlo::GatherOp op) -> Result { return gather(op); })
      .Case([](hlo::ScatterOp op) { return scatter(op); })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace whale
