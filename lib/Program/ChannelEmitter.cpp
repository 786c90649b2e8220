//===- ChannelEmitter.cpp - Collectives of a program ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of the classes say where each rank joins a channel; the
// placements of any one of its operations say what it does.
//
//===----------------------------------------------------------------------===//

#include "ChannelEmitter.h"

#include "ToFormat.h"
#include "mlir/IR/Threading.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "whale/Placement/Cells.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/Hashing.h"

#include <atomic>
#include <map>
#include <set>

using namespace mlir;

namespace whale {
namespace {

Type elementTypeOf(CollectiveOp op) {
  Value value = op.getInput() ? op.getInput() : op.getOutput();
  return cast<RankedTensorType>(value.getType()).getElementType();
}

/// The local types of what a channel gives and takes, null where it is nothing.
/// Micro-batches use a channel once each, in the same way.
struct Sides {
  Type source, target;

  explicit Sides(CollectiveOp op)
      : source(op.getInput() ? op.getInput().getType() : Type()),
        target(op.getOutput() ? op.getOutput().getType() : Type()) {}
  bool operator==(const Sides &other) const = default;
};

/// A channel as the classes use it.
struct Use {
  CollectiveOp op;
  /// By rank class: of all its ranks.
  std::map<size_t, Sides> sides;

