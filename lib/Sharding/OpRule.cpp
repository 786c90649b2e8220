//===- OpRule.cpp - How the dimensions of an operation relate -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an operation. Out: its rule: the factors that the dimensions of its
// operands and results are products of, or none where there is no rule or a
// shape is dynamic.
//
// What is common to all rules: the builder by which the families of operations
// (elementwise, shapes, reductions, contractions, indexing) write theirs,
// getOpRule, which asks one family after the other, and the translation between
// a piece of a dimension and a part of a factor. A dimension without a factor
// gets one that is blocked. A window over an image of R rows with P positions
// has one shared factor of gcd(R, P): each part then has whole rows and whole
// positions. Cost: linear in all dimensions; findSubFactor in the factors of
// one dimension, findPiece in those of one tensor.
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/OpRule.h"
#include "OpRuleBuilder.h"
#include <numeric>

using namespace mlir;

namespace whale {

//===----------------------------------------------------------------------===//
// OpRuleBuilder
//===----------------------------------------------------------------------===//

static RankedTensorType tensorType(Operation *op, TensorRef tensor) {
  Value value = tensor.isResult ? Value(op->getResult(tensor.index))
                                : op->getOperand(tensor.index);
  return cast<RankedTensorType>(value.getType());
}

OpRuleBuilder::OpRuleBuilder(Operation *op) : op(op) {
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    rule.operands.emplace_back(rank(operandRef(i)));
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    rule.results.emplace_back(rank(resultRef(i)));
}

DimFactors &OpRuleBuilder::dims(TensorRef tensor) {
  return tensor.isResult ? rule.results[tensor.index]
                         : rule.operands[tensor.index];
}

ArrayRef<int64_t> OpRuleBuilder::shape(TensorRef tensor) const {
  return tensorType(op, tensor).getShape();
}

int64_t OpRuleBuilder::rank(TensorRef tensor) const {
  return tensorType(op, tensor).getRank();
}

int64_t OpRuleBuilder::size(TensorRef tensor, unsigned dim) const {
  return tensorType(op, tensor).getDimSize(dim);
}

std::optional<unsigned> OpRuleBuilder::factor(int64_t extent, FactorKind kind,
                                              Reduction reduction) {
  if (extent == 1)
    return std::nullopt;
  // Nothing can be cut out of an empty dimension.
  if (extent == 0)
    kind = FactorKind::Blocked;
  rule.factors.push_back({extent, kind, reduction});
  return rule.factors.size() - 1;
}

void OpRuleBuilder::append(TensorRef tensor, unsigned dim,
                           std::optional<unsigned> factor) {
  if (factor)
    dims(tensor)[dim].push_back(*factor);
}

void OpRuleBuilder::same(ArrayRef<std::pair<TensorRef, unsigned>> places,
                         FactorKind kind, Reduction reduction) {
  auto [tensor, dim] = places.front();
  std::optional<unsigned> shared = factor(size(tensor, dim), kind, reduction);
  for (auto [tensor, dim] : places)
    append(tensor, dim, shared);
}

void OpRuleBuilder::sameTail(ArrayRef<std::pair<TensorRef, unsigned>> places,
                             int64_t tail) {
  // Of an empty result nothing is anybody's.
  for (auto [tensor, dim] : places)
    if (tensor.isResult && size(tensor, dim) == 0)
      return;
  std::optional<unsigned> shared;
  if (tail > 1)
    shared = factor(tail);
  for (auto [tensor, dim] : places) {
    if (size(tensor, dim) == 0 || tail == 0)
      continue;
    append(tensor, dim, factor(size(tensor, dim) / tail, FactorKind::Blocked));
    append(tensor, dim, shared);
  }
}

void OpRuleBuilder::window(OperandWindow window) {
  TensorRef positions =
      window.isOfResult ? resultRef(0) : operandRef(window.positionOperand);
  int64_t rows = size(operandRef(window.operand), window.dim);
  int64_t count = size(positions, window.positionDim);
  int64_t grains = std::gcd(rows, count);
  std::optional<unsigned> shared = factor(
      grains, window.isOfResult ? FactorKind::Parallel : FactorKind::Reduction);
  if (!shared)
    return;
  append(operandRef(window.operand), window.dim, shared);
  append(operandRef(window.operand), window.dim,
         factor(rows / grains, FactorKind::Blocked));
  append(positions, window.positionDim, shared);
  append(positions, window.positionDim,
         factor(count / grains, FactorKind::Blocked));
  window.factor = *shared;
  window.window.grain = count / grains;
  rule.windows.push_back(window);
}

void OpRuleBuilder::linear(ArrayRef<unsigned> operands) {
  rule.linear.emplace_back(operands);
}

/// Whether no result lacks a factor that some operand can be split along
/// without leaving partial results.
[[maybe_unused]] static bool keepsParallelFactors(const OpRule &rule) {
  auto has = [](const DimFactors &dims, unsigned factor) {
    return llvm::any_of(dims, [&](ArrayRef<unsigned> factors) {
      return llvm::is_contained(factors, factor);
    });
  };
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    if (factor.kind != FactorKind::Parallel)
      continue;
    auto hasIt = [&, i = index](const DimFactors &dims) {
      return has(dims, i);
    };
    if (llvm::any_of(rule.operands, hasIt) &&
        !llvm::all_of(rule.results, hasIt))
      return false;
  }
  return true;
}

