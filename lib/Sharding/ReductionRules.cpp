//===- ReductionRules.cpp - Sharding rules of reductions and windows -----===//
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

/// Splitting the reduced dimensions needs a reducer that devices can combine
/// and an initial value that may count once per device, i.e. its identity.
static OpRule reduce(hlo::ReduceOp op) {
  OpRuleBuilder builder(op);
  unsigned inputs = op.getInputs().size();
  std::optional<Reduction> kind = getReductionKind(op.getBody());
  bool combines =
      kind && inputs == 1 && isIdentity(*kind, op.getInitValues()[0]);
  unsigned resultDim = 0;
  for (int64_t dim = 0; dim < builder.rank(operandRef(0)); ++dim) {
    SmallVector<std::pair<TensorRef, unsigned>> places;
    for (unsigned i = 0; i < inputs; ++i)
      places.push_back({operandRef(i), unsigned(dim)});
    if (llvm::is_contained(op.getDimensions(), dim)) {
      if (combines)
        builder.same(places, FactorKind::Reduction, *kind);
      continue;
    }
    for (unsigned i = 0; i < inputs; ++i)
      places.push_back({resultRef(i), resultDim});
    ++resultDim;
    builder.same(places);
  }
  if (kind == Reduction::Sum)
    builder.linear(llvm::to_vector(llvm::seq<unsigned>(0, 2 * inputs)));
  return builder.take();
}

/// The size of windows that are side by side along a dimension, each a block of
/// the operand; 1 where they are points.
static std::optional<int64_t>
blockSize(std::optional<ArrayRef<int64_t>> sizes,
          std::optional<ArrayRef<int64_t>> strides,
          std::optional<ArrayRef<int64_t>> baseDilations,
          std::optional<ArrayRef<int64_t>> windowDilations,
          std::optional<DenseIntElementsAttr> padding, int64_t dim) {
  auto at = [&](std::optional<ArrayRef<int64_t>> list) {
    return !list || list->empty() ? 1 : (*list)[dim];
  };
  bool padded =
      padding &&
      ((*padding).getValues<int64_t>()[{uint64_t(dim), uint64_t(0)}] != 0 ||
       (*padding).getValues<int64_t>()[{uint64_t(dim), uint64_t(1)}] != 0);
  bool isBlock = at(sizes) == at(strides) && at(baseDilations) == 1 &&
                 (at(sizes) == 1 || at(windowDilations) == 1) && !padded;
  return isBlock ? std::optional(at(sizes)) : std::nullopt;
}

/// One factor of blocks: `places` are dimensions of `blocks` elements, or of as
/// many times `block`.
static void addBlocks(OpRuleBuilder &builder,
                      ArrayRef<std::pair<TensorRef, unsigned>> places,
                      int64_t blocks, int64_t block) {
  for (auto [tensor, dim] : places) {
    int64_t size = builder.size(tensor, dim);
    if (size != blocks && size != blocks * block)
      return;
  }
  std::optional<unsigned> shared = builder.factor(blocks);
  for (auto [tensor, dim] : places) {
    builder.append(tensor, dim, shared);
    if (blocks != 0 && builder.size(tensor, dim) != blocks)
      builder.append(tensor, dim, builder.factor(block, FactorKind::Blocked));
  }
}

static OpRule reduceWindow(hlo::ReduceWindowOp op) {
  OpRuleBuilder builder(op);
  unsigned inputs = op.getInputs().size();
  for (int64_t dim = 0; dim < builder.rank(operandRef(0)); ++dim) {
    std::optional<int64_t> block = blockSize(
        op.getWindowDimensions(), op.getWindowStrides(), op.getBaseDilations(),
        op.getWindowDilations(), op.getPadding(), dim);
    if (!block)
      continue;
    SmallVector<std::pair<TensorRef, unsigned>> places;
    for (unsigned i = 0; i < inputs; ++i) {
      places.push_back({operandRef(i), unsigned(dim)});
      places.push_back({resultRef(i), unsigned(dim)});
    }
    addBlocks(builder, places, builder.size(resultRef(0), dim), *block);
  }
  if (getReductionKind(op.getBody()) == Reduction::Sum)
    builder.linear(llvm::to_vector(llvm::seq<unsigned>(0, 2 * inputs)));
  return builder.take();
}

static OpRule selectAndScatter(hlo::SelectAndScatterOp op) {
  OpRuleBuilder builder(op);
  for (int64_t dim = 0; dim < builder.rank(operandRef(0)); ++dim)
    if (std::optional<int64_t> block =
            blockSize(op.getWindowDimensions(), op.getWindowStrides(),
                      std::nullopt, std::nullopt, op.getPadding(), dim))
      addBlocks(builder,
                {{operandRef(0), unsigned(dim)},
                 {operandRef(1), unsigned(dim)},
                 {resultRef(0), unsigned(dim)}},
                builder.size(operandRef(1), dim), *block);
  return builder.take();
}

static OpRule sort(hlo::SortOp op) {
  OpRuleBuilder builder(op);
  int64_t rank = builder.rank(operandRef(0));
  // Counted from the end if it is negative.
  int64_t sorted = (int64_t(op.getDimension()) + rank) % rank;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (dim == sorted)
      continue;
    SmallVector<std::pair<TensorRef, unsigned>> places;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      places.push_back({operandRef(i), unsigned(dim)});
      places.push_back({resultRef(i), unsigned(dim)});
    }
    builder.same(places);
  }
  return builder.take();
}

std::optional<OpRule> getReductionRule(Operation *op) {
  using Result = std::optional<OpRule>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([](hlo::ReduceOp op) { return reduce(op); })
      .Case([](hlo::ReduceWindowOp op) { return reduceWindow(op); })
      .Case([](hlo::SelectAndScatterOp op) { return selectAndScatter(op); })
      .Case([](hlo::SortOp op) { return sort(op); })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace whale
