//===- WhaleCollectiveOps.cpp - Constraints of the collectives ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a collective, with the placements before and after it. Out: success, or
// an error that states the first violated constraint of those listed in
// WhaleCollectiveOps.td, in the same order.
//
// Both placements are brought to a common view and compared device by device.
// Cost: linear in the devices, times the rank of the view; for a broadcast, the
// devices of `to` times those of `from`, since some device must hold the box of
// each receiver. On many devices this takes long, so pairs of placements that
// were valid once are not checked again, nor is a shard of the same type,
// placement and ranks (WhaleDialect::checkOnce).
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace whale;

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

StringRef whale::collectiveName(StepKind kind) {
  switch (kind) {
  case StepKind::LocalSlice:
    return LocalSliceOp::getOperationName();
  case StepKind::AllReduce:
    return AllReduceOp::getOperationName();
  case StepKind::ReduceScatter:
    return ReduceScatterOp::getOperationName();
  case StepKind::AllGather:
    return AllGatherOp::getOperationName();
  case StepKind::AllToAll:
    return AllToAllOp::getOperationName();
  case StepKind::Broadcast:
    return BroadcastOp::getOperationName();
  case StepKind::SendRecv:
    return SendRecvOp::getOperationName();
  }
  llvm_unreachable("unknown step");
}

StepKind whale::stepKindOf(CollectiveOp op) {
  for (StepKind kind :
       {StepKind::LocalSlice, StepKind::AllReduce, StepKind::ReduceScatter,
        StepKind::AllGather, StepKind::AllToAll, StepKind::Broadcast})
    if (op->getName().getStringRef() == collectiveName(kind))
      return kind;
  return StepKind::SendRecv;
}

//===----------------------------------------------------------------------===//
// Facts about a pair of placements
//===----------------------------------------------------------------------===//