OpRule OpRuleBuilder::take() {
  auto block = [&](TensorRef tensor) {
    for (int64_t dim = 0; dim < rank(tensor); ++dim)
      if (dims(tensor)[dim].empty())
        append(tensor, dim, factor(size(tensor, dim), FactorKind::Blocked));
  };
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    block(operandRef(i));
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    block(resultRef(i));
  assert(keepsParallelFactors(rule) &&
         "a factor of an operand that isn't reduced must be in every result");
  return std::move(rule);
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

const OperandWindow *OpRule::findWindow(unsigned factor) const {
  const auto *it = llvm::find_if(windows, [&](const OperandWindow &window) {
    return window.factor == factor;
  });
  return it == windows.end() ? nullptr : it;
}

std::optional<OpRule> getOpRule(Operation *op) {
  auto isStaticTensor = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  };
  if (op->getNumResults() == 0 ||
      !llvm::all_of(op->getOperandTypes(), isStaticTensor) ||
      !llvm::all_of(op->getResultTypes(), isStaticTensor))
    return std::nullopt;
  for (auto family : {getElementwiseRule, getShapeRule, getReductionRule,
                      getContractionRule, getIndexingRule})
    if (std::optional<OpRule> rule = family(op))
      return rule;
  return std::nullopt;
}

std::optional<SubFactor> findSubFactor(const OpRule &rule,
                                       const DimFactors &dims,
                                       const DimPiece &piece) {
  // An empty dimension has no pieces.
  if (piece.minor * piece.extent == 0)
    return std::nullopt;
  int64_t minor = 1;
  for (unsigned factor : llvm::reverse(dims[piece.dim])) {
    int64_t extent = rule.factors[factor].extent;
    bool inside = piece.minor % minor == 0 &&
                  piece.minor * piece.extent <= minor * extent &&
                  (minor * extent) % (piece.minor * piece.extent) == 0;
    if (inside && piece.minor >= minor)
      return SubFactor{factor, piece.extent, piece.minor / minor};
    minor *= extent;
  }
  return std::nullopt;
}

std::optional<DimPiece> findPiece(const OpRule &rule, const DimFactors &dims,
                                  const SubFactor &sub) {
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    int64_t minor = 1;
    for (unsigned factor : llvm::reverse(factors)) {
      if (factor == sub.factor)
        return DimPiece{unsigned(dim), sub.extent, minor * sub.minor};
      minor *= rule.factors[factor].extent;
    }
  }
  return std::nullopt;
}

} // namespace whale
