//===- AttentionMask.cpp - Which scores are masked ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the predicate of a select on scores, with its labels. Out: the mask as a
// comparison of row and key numbers (causal), and at most one other tensor,
// before it is broadcast; the whole predicate where there is more.
//
// A conjunction is taken apart through negations, selects, and what only moves
// elements; numbers of rows and keys are iotas with an offset. A constant is
// causal if each of its rows keeps the keys up to its diagonal. Cost:
// operations up to 8 deep, each with at most two operands that are followed; a
// constant is read once, rows times keys at most.
//
//===----------------------------------------------------------------------===//

#include "AttentionMask.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale::attention {

namespace {

/// What has been found of a conjunction.
struct Parts {
  /// The dimension of the keys.
  int keyLabel;
  std::optional<Mask::Causal> causal = std::nullopt;
  SmallVector<std::pair<Labeled, bool>, 2> others = {};

  /// Whether it is the one comparison that is taken apart.
  bool add(const std::optional<Mask::Causal> &found) {
    if (!found || found->key != keyLabel || (causal && *causal != *found))
      return false;
    causal = found;
    return true;
  }
};

/// A number that is that of a dimension and an offset.
struct Position {
  int label;
  int64_t offset;
};

} // namespace

static std::optional<bool> getTruth(Value value) {
  for (unsigned depth = 0; depth < 4; ++depth) {
    DenseElementsAttr splat;
    if (matchPattern(value, m_Constant(&splat))) {
      if (!splat.isSplat() || !splat.getElementType().isInteger(1))
        return std::nullopt;
      return splat.getSplatValue<bool>();
    }
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<hlo::BroadcastInDimOp, hlo::ReshapeOp>(op))
      return std::nullopt;
    value = op->getOperand(0);
  }
  return std::nullopt;
}

/// The integer that every element is.
static std::optional<int64_t> getInteger(Value value) {
  while (auto broadcast = value.getDefiningOp<hlo::BroadcastInDimOp>())
    value = broadcast.getOperand();
  DenseElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)) || !splat.isSplat() ||
      !splat.getElementType().isSignlessInteger())
    return std::nullopt;
  return splat.getSplatValue<APInt>().trySExtValue();
}

/// `depth` operations are looked through. Offsets are small, so that none of
/// the sums has too many bits for its type.
static std::optional<Position> getPosition(const Labeled &from,
                                           unsigned depth = 6) {
  constexpr int64_t mostOffset = 1 << 20;
  Operation *op = from.value.getDefiningOp();
  Type element = getElementTypeOrSelf(from.value);
  if (!op || depth == 0 ||
      !(element.isSignlessInteger(32) || element.isSignlessInteger(64)))
    return std::nullopt;
  if (auto iota = dyn_cast<hlo::IotaOp>(op)) {
    int label = from.labels[iota.getIotaDimension()];
    if (label < 0)
      return std::nullopt;
    return Position{label, 0};
  }
  if (isa<hlo::AddOp, hlo::SubtractOp>(op)) {
    bool isSum = isa<hlo::AddOp>(op);
    Value base = op->getOperand(0), added = op->getOperand(1);
    if (isSum && getInteger(base))
      std::swap(base, added);
    std::optional<int64_t> offset = getInteger(added);
    auto position = getPosition({base, from.labels}, depth - 1);
    if (!offset || !position || std::abs(*offset) > mostOffset)
      return std::nullopt;
    position->offset += isSum ? *offset : -*offset;
    return position;
  }
  if (auto before = stepBack(from))
    return getPosition(*before, depth - 1);
  return std::nullopt;
}

