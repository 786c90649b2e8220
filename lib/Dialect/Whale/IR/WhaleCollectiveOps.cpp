//===- WhaleCollectiveOps.cpp - Constraints of the collectives ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the constraint lists in WhaleCollectiveOps.td say, in the same order.
//

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace whale;

//===----------------------------------------------------------------------===//
// Facts about a pair of placements
//===----------------------------------------------------------------------===//

namespace {
/// What one device holds on one side.
struct Holding {
  Box box; // in the common view
  /// Into how many terms the box's value is divided.
  int64_t terms = 1;
};
using Holdings = llvm::MapVector<DeviceId, Holding>;

/// Both sides of an exchange in one view.
struct Sides {
  Holdings from, to;
};
} // namespace

static void countTerms(const PlacementNode &node, int64_t terms,
                       Holdings &holdings) {
  if (node.isLeaf()) {
    holdings[node.device].terms = terms;
    return;
  }
  if (node.kind == PlacementNode::Kind::Partial)
    terms *= node.children.size();
  for (const PlacementNode &child : node.children)
    countTerms(child, terms, holdings);
}

/// The boxes in `view`, or nothing where one is no box there.
static std::optional<Holdings> holdingsIn(const Placement &placement,
                                          ArrayRef<int64_t> view) {
  Holdings holdings;
  for (const Shard &shard : placement.shards()) {
    std::optional<Box> box = convertBox(shard.box, placement.view(), view);
    if (!box)
      return std::nullopt;
    holdings[shard.device].box = *box;
  }
  countTerms(placement.root(), 1, holdings);
  return holdings;
}

/// Brings both sides into one view.
static LogicalResult compare(CollectiveOp op, Sides &sides) {
  const Placement &from = op.getFrom().getValue();
  const Placement &to = op.getTo().getValue();
  std::optional<CommonView> view = commonRefinement(from.view(), to.view());
  if (!view)
    return op.emitOpError("'from' and 'to' have views of different tensors");
  std::optional<Holdings> fromSide = holdingsIn(from, view->extents);
  std::optional<Holdings> toSide = holdingsIn(to, view->extents);
  if (!fromSide || !toSide)
    return op.emitOpError("a part of '")
           << (fromSide ? "to" : "from") << "' is no box in the other's view";
  sides.from = std::move(*fromSide);
  sides.to = std::move(*toSide);
  return success();
}

static LogicalResult verifySameDevices(CollectiveOp op, const Sides &sides) {
  for (const auto &[device, holding] : sides.from)
    if (!sides.to.contains(device))
      return op.emitOpError("device ") << device << " of 'from' isn't in 'to'";
  for (const auto &[device, holding] : sides.to)
    if (!sides.from.contains(device))
      return op.emitOpError("device ") << device << " of 'to' isn't in 'from'";
  return success();
}

/// Each device's box on the inner side lies in its box on the outer one.
static LogicalResult verifyInside(CollectiveOp op, const Holdings &inner,
                                  StringRef innerName, const Holdings &outer,
                                  StringRef outerName) {
  for (const auto &[device, holding] : inner) {
    auto it = outer.find(device);
    if (it == outer.end() || !it->second.box.contains(holding.box))
      return op.emitOpError("the box of device ")
             << device << " in '" << innerName << "' isn't inside that in '"
             << outerName << "'";
  }
  return success();
}

/// Each device of `to` has the same terms pending in both.
static LogicalResult verifySameTerms(CollectiveOp op, const Sides &sides) {
  for (const auto &[device, holding] : sides.to)
    if (holding.terms != sides.from.lookup(device).terms)
      return op.emitOpError("device ")
             << device << " has " << sides.from.lookup(device).terms
             << " terms pending in 'from' and " << holding.terms << " in 'to'";
  return success();
}

/// No device has more terms pending, and one has fewer.
static LogicalResult verifyFewerTerms(CollectiveOp op, const Sides &sides) {
  bool fewer = false;
  for (const auto &[device, holding] : sides.to) {
    int64_t before = sides.from.lookup(device).terms;
    if (holding.terms > before)
      return op.emitOpError("device ")
             << device << " has " << before << " terms pending in 'from' and "
             << holding.terms << " in 'to'";
    fewer |= holding.terms < before;
  }
  if (!fewer)
    return op.emitOpError("reduces nothing");
  return success();
}

//===----------------------------------------------------------------------===//
// Constraints of all collectives
//===----------------------------------------------------------------------===//

bool whale::regroups(ArrayRef<int64_t> first, ArrayRef<int64_t> second) {
  if (volumeOf(first) != volumeOf(second))
    return false;
  if (volumeOf(first) == 0)
    return true;
  // Take the shortest runs of equal product; one side must be one dimension.
  size_t i = 0, j = 0;
  auto skipOnes = [](ArrayRef<int64_t> extents, size_t &at) {
    while (at < extents.size() && extents[at] == 1)
      ++at;
  };
  while (true) {
    skipOnes(first, i);
    skipOnes(second, j);
    if (i == first.size() || j == second.size())
      return i == first.size() && j == second.size();
    int64_t product = first[i++], other = second[j++];
    unsigned count = 1, otherCount = 1;
    while (product != other) {
      if (product < other) {
        if (first[i] != 1)
          ++count;
        product *= first[i++];
      } else {
        if (second[j] != 1)
          ++otherCount;
        other *= second[j++];
      }
    }
    if (count > 1 && otherCount > 1)
      return false;
  }
}

