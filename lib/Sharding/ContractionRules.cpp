//===- ContractionRules.cpp - Sharding rules of products -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a matrix product, convolution, attention, Fourier transform, or operation
// of linear algebra. Out: its factors (OpRule.h).
//
// Contracted dimensions are factors of kind Reduction: split along one, a
// product gives partial sums. A product is linear in each operand alone. Of
// transforms and linear algebra only the batch can be split. What no rule
// mentions is blocked.
//
// Cost: linear in the ranks of operands and results, but for searches in lists
// of dimensions, which are quadratic in the rank.
//
//===----------------------------------------------------------------------===//

#include "OpRuleBuilder.h"
#include "whale/Dialect/StableHLO/IR/CustomCalls.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Attention.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

static OpRule dotGeneral(hlo::DotGeneralOp op) {
  OpRuleBuilder builder(op);
  hlo::DotDimensionNumbersAttr dims = op.getDotDimensionNumbers();
  ArrayRef<int64_t> lhsBatch = dims.getLhsBatchingDimensions();
  ArrayRef<int64_t> rhsBatch = dims.getRhsBatchingDimensions();
  ArrayRef<int64_t> lhsContract = dims.getLhsContractingDimensions();
  ArrayRef<int64_t> rhsContract = dims.getRhsContractingDimensions();
  unsigned resultDim = 0;
  for (auto [lhs, rhs] : llvm::zip(lhsBatch, rhsBatch))
    builder.same({{operandRef(0), unsigned(lhs)},
                  {operandRef(1), unsigned(rhs)},
                  {resultRef(0), resultDim++}});
  for (auto [lhs, rhs] : llvm::zip(lhsContract, rhsContract))
    builder.same(
        {{operandRef(0), unsigned(lhs)}, {operandRef(1), unsigned(rhs)}},
        FactorKind::Reduction);
  for (int64_t dim = 0; dim < builder.rank(operandRef(0)); ++dim)
    if (!llvm::is_contained(lhsBatch, dim) &&
        !llvm::is_contained(lhsContract, dim))
      builder.same(
          {{operandRef(0), unsigned(dim)}, {resultRef(0), resultDim++}});
  for (int64_t dim = 0; dim < builder.rank(operandRef(1)); ++dim)
    if (!llvm::is_contained(rhsBatch, dim) &&
        !llvm::is_contained(rhsContract, dim))
      builder.same(
          {{operandRef(1), unsigned(dim)}, {resultRef(0), resultDim++}});
  builder.linear({0});
  builder.linear({1});
  return builder.take();
}

/// An image is split along a spatial dimension where its rows are in proportion
/// to those of the result, or to those of a kernel that is summed over: padding
/// that keeps the size up to the stride, as "SAME" does. Each device then reads
/// rows of its neighbours, too. Other spatial dimensions are whole.
static void addWindows(OpRuleBuilder &builder, hlo::ConvolutionOp op) {
  hlo::ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  auto at = [](std::optional<ArrayRef<int64_t>> list, size_t index) {
    return list && !list->empty() ? (*list)[index] : 1;
  };
  for (auto [index, inputDim] :
       llvm::enumerate(dims.getInputSpatialDimensions())) {
    unsigned kernelDim = dims.getKernelSpatialDimensions()[index];
    unsigned resultDim = dims.getOutputSpatialDimensions()[index];
    int64_t kernelRows = builder.size(operandRef(1), kernelDim);
    int64_t resultRows = builder.size(resultRef(0), resultDim);
    int64_t windowStride = at(op.getWindowStrides(), index);
    int64_t kernelStride = at(op.getRhsDilation(), index);
    OperandWindow read;
    read.dim = inputDim;
    RowWindow &window = read.window;
    window.rows = builder.size(operandRef(0), inputDim);
    window.base = at(op.getLhsDilation(), index);
    if (op.getPadding())
      window.low =
          op.getPadding()->getValues<int64_t>()[{uint64_t(index), uint64_t(0)}];
    if (window.rows == 0 || kernelRows == 0 || resultRows == 0)
      continue;
    if (window.rows * window.base == resultRows * windowStride) {
      window.stride = windowStride;
      window.reach = (kernelRows - 1) * kernelStride + 1;
      read.positionDim = resultDim;
      builder.window(read);
    } else if (window.rows * window.base == kernelRows * kernelStride &&
               !(op.getWindowReversal() && (*op.getWindowReversal())[index])) {
      window.stride = kernelStride;
      window.reach = (resultRows - 1) * windowStride + 1;
      read.isOfResult = false;
      read.positionOperand = 1;
      read.positionDim = kernelDim;
      builder.window(read);
    }
  }
}