/// Keys up to a row's, as a comparison of their numbers says it.
static std::optional<Mask::Causal>
getCausal(hlo::CompareOp op, const Labels &labels, bool isInverted) {
  using Direction = hlo::ComparisonDirection;
  Direction direction = op.getComparisonDirection();
  auto left = getPosition({op.getLhs(), labels});
  auto right = getPosition({op.getRhs(), labels});
  if (!left || !right || left->label == right->label)
    return std::nullopt;
  if (isInverted)
    switch (direction) {
    case Direction::GE:
      direction = Direction::LT;
      break;
    case Direction::GT:
      direction = Direction::LE;
      break;
    case Direction::LE:
      direction = Direction::GT;
      break;
    case Direction::LT:
      direction = Direction::GE;
      break;
    default:
      return std::nullopt;
    }
  if (direction == Direction::LE || direction == Direction::LT)
    std::swap(left, right);
  else if (direction != Direction::GE && direction != Direction::GT)
    return std::nullopt;
  bool isStrict = direction == Direction::LT || direction == Direction::GT;
  return Mask::Causal{left->label, right->label,
                      left->offset - right->offset - isStrict};
}

/// The same of a constant; only its diagonal is a matter of numbers.
static std::optional<Mask::Causal> getCausal(const Labeled &constant,
                                             bool isInverted) {
  DenseElementsAttr elements;
  if (!matchPattern(constant.value, m_Constant(&elements)) ||
      !elements.getElementType().isInteger(1) || elements.isSplat())
    return std::nullopt;
  SmallVector<std::pair<int, int64_t>, 2> dims;
  for (auto [label, extent] :
       llvm::zip_equal(constant.labels, shapeOf(constant.value)))
    if (extent != 1)
      dims.push_back({label, extent});
  if (dims.size() != 2 || dims[0].first < 0 || dims[1].first < 0)
    return std::nullopt;
  int64_t rows = dims[0].second, keys = dims[1].second;
  auto values = elements.getValues<bool>();
  auto isKept = [&](int64_t row, int64_t key) {
    return values[row * keys + key] != isInverted;
  };
  int64_t offset = -1;
  while (offset + 1 < keys && isKept(0, offset + 1))
    ++offset;
  // The first row says nothing if it has none, or all.
  if (offset == -1 || offset == keys - 1)
    return std::nullopt;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t key = 0; key < keys; ++key)
      if (isKept(row, key) != (key <= row + offset))
        return std::nullopt;
  return Mask::Causal{dims[0].first, dims[1].first, offset};
}

static void collect(Labeled from, bool isInverted, Parts &parts,
                    unsigned depth) {
  if (std::optional<bool> truth = getTruth(from.value);
      truth && *truth != isInverted)
    return;
  Operation *op = from.value.getDefiningOp();
  if (!op || depth == 0) {
    parts.others.push_back({from, isInverted});
    return;
  }
  if (auto before = stepBack(from))
    return collect(*before, isInverted, parts, depth - 1);
  if (auto negation = dyn_cast<hlo::NotOp>(op))
    return collect({negation.getOperand(), from.labels}, !isInverted, parts,
                   depth - 1);
  bool isConjunction = isInverted ? isa<hlo::OrOp>(op) : isa<hlo::AndOp>(op);
  if (isConjunction) {
    for (Value operand : op->getOperands())
      collect({operand, from.labels}, isInverted, parts, depth - 1);
    return;
  }
  if (auto select = dyn_cast<hlo::SelectOp>(op);
      select && !isInverted && shapeOf(select.getPred()) == shapeOf(select) &&
      getTruth(select.getOnFalse()) == false) {
    collect({select.getPred(), from.labels}, false, parts, depth - 1);
    return collect({select.getOnTrue(), from.labels}, false, parts, depth - 1);
  }
  auto compare = dyn_cast<hlo::CompareOp>(op);
  if (parts.add(compare ? getCausal(compare, from.labels, isInverted)
                        : getCausal(from, isInverted)))
    return;
  parts.others.push_back({from, isInverted});
}

Mask getMask(const Labeled &predicate, bool isInverted, int keyLabel) {
  Parts parts{keyLabel};
  collect(predicate, isInverted, parts, /*depth=*/8);
  if (parts.others.size() > 1)
    return {std::nullopt, predicate, isInverted};
  Mask mask;
  mask.causal = parts.causal;
  if (!parts.others.empty())
    std::tie(mask.kept, mask.isInverted) = parts.others.front();
  return mask;
}

} // namespace whale::attention