  /// True if all but the number is the same in the other channel.
  bool movesLike(Use &other) {
    return op.getFrom() == other.op.getFrom() &&
           op.getTo() == other.op.getTo() &&
           op->getName() == other.op->getName() &&
           elementTypeOf(op) == elementTypeOf(other.op) && sides == other.sides;
  }
};

format::Shared<std::vector<format::Cell>> toFormat(const Receiver &receiver) {
  std::vector<format::Cell> list;
  list.reserve(receiver.cells.size());
  for (const Cell &cell : receiver.cells) {
    format::Cell &last = list.emplace_back();
    last.dstStart = toShape(cell.box.start);
    last.size = toShape(cell.box.size);
    for (const Contribution &part : cell.contributions)
      last.from.push_back({part.peer, toShape(part.start)});
  }
  return std::make_shared<std::vector<format::Cell>>(std::move(list));
}

format::Reduction toFormat(Reduction reduction) {
  switch (reduction) {
  case Reduction::Sum:
    return format::Reduction::Sum;
  case Reduction::Product:
    return format::Reduction::Product;
  case Reduction::Min:
    return format::Reduction::Min;
  case Reduction::Max:
    return format::Reduction::Max;
  case Reduction::And:
    return format::Reduction::And;
  case Reduction::Or:
    return format::Reduction::Or;
  }
  llvm_unreachable("all reductions are handled");
}

/// Equal for equal cells.
size_t hashOf(const Receiver &receiver) {
  llvm::hash_code hash(receiver.cells.size());
  for (const Cell &cell : receiver.cells) {
    hash = llvm::hash_combine(hash, ArrayRef<int64_t>(cell.box.start),
                              ArrayRef<int64_t>(cell.box.size));
    for (const Contribution &part : cell.contributions)
      hash = llvm::hash_combine(hash, part.peer, ArrayRef<int64_t>(part.start));
  }
  return hash;
}

LogicalResult failTooLarge(CollectiveOp op) {
  return op.emitError("exchanges more pieces between ")
         << op.getTo().getValue().devices().size()
         << " ranks than a program may list; use fewer devices, or smaller "
            "groups of them";
}

/// Pieces that tables of cells may have, in all of a program: those that are
/// looked at, and those that are written. Between N ranks that exchange all
/// with all there are N * N.
constexpr int64_t kMostLooked = int64_t(1) << 27;
constexpr int64_t kMostWritten = int64_t(1) << 23;

struct Budget {
  std::atomic<int64_t> looked = kMostLooked, written = kMostWritten;
};

/// The ranks that cells tie together, ascending.
format::Groups groupsOf(const format::Collective &collective) {
  llvm::EquivalenceClasses<int64_t> classes;
  // All who have one list take from the same peers.
  llvm::DenseMap<const std::vector<format::Cell> *, int64_t> firstOf;
  for (const auto &[rank, cells] : collective.cells) {
    auto [first, isNew] = firstOf.try_emplace(cells.get(), rank);
    classes.unionSets(first->second, rank);
    if (isNew)
      for (const format::Cell &cell : *cells)
        for (const format::Cell::Contribution &from : cell.from)
          classes.unionSets(rank, from.peer);
  }
  format::Groups groups;
  for (const auto *leader : classes)
    if (leader->isLeader()) {
      format::Group group(classes.member_begin(*leader), classes.member_end());
      llvm::sort(group);
      if (group.size() > 1)
        groups.insert(std::move(group));
    }
  return groups;
}

FailureOr<format::Collective> emitChannel(const Use &use,
                                          ArrayRef<func::FuncOp> classes,
                                          const Topology &topology,
                                          Budget &budget) {
  CollectiveOp op = use.op;
  Step step{stepKindOf(op), op.getFrom().getValue(), op.getTo().getValue()};
  std::optional<Reduction> reduction = reductionOf(step);
  Type element = elementTypeOf(op);
  format::Collective collective;
  collective.kind = stringifyStepKind(step.kind).str();
  if (reduction)
    collective.reduction = toFormat(*reduction);
  collective.dtype = toDType(element);
  auto shapeOf = [](Type type) {
    return toShape(cast<RankedTensorType>(type).getShape());
  };
  for (const auto &[number, sides] : use.sides) {
    std::optional<ArrayRef<int64_t>> ranks = getRanks(classes[number]);
    for (int64_t rank : *ranks) {
      collective.participants.push_back(rank);
      if (sides.source)
        collective.srcShapes[rank] = shapeOf(sides.source);
      if (sides.target)
        collective.dstShapes[rank] = shapeOf(sides.target);
    }
  }
  llvm::sort(collective.participants);

  if (step.kind == StepKind::AllReduce) {
    for (const auto &group : groups(step, topology))
      if (group.size() > 1)
        collective.groups.insert({group.begin(), group.end()});
    return collective;
  }

  bool ordered = reduction == Reduction::Min || reduction == Reduction::Max;
  bool wide = element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 16;
  // All ranks of a group may receive the same: they share their cells.
  llvm::DenseMap<size_t, std::vector<Receiver>> known;
  auto add = [&](Receiver receiver) -> LogicalResult {
    int64_t pieces = 0;
    for (const Cell &cell : receiver.cells)
      pieces += 1 + int64_t(cell.contributions.size());
    if ((budget.looked -= pieces) < 0)
      return failTooLarge(op);
    bool fills = llvm::any_of(receiver.cells, [](const Cell &cell) {
      return cell.contributions.empty();
    });
    if (fills && ordered && !wide)
      return op.emitError("there is no identity of ")
             << stringifyReduction(*reduction) << " in " << element;
    auto target = collective.dstShapes.find(receiver.device);
    if (target == collective.dstShapes.end()) {
      // What a rank takes from itself and doesn't use is left out there.
      if (receiver.cells.empty() || isa<LocalSliceOp>(op.getOperation()))
        return success();
      return op.emitError("gives elements to rank ")
             << receiver.device << ", whose function takes none";
    }
    target->second = toShape(receiver.shape);
    std::vector<Receiver> &alike = known[hashOf(receiver)];
    auto equal = llvm::find_if(alike, [&](const Receiver &other) {
      return other.cells == receiver.cells;
    });
    if (equal != alike.end()) {
      collective.cells[receiver.device] = collective.cells.at(equal->device);
      return success();
    }
    if ((budget.written -= pieces) < 0)
      return failTooLarge(op);
    collective.cells[receiver.device] = toFormat(receiver);
    alike.push_back(std::move(receiver));
    return success();
  };
  if (!forEachReceiver(step, topology, [&](Receiver receiver) {
        return succeeded(add(std::move(receiver)));
      }))
    return failure();
  for (const Sender &sender : sendersOf(step)) {
    auto source = collective.srcShapes.find(sender.device);
    if (source != collective.srcShapes.end())
      source->second = toShape(sender.shape);
  }
  collective.groups = groupsOf(collective);
  return collective;
}

} // namespace

static Topology topologyOf(ModuleOp module) {
  Topology topology;
  for (ClusterOp cluster : module.getOps<ClusterOp>())
    topology = Topology::of(cluster.getCluster());
  return topology;
}

LogicalResult checkPieces(ModuleOp module) {
  Topology topology = topologyOf(module);
  llvm::DenseSet<std::pair<Attribute, Attribute>> counted;
  int64_t pieces = 0;
  WalkResult walk = module.walk([&](CollectiveOp op) {
    Step step{stepKindOf(op), op.getFrom().getValue(), op.getTo().getValue()};
    // An all-reduce has groups only. Where each rank takes one piece from each
    // other, and there are few, it is as fast to make the pieces.
    int64_t pairs =
        int64_t(step.from.shards().size()) * int64_t(step.to.shards().size());
    if (step.kind == StepKind::AllReduce || 2 * pairs <= kMostWritten ||
        !counted.insert({op.getFrom(), op.getTo()}).second)
      return WalkResult::advance();
    pieces += countPieces(step, topology, kMostWritten - pieces);
    if (pieces <= kMostWritten)
      return WalkResult::advance();
    (void)failTooLarge(op);
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

FailureOr<std::map<int64_t, format::Shared<format::Collective>>>
emitChannels(ModuleOp module, ArrayRef<func::FuncOp> classes) {
  std::map<uint64_t, Use> uses;
  for (size_t number = 0; number < classes.size(); ++number) {
    func::FuncOp function = classes[number];
    WalkResult walk = function.walk([&](CollectiveOp op) {
      Use &use = uses[op.getChannel()];
      if (!use.op)
        use.op = op;
      if (use.op.getFrom() != op.getFrom() || use.op.getTo() != op.getTo() ||
          use.op->getName() != op->getName() ||
          elementTypeOf(use.op) != elementTypeOf(op)) {
        op.emitError("channel ")
            << op.getChannel() << " is another one in another rank class";
        return WalkResult::interrupt();
      }
      auto [sides, isNew] = use.sides.try_emplace(number, op);
      if (!isNew && sides->second != Sides(op)) {
        op.emitError("channel ")
            << op.getChannel() << " is used with different shapes";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
  }
  Topology topology = topologyOf(module);
  // The same collective of many layers is one: on many ranks its table is what
  // is large.
  std::map<int64_t, format::Shared<format::Collective>> channels;
  std::map<int64_t, int64_t> sameAs;
  std::vector<std::pair<int64_t, const Use *>> distinct;
  llvm::DenseMap<std::pair<Attribute, Attribute>,
                 SmallVector<std::pair<int64_t, Use *>>>
      similarTo;
  for (auto &[channel, use] : uses) {
    auto &similar = similarTo[{use.op.getFrom(), use.op.getTo()}];
    auto *first = llvm::find_if(similar, [&use = use](auto &other) {
      return use.movesLike(*other.second);
    });
    auto number = int64_t(channel);
    channels[number] = nullptr;
    if (first != similar.end()) {
      sameAs[number] = first->first;
      continue;
    }
    similar.push_back({number, &use});
    distinct.push_back({number, &use});
  }
  Budget budget;
  auto emit = [&](const std::pair<int64_t, const Use *> &channel) {
    FailureOr<format::Collective> collective =
        emitChannel(*channel.second, classes, topology, budget);
    if (succeeded(collective))
      channels.at(channel.first) =
          std::make_shared<format::Collective>(std::move(*collective));
    return LogicalResult(collective);
  };
  if (failed(failableParallelForEach(module.getContext(), distinct, emit)))
    return failure();
  for (auto [number, other] : sameAs)
    channels[number] = channels.at(other);
  return channels;
}

} // namespace whale