/// With groups the feature dimensions of kernel and result are [groups, per
/// group] and so is the input's; without, input features are contracted and
/// output features parallel.
static OpRule convolution(hlo::ConvolutionOp op) {
  OpRuleBuilder builder(op);
  hlo::ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  unsigned inputBatch = dims.getInputBatchDimension();
  unsigned inputFeature = dims.getInputFeatureDimension();
  unsigned kernelInput = dims.getKernelInputFeatureDimension();
  unsigned kernelOutput = dims.getKernelOutputFeatureDimension();
  unsigned outputBatch = dims.getOutputBatchDimension();
  unsigned outputFeature = dims.getOutputFeatureDimension();
  int64_t groups = op.getFeatureGroupCount();
  int64_t batchGroups = op.getBatchGroupCount();

  if (batchGroups == 1) {
    builder.same({{operandRef(0), inputBatch}, {resultRef(0), outputBatch}});
  } else {
    // The batch is [groups, per group]; group g makes the g-th part of the
    // output features.
    std::optional<unsigned> group = builder.factor(batchGroups);
    std::optional<unsigned> batch =
        builder.factor(builder.size(operandRef(0), inputBatch) / batchGroups);
    std::optional<unsigned> feature =
        builder.factor(builder.size(resultRef(0), outputFeature) / batchGroups);
    builder.append(operandRef(0), inputBatch, group);
    builder.append(operandRef(0), inputBatch, batch);
    builder.append(resultRef(0), outputBatch, batch);
    builder.append(operandRef(1), kernelOutput, group);
    builder.append(operandRef(1), kernelOutput, feature);
    builder.append(resultRef(0), outputFeature, group);
    builder.append(resultRef(0), outputFeature, feature);
    builder.same({{operandRef(0), inputFeature}, {operandRef(1), kernelInput}},
                 FactorKind::Reduction);
  }
  if (batchGroups == 1 && groups == 1) {
    builder.same({{operandRef(0), inputFeature}, {operandRef(1), kernelInput}},
                 FactorKind::Reduction);
    builder.same(
        {{operandRef(1), kernelOutput}, {resultRef(0), outputFeature}});
  } else if (batchGroups == 1) {
    std::optional<unsigned> group = builder.factor(groups);
    std::optional<unsigned> input = builder.factor(
        builder.size(operandRef(1), kernelInput), FactorKind::Reduction);
    std::optional<unsigned> output =
        builder.factor(builder.size(resultRef(0), outputFeature) / groups);
    builder.append(operandRef(0), inputFeature, group);
    builder.append(operandRef(0), inputFeature, input);
    builder.append(operandRef(1), kernelInput, input);
    builder.append(operandRef(1), kernelOutput, group);
    builder.append(operandRef(1), kernelOutput, output);
    builder.append(resultRef(0), outputFeature, group);
    builder.append(resultRef(0), outputFeature, output);
  }
  addWindows(builder, op);
  builder.linear({0});
  builder.linear({1});
  return builder.take();
}

/// The leading dimensions, all but the last `tail` of the first operand, are a
/// batch.
static void addBatch(OpRuleBuilder &builder, Operation *op, int64_t tail) {
  int64_t batch = builder.rank(operandRef(0)) - tail;
  for (int64_t dim = 0; dim < batch; ++dim) {
    SmallVector<std::pair<TensorRef, unsigned>> places;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      places.push_back({operandRef(i), unsigned(dim)});
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      places.push_back({resultRef(i), unsigned(dim)});
    builder.same(places);
  }
}

/// The dimensions that are no batch are whole.
static OpRule batched(Operation *op, int64_t tail) {
  OpRuleBuilder builder(op);
  addBatch(builder, op, tail);
  return builder.take();
}

/// Each column of the right-hand side (row, for x op(a) = b) is a system of its
/// own.
static OpRule triangularSolve(Operation *op, bool isLeft) {
  OpRuleBuilder builder(op);
  addBatch(builder, op, 2);
  unsigned dim = builder.rank(operandRef(1)) - (isLeft ? 1 : 2);
  builder.same({{operandRef(1), dim}, {resultRef(0), dim}});
  return builder.take();
}

/// Heads and samples are computed alone. So are rows whose number doesn't
/// matter; cotangents of keys and values are sums over rows. Keys and features
/// are whole.
static OpRule attention(Operation *op) {
  OpRuleBuilder builder(op);
  AttentionLetters letters = getAttentionLetters(op);
  bool isForward = isa<AttentionOp>(op);
  std::string whole = {kKeyLetter, kDepthLetter, kFeatureLetter, kUnitLetter};
  if (getAttentionCausal(op))
    whole += kRowLetter;
  std::map<char, std::optional<unsigned>> factors;
  auto add = [&](TensorRef tensor, StringRef text) {
    for (auto [dim, letter] : llvm::enumerate(text)) {
      if (StringRef(whole).contains(letter))
        continue;
      auto [it, isNew] = factors.try_emplace(letter);
      bool isSummed = letter == kRowLetter && !isForward;
      if (isNew)
        it->second = builder.factor(builder.size(tensor, dim),
                                    isSummed ? FactorKind::Reduction
                                             : FactorKind::Parallel);
      builder.append(tensor, dim, it->second);
    }
  };
  for (auto [index, text] : llvm::enumerate(letters.operands))
    add(operandRef(index), text);
  for (auto [index, text] : llvm::enumerate(letters.results))
    add(resultRef(index), text);
  builder.linear({isForward ? 2 : op->getNumOperands() - 1});
  return builder.take();
}

std::optional<OpRule> getContractionRule(Operation *op) {
  using Result = std::optional<OpRule>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([](hlo::DotGeneralOp op) { return dotGeneral(op); })
      .Case([](hlo::ConvolutionOp op) { return convolution(op); })
      .Case<AttentionOp, AttentionGradientOp>(
          [](auto op) { return attention(op); })
      .Case([](hlo::FftOp op) { return batched(op, op.getFftLength().size()); })
      .Case([](hlo::CholeskyOp op) { return batched(op, 2); })
      .Case([](hlo::TriangularSolveOp op) {
        return triangularSolve(op, op.getLeftSide());
      })
      .Case([](hlo::CustomCallOp op) -> Result {
        auto routine = getLapackRoutine(op.getCallTargetName());
        if (!routine)
          return std::nullopt;
        if (*routine == "trsm")
          return triangularSolve(
              op, getConfiguration(op).getAs<IntegerAttr>("side").getValue() ==
                      'L');
        return batched(op, *routine == "gtsv" ? 1 : 2);
      })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace whale
