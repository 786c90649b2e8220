//===- FollowRule.cpp - An operation in parts of a result -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an operation, and where one of its results is wanted. Out: where its
// operands and other results are then.
//
// The result is seen in a view that has a dimension for each piece in which the
// placement cuts a factor of the rule. Other tensors have the same pieces in
// other dimensions, or not at all; the placement is carried over by them. Cost:
// linear in the dimensions, and in the shards for each tensor.
//
//===----------------------------------------------------------------------===//

#include "FollowRule.h"

#include "whale/Sharding/OpRule.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace whale {
namespace {

/// A dimension of a view: a piece of a factor, or what no factor describes.
struct Piece {
  int64_t extent = 1;
  std::optional<unsigned> factor = std::nullopt;
  /// The product of the factor's pieces that are minor to this one.
  int64_t minor = 1;

  bool isSame(const Piece &other) const {
    return factor && factor == other.factor && minor == other.minor;
  }
};

/// The minor products at which each factor is cut.
using Cuts = SmallVector<llvm::SmallSet<int64_t, 4>, 4>;

} // namespace

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The cuts that the view of a placement makes in the factors of a tensor.
static std::optional<Cuts> findCuts(const OpRule &rule, const DimFactors &dims,
                                    ArrayRef<int64_t> shape,
                                    const Placement &placement) {
  std::optional<CommonView> common = commonRefinement(shape, placement.view());
  if (!common)
    return std::nullopt;
  Cuts cuts(rule.factors.size());
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    auto [first, last] = common->first[dim];
    int64_t minor = 1;
    for (unsigned i = last; i-- > first;) {
      minor *= common->extents[i];
      int64_t below = 1;
      for (unsigned factor : llvm::reverse(factors)) {
        int64_t extent = rule.factors[factor].extent;
        if (below > 0 && minor % below == 0 && minor / below > 1 &&
            minor / below < extent)
          cuts[factor].insert(minor / below);
        below *= extent;
      }
    }
  }
  return cuts;
}

/// The pieces of a tensor, outermost first; nullopt where cuts don't divide
/// each other.
static std::optional<SmallVector<Piece>> findPieces(const OpRule &rule,
                                                    const DimFactors &dims,
                                                    ArrayRef<int64_t> shape,
                                                    const Cuts &cuts) {
  SmallVector<Piece> pieces;
  for (auto [extent, factors] : llvm::zip_equal(shape, dims)) {
    if (factors.empty())
      pieces.push_back({extent});
    for (unsigned factor : factors) {
      SmallVector<int64_t> minors(cuts[factor].begin(), cuts[factor].end());
      llvm::sort(minors, std::greater<>());
      int64_t above = rule.factors[factor].extent;
      for (int64_t minor : minors) {
        if (above % minor != 0)
          return std::nullopt;
        pieces.push_back({above / minor, factor, minor});
        above = minor;
      }
      pieces.push_back({above, factor, 1});
    }
  }
  return pieces;
}

static Extents viewOf(ArrayRef<Piece> pieces) {
  Extents view;
  for (const Piece &piece : pieces)
    view.push_back(piece.extent);
  return view;
}

/// Whether each device can compute its part along a piece for itself.
static bool canCut(const OpRule &rule, const Piece &piece) {
  if (!piece.factor || rule.findWindow(*piece.factor))
    return false;
  FactorKind kind = rule.factors[*piece.factor].kind;
  return kind == FactorKind::Parallel || kind == FactorKind::MaskedScatter;
}

Placement simplify(const Placement &placement, ArrayRef<int64_t> shape) {
  if (placement.isReplicated() && !placement.isPartial()) {
    SmallVector<DeviceId> devices(placement.devices());
    llvm::sort(devices);
    return Placement::replicated(shape, devices);
  }
  return placement.withView(shape).value_or(placement).canonical();
}

std::optional<OperationPlacements> followRule(Operation *op, unsigned result,
                                              const Placement &wanted) {
  std::optional<OpRule> rule = getOpRule(op);
  if (!rule)
    return std::nullopt;
  const DimFactors &own = rule->results[result];
  ArrayRef<int64_t> shape = shapeOf(op->getResult(result));
  std::optional<Cuts> cuts = findCuts(*rule, own, shape, wanted);
  std::optional<SmallVector<Piece>> pieces;
  if (cuts)
    pieces = findPieces(*rule, own, shape, *cuts);
  std::optional<Placement> parts;
  if (pieces)
    parts = wanted.withView(viewOf(*pieces));
  if (!parts || !llvm::all_of(parts->splitDims(), [&](int64_t dim) {
        return canCut(*rule, (*pieces)[dim]);
      }))
    return std::nullopt;
  auto carry = [&](Value value,
                   const DimFactors &dims) -> std::optional<Placement> {
    std::optional<SmallVector<Piece>> other =
        findPieces(*rule, dims, shapeOf(value), *cuts);
    if (!other)
      return std::nullopt;
    SmallVector<std::optional<int64_t>> places;
    for (const Piece &piece : *pieces) {
      auto *same = llvm::find_if(
          *other, [&](const Piece &each) { return each.isSame(piece); });
      places.push_back(same == other->end()
                           ? std::nullopt
                           : std::optional<int64_t>(same - other->begin()));
    }
    std::optional<Placement> carried = parts->withDims(viewOf(*other), places);
    if (!carried)
      return std::nullopt;
    return simplify(*carried, shapeOf(value));
  };
  OperationPlacements placements;
  for (auto [value, dims] : llvm::zip_equal(op->getOperands(), rule->operands))
    if (std::optional<Placement> carried = carry(value, dims))
      placements.operands.push_back(std::move(*carried));
    else
      return std::nullopt;
  for (auto [value, dims] : llvm::zip_equal(op->getResults(), rule->results))
    if (std::optional<Placement> carried = carry(value, dims))
      placements.results.push_back(std::move(*carried));
    else
      return std::nullopt;
  return placements;
}

} // namespace whale