namespace {
/// The part that one device holds in one placement.
struct Holding {
  Box box; // in the common view
  /// The number of terms that add up to the box's value.
  int64_t terms = 1;
};
using Holdings = llvm::MapVector<DeviceId, Holding>;

/// Both placements of an exchange in one view.
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

/// Returns the boxes in `view`; nullopt if some part is not a box there.
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

/// Returns both placements in one view; nullopt if there is no view in which
/// all parts are boxes.
static std::optional<Sides> compare(CollectiveOp op) {
  const Placement &from = op.getFrom().getValue();
  const Placement &to = op.getTo().getValue();
  SmallVector<Extents> views = {Extents(from.view()), Extents(to.view())};
  if (auto common = commonRefinement(from.view(), to.view()))
    views.push_back(common->extents);
  for (ArrayRef<int64_t> view : views) {
    std::optional<Holdings> fromSide = holdingsIn(from, view);
    std::optional<Holdings> toSide = holdingsIn(to, view);
    if (fromSide && toSide)
      return Sides{std::move(*fromSide), std::move(*toSide)};
  }
  return std::nullopt;
}

/// Checks that each device that holds elements of `inner` is in `outer`, and
/// its box there contains the inner one.
static LogicalResult verifyInside(CollectiveOp op, const Holdings &inner,
                                  StringRef innerName, const Holdings &outer,
                                  StringRef outerName) {
  for (const auto &[device, holding] : inner) {
    if (holding.box.empty())
      continue;
    auto it = outer.find(device);
    if (it == outer.end())
      return op.emitOpError("device ") << device << " of '" << innerName
                                       << "' isn't in '" << outerName << "'";
    if (!it->second.box.contains(holding.box))
      return op.emitOpError("the box of device ")
             << device << " in '" << innerName << "' isn't inside that in '"
             << outerName << "'";
  }
  return success();
}

/// Checks that each device that holds elements in `to` has the same box in
/// `from`.
static LogicalResult verifySameBoxes(CollectiveOp op, const Sides &sides) {
  if (failed(verifyInside(op, sides.to, "to", sides.from, "from")))
    return failure();
  for (const auto &[device, holding] : sides.to)
    if (!holding.box.empty() &&
        !holding.box.contains(sides.from.lookup(device).box))
      return op.emitOpError("the box of device ")
             << device << " in 'from' isn't inside that in 'to'";
  return success();
}

/// Checks that each device that holds elements in `to` is in `from`.
static LogicalResult verifyKnown(CollectiveOp op, const Sides &sides) {
  for (const auto &[device, holding] : sides.to)
    if (!holding.box.empty() && !sides.from.contains(device))
      return op.emitOpError("device ") << device << " of 'to' isn't in 'from'";
  return success();
}

static InFlightDiagnostic wrongTerms(CollectiveOp op, DeviceId device,
                                     int64_t from, int64_t to) {
  return op.emitOpError("device ")
         << device << " has one of " << from << " terms in 'from' and one of "
         << to << " in 'to'";
}

/// Checks that each device that holds elements in `to` has as many pending
/// terms in both.
static LogicalResult verifySameTerms(CollectiveOp op, const Sides &sides) {
  for (const auto &[device, holding] : sides.to) {
    int64_t before = sides.from.lookup(device).terms;
    if (!holding.box.empty() && holding.terms != before)
      return wrongTerms(op, device, before, holding.terms);
  }
  return success();
}

/// Checks that no device that holds elements in `to` has more pending terms
/// there than in `from`, and that some device has fewer.
static LogicalResult verifyFewerTerms(CollectiveOp op, const Sides &sides) {
  bool fewer = false;
  for (const auto &[device, holding] : sides.to) {
    int64_t before = sides.from.lookup(device).terms;
    if (!holding.box.empty() && holding.terms > before)
      return wrongTerms(op, device, before, holding.terms);
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
  // Match the shortest runs of dimensions with equal product; one of the two
  // runs must be a single dimension.
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

/// Checks that the value is the shard of this class's ranks in the placement.
static LogicalResult verifyShard(CollectiveOp op, Value value, StringRef what,
                                 const Placement &placement, StringRef side,
                                 ArrayRef<int64_t> ranks) {
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

static WhaleDialect &getDialect(CollectiveOp op) {
  return *op->getContext()->getLoadedDialect<WhaleDialect>();
}

/// Checks that the results are at most a shard and then a token, which a wait
/// uses.
static LogicalResult verifyOutputs(CollectiveOp op) {
  Value token = op.getToken();
  if (op->getNumResults() > 2 ||
      (op->getNumResults() == 2 && op->getResult(1) != token))
    return op.emitOpError("has results other than a shard and then a token");
  if (!token)
    return success();
  WaitOp wait;
  if (token.hasOneUse())
    wait = dyn_cast<WaitOp>(*token.user_begin());
  if (!wait || wait->getBlock() != op->getBlock())
    return op.emitOpError("has a token that isn't used by one whale.wait in "
                          "the same block");
  for (Operation *user : op->getUsers())
    if (user != wait) {
      InFlightDiagnostic diagnostic =
          user->emitOpError("uses a shard that is still being received");
      diagnostic.attachNote(op.getLoc()) << "its transfer starts here";
      return diagnostic;
    }
  return success();
}

static LogicalResult verifyCommon(CollectiveOp op) {
  if (failed(verifyOutputs(op)))
    return failure();
  int64_t channel = op.getChannel();
  if (channel < 0)
    return op.emitOpError("channel ") << channel << " is negative";
  // Far from the keys that hash tables keep for themselves.
  if (channel >> 32)
    return op.emitOpError("channel ") << channel << " is 2^32 or more";
  if (std::optional<uint64_t> with = op.getWith()) {
    if (*with == op.getChannel())
      return op.emitOpError("is a part of its own transfer");
    if (!op.getToken())
      return op.emitOpError("is a part of another transfer, and has no token");
  }
  Value input = op.getInput(), output = op.getOutput();
  if (input && output &&
      getElementTypeOrSelf(input) != getElementTypeOrSelf(output))
    return op.emitOpError("operand and result have element types ")
           << getElementTypeOrSelf(input) << " and "
           << getElementTypeOrSelf(output);
  const Placement &from = op.getFrom().getValue();
  const Placement &to = op.getTo().getValue();
  if (volumeOf(from.view()) != volumeOf(to.view()))
    return op.emitOpError("'from' has ")
           << volumeOf(from.view()) << " elements and 'to' "
           << volumeOf(to.view());
  if (from.hasWindows())
    return op.emitOpError("'from' is ")
           << from.str() << ": windows are allowed in 'to' only";
  std::optional<Reduction> before = from.reduction(), after = to.reduction();
  if (before && after && *before != *after)
    return op.emitOpError("'from' is a partial ")
           << stringifyReduction(*before) << " and 'to' a partial "
           << stringifyReduction(*after);
  std::optional<ArrayRef<int64_t>> ranks = getRanks(op);
  if (!ranks)
    return success();
  // The ranks of a class are one uniqued attribute, which can be a key.
  auto verifySide = [&](Value value, StringRef what, PlacementAttr placement,
                        StringRef side) {
    Type type = value ? value.getType() : Type();
    return getDialect(op).checkOnce({"shard", placement.getAsOpaquePointer(),
                                     type.getAsOpaquePointer(), ranks->data()},
                                    [&] {
                                      return verifyShard(op, value, what,
                                                         placement.getValue(),
                                                         side, *ranks);
                                    });
  };
  return failure(failed(verifySide(input, "operand", op.getFrom(), "from")) ||
                 failed(verifySide(output, "result", op.getTo(), "to")));
}

//===----------------------------------------------------------------------===//
// Constraints of each collective
//===----------------------------------------------------------------------===//

/// Runs `check` once for each kind of collective and pair of placements.
static LogicalResult checkPairOnce(CollectiveOp op,
                                   function_ref<LogicalResult()> check) {
  return getDialect(op).checkOnce({"sides", op->getName().getAsOpaquePointer(),
                                   op.getFrom().getAsOpaquePointer(),
                                   op.getTo().getAsOpaquePointer()},
                                  check);
}

/// Verifies the common constraints, then runs `check` on both placements.
/// Values without elements have only the common constraints.
static LogicalResult
verifySides(CollectiveOp op, function_ref<LogicalResult(const Sides &)> check) {
  if (failed(verifyCommon(op)))
    return failure();
  if (volumeOf(op.getFrom().getValue().view()) == 0)
    return success();
  return checkPairOnce(op, [&]() -> LogicalResult {
    if (std::optional<Sides> sides = compare(op))
      return check(*sides);
    return op.emitOpError("'from' and 'to' have no view in common in which "
                          "all parts are boxes");
  });
}

LogicalResult AllReduceOp::verify() {
  CollectiveOp op(*this);
  if (failed(verifySides(op, [&](const Sides &sides) {
        return success(succeeded(verifySameBoxes(op, sides)) &&
                       succeeded(verifyFewerTerms(op, sides)));
      })))
    return failure();
  auto hasElements = [](Value value) {
    return value && cast<ShapedType>(value.getType()).getNumElements() > 0;
  };
  if (hasElements(op.getInput()) != hasElements(op.getOutput()))
    return emitOpError("lacks an operand or a result: each rank passes a "
                       "term and receives the sum");
  return success();
}

SmallVector<InPlacePair> AllReduceOp::getInPlacePairs() {
  // A rank without elements may have no operand, or no result.
  if (!getInput() || !getOutput())
    return {};
  // Every rank replaces its whole buffer by its group's reduction. If the
  // transfer is asynchronous, this is required: the operand is not kept alive
  // until the wait, so its buffer must be the result's.
  return {{0, 0, /*required=*/bool(CollectiveOp(*this).getToken())}};
}

LogicalResult ReduceScatterOp::verify() {
  CollectiveOp op(*this);
  return verifySides(op, [&](const Sides &sides) {
    return success(
        succeeded(verifyInside(op, sides.to, "to", sides.from, "from")) &&
        succeeded(verifyFewerTerms(op, sides)));
  });
}

LogicalResult AllGatherOp::verify() {
  CollectiveOp op(*this);
  if (getTo().getValue().isPartial())
    return verifyCommon(op);
  return verifySides(op, [&](const Sides &sides) {
    return success(
        succeeded(verifyKnown(op, sides)) &&
        succeeded(verifyInside(op, sides.from, "from", sides.to, "to")) &&
        succeeded(verifySameTerms(op, sides)));
  });
}

LogicalResult AllToAllOp::verify() {
  CollectiveOp op(*this);
  if (getTo().getValue().isPartial())
    return verifyCommon(op);
  return verifySides(op, [&](const Sides &sides) {
    return success(succeeded(verifyKnown(op, sides)) &&
                   succeeded(verifySameTerms(op, sides)));
  });
}

LogicalResult BroadcastOp::verify() {
  for (auto [placement, name] : {std::pair(getFrom(), "from"), {getTo(), "to"}})
    if (placement.getValue().isPartial())
      return emitOpError("'") << name << "' is partial";
  return verifySides(CollectiveOp(*this), [&](const Sides &sides) {
    for (const auto &[device, holding] : sides.to)
      if (llvm::none_of(sides.from, [&](const auto &source) {
            return source.second.box.contains(holding.box);
          }))
        return LogicalResult(
            emitOpError("no device of 'from' holds the box of device ")
            << device << " in 'to'");
    return success();
  });
}

LogicalResult SendRecvOp::verify() { return verifyCommon(*this); }

LogicalResult LocalSliceOp::verify() {
  CollectiveOp op(*this);
  if (failed(verifyCommon(op)))
    return failure();
  if (volumeOf(getFrom().getValue().view()) == 0 ||
      getTo().getValue().isPartial())
    return success();
  if (getFrom().getValue().isPartial())
    return emitOpError("'from' is partial and 'to' isn't");
  return checkPairOnce(op, [&] {
    std::optional<Sides> sides = compare(op);
    return success(!sides || succeeded(verifyInside(op, sides->to, "to",
                                                    sides->from, "from")));
  });
}

CollectiveOp WaitOp::getCollective() {
  return getToken().getDefiningOp<CollectiveOp>();
}

LogicalResult WaitOp::verify() {
  CollectiveOp collective = getCollective();
  if (!collective || collective->getBlock() != (*this)->getBlock())
    return emitOpError("expects the token of a collective in the same block");
  if (getReceived() != collective.getOutput())
    return emitOpError("'for' must be the collective's result");
  if (getReceived()
          ? !getResult() || getResult().getType() != getReceived().getType()
          : bool(getResult()))
    return emitOpError(
        "expects a result of the type of 'for', and none without it");
  Value sent = collective.getInput();
  if (isa<AllReduceOp>(collective.getOperation()) && collective.getOutput())
    sent = {};
  if (getSent() != sent)
    return emitOpError(sent ? "'keeps' must be the collective's operand"
                            : "'keeps' must be left out");
  return success();
}