/// The value is this class's shard of the placement.
static LogicalResult verifyShard(CollectiveOp op, Value value, StringRef what,
                                 const Placement &placement, StringRef side,
                                 ArrayRef<int64_t> ranks) {
  std::optional<Extents> sizes;
  for (int64_t rank : ranks) {
    std::optional<Box> box = placement.box(rank);
    bool holds = box && !box->empty();
    ShapedType type = value ? cast<ShapedType>(value.getType()) : ShapedType();
    bool hasElements = type && type.getNumElements() != 0;
    if (!holds && hasElements)
      return op.emitOpError("has ")
             << what << " of type " << type << " but rank " << rank
             << " holds nothing in '" << side << "'";
    if (holds && !hasElements)
      return op.emitOpError("has no ") << what << " but rank " << rank
                                       << " holds a part in '" << side << "'";
    if (!holds)
      continue;
    if (!regroups(type.getShape(), box->size))
      return op.emitOpError("has ")
             << what << " of type " << type << " but the box of rank " << rank
             << " in '" << side << "' has size [" << ArrayRef(box->size) << "]";
  }
  return success();
}

static LogicalResult verifyCommon(CollectiveOp op, Sides &sides) {
  if (int64_t(op.getChannel()) < 0)
    return op.emitOpError("channel ")
           << int64_t(op.getChannel()) << " is negative";
  Value input = op.getInput(), output = op.getOutput();
  if (input && output &&
      getElementTypeOrSelf(input) != getElementTypeOrSelf(output))
    return op.emitOpError("operand and result have element types ")
           << getElementTypeOrSelf(input) << " and "
           << getElementTypeOrSelf(output);
  if (failed(compare(op, sides)))
    return failure();
  std::optional<ArrayRef<int64_t>> ranks = getRanks(op);
  if (!ranks)
    return success();
  const Placement &from = op.getFrom().getValue();
  const Placement &to = op.getTo().getValue();
  if (failed(verifyShard(op, input, "operand", from, "from", *ranks)))
    return failure();
  return verifyShard(op, output, "result", to, "to", *ranks);
}

/// What is pending in both has the same reduction.
static LogicalResult verifySameReduction(CollectiveOp op) {
  std::optional<Reduction> from = op.getFrom().getValue().reduction();
  std::optional<Reduction> to = op.getTo().getValue().reduction();
  if (to && !from)
    return op.emitOpError("'to' is partial and 'from' isn't");
  if (to && *from != *to)
    return op.emitOpError("'from' is pending a ")
           << stringifyReduction(*from) << " and 'to' a "
           << stringifyReduction(*to);
  return success();
}

//===----------------------------------------------------------------------===//
// Constraints of each collective
//===----------------------------------------------------------------------===//

LogicalResult AllReduceOp::verify() {
  CollectiveOp op(*this);
  Sides sides;
  return success(
      succeeded(verifyCommon(op, sides)) &&
      succeeded(verifySameDevices(op, sides)) &&
      succeeded(verifyInside(op, sides.to, "to", sides.from, "from")) &&
      succeeded(verifyInside(op, sides.from, "from", sides.to, "to")) &&
      succeeded(verifySameReduction(op)) &&
      succeeded(verifyFewerTerms(op, sides)));
}

LogicalResult ReduceScatterOp::verify() {
  CollectiveOp op(*this);
  Sides sides;
  return success(
      succeeded(verifyCommon(op, sides)) &&
      succeeded(verifySameDevices(op, sides)) &&
      succeeded(verifyInside(op, sides.to, "to", sides.from, "from")) &&
      succeeded(verifySameReduction(op)) &&
      succeeded(verifyFewerTerms(op, sides)));
}

LogicalResult AllGatherOp::verify() {
  CollectiveOp op(*this);
  Sides sides;
  return success(
      succeeded(verifyCommon(op, sides)) &&
      succeeded(verifySameDevices(op, sides)) &&
      succeeded(verifyInside(op, sides.from, "from", sides.to, "to")) &&
      succeeded(verifySameReduction(op)) &&
      succeeded(verifySameTerms(op, sides)));
}

LogicalResult AllToAllOp::verify() {
  CollectiveOp op(*this);
  Sides sides;
  return success(succeeded(verifyCommon(op, sides)) &&
                 succeeded(verifySameDevices(op, sides)) &&
                 succeeded(verifySameReduction(op)) &&
                 succeeded(verifySameTerms(op, sides)));
}

LogicalResult BroadcastOp::verify() {
  CollectiveOp op(*this);
  Sides sides;
  if (failed(verifyCommon(op, sides)))
    return failure();
  for (auto [placement, name] : {std::pair(getFrom(), "from"), {getTo(), "to"}})
    if (placement.getValue().isPartial())
      return emitOpError("'") << name << "' is partial";
  for (const auto &[device, holding] : sides.to)
    if (llvm::none_of(sides.from, [&](const auto &source) {
          return source.second.box.contains(holding.box);
        }))
      return emitOpError("no device of 'from' holds the box of device ")
             << device << " in 'to'";
  return success();
}

LogicalResult SendRecvOp::verify() {
  CollectiveOp op(*this);
  Sides sides;
  return success(succeeded(verifyCommon(op, sides)) &&
                 succeeded(verifySameReduction(op)));
}

LogicalResult LocalSliceOp::verify() {
  CollectiveOp op(*this);
  Sides sides;
  if (failed(verifyCommon(op, sides)))
    return failure();
  if (getFrom().getValue().isPartial() && failed(verifySameDevices(op, sides)))
    return failure();
  return success(
      succeeded(verifyInside(op, sides.to, "to", sides.from, "from")) &&
      succeeded(verifySameReduction(op)) &&
      succeeded(verifySameTerms(op, sides)));
}
