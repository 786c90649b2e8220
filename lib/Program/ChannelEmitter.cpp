//===- ChannelEmitter.cpp - Collectives of a program ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the schedules of all rank classes. Out: for each channel the collective
// that ranks perform on it: participants, groups, and for each receiver which
// boxes it takes from whom. Schedules say which ranks use a channel; the
// placements of any one of its operations say what moves. Channels that move
// the same share one collective, receivers of the same boxes one list.
//
// Cost: linear in the collectives of all classes. For each different
// collective, the table of its pieces, which between n ranks that exchange all
// with all has n * n: it is bounded, and checkPieces, run early, counts the
// pieces of large ones. Channels are compared pairwise where they have the same
// placements, but different types or shapes.
//
//===----------------------------------------------------------------------===//

#include "ChannelEmitter.h"

#include "ToFormat.h"
#include "mlir/IR/Threading.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Placement/Cells.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/MapVector.h"

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

/// True if all but the number and the shapes is the same.
bool isSameExchange(CollectiveOp a, CollectiveOp b) {
  return a.getFrom() == b.getFrom() && a.getTo() == b.getTo() &&
         a->getName() == b->getName() && elementTypeOf(a) == elementTypeOf(b);
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

/// A part of a channel as the classes use it.
struct Use {
  CollectiveOp op;
  /// By rank class: of all its ranks.
  std::map<size_t, Sides> sides;

  /// True if all but the number is the same in the other channel.
  bool movesLike(const Use &other) const {
    return isSameExchange(op, other.op) && sides == other.sides;
  }
};

/// A channel: its parts in their order.
using Parts = SmallVector<Use *, 1>;

bool moveAlike(ArrayRef<Use *> a, ArrayRef<Use *> b) {
  return llvm::equal(
      a, b, [](Use *one, Use *other) { return one->movesLike(*other); });
}

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

/// A part of channels, with the pieces that it takes of the budget.
struct EmittedPart {
  format::ChannelPart tensor;
  int64_t looked = 0, written = 0;
};

/// The ranks that cells tie together, ascending.
format::Groups groupsOf(ArrayRef<format::ChannelPart> parts) {
  llvm::EquivalenceClasses<int64_t> classes;
  // All who have one list take from the same peers, if from any.
  llvm::DenseMap<const std::vector<format::Cell> *, int64_t> firstOf;
  for (const format::ChannelPart &part : parts)
    for (const auto &[rank, cells] : part.cells) {
      auto [first, isNew] = firstOf.try_emplace(cells.get(), rank);
      if (llvm::all_of(*cells, [](const format::Cell &cell) {
            return cell.from.empty();
          }))
        continue;
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

/// Fills the cells of a tensor, one receiver after the other.
class CellWriter {
public:
  CellWriter(CollectiveOp op, std::optional<Reduction> reduction,
             Budget &budget, EmittedPart &part)
      : op(op), reduction(reduction), budget(budget), part(part) {}

  LogicalResult add(Receiver receiver);

private:
  LogicalResult checkIdentity(const Receiver &receiver);

  CollectiveOp op;
  std::optional<Reduction> reduction;
  Budget &budget;
  EmittedPart &part;
  /// All ranks of a group may receive the same: they share their cells.
  llvm::DenseMap<size_t, std::vector<Receiver>> known;
};

/// What nobody contributes to is filled with the identity of the reduction.
LogicalResult CellWriter::checkIdentity(const Receiver &receiver) {
  Type element = elementTypeOf(op);
  bool ordered = reduction == Reduction::Min || reduction == Reduction::Max;
  bool wide = element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 16;
  bool fills = llvm::any_of(receiver.cells, [](const Cell &cell) {
    return cell.contributions.empty();
  });
  if (!fills || !ordered || wide)
    return success();
  return op.emitError("there is no identity of ")
         << stringifyReduction(*reduction) << " in " << element;
}

LogicalResult CellWriter::add(Receiver receiver) {
  int64_t pieces = 0;
  for (const Cell &cell : receiver.cells)
    pieces += 1 + int64_t(cell.contributions.size());
  part.looked += pieces;
  if ((budget.looked -= pieces) < 0)
    return failTooLarge(op);
  if (failed(checkIdentity(receiver)))
    return failure();
  format::ChannelPart &tensor = part.tensor;
  auto target = tensor.dstShapes.find(receiver.device);
  if (target == tensor.dstShapes.end()) {
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
    tensor.cells[receiver.device] = tensor.cells.at(equal->device);
    return success();
  }
  part.written += pieces;
  if ((budget.written -= pieces) < 0)
    return failTooLarge(op);
  tensor.cells[receiver.device] = toFormat(receiver);
  alike.push_back(std::move(receiver));
  return success();
}

/// The shapes that the schedules of the ranks give.
void addShapes(const Use &use, ArrayRef<ScheduleOp> classes,
               format::ChannelPart &tensor) {
  auto shapeOf = [](Type type) {
    return toShape(cast<RankedTensorType>(type).getShape());
  };
  for (const auto &[number, sides] : use.sides) {
    for (int64_t rank : ScheduleOp(classes[number]).getRanks()) {
      if (sides.source)
        tensor.srcShapes[rank] = shapeOf(sides.source);
      if (sides.target)
        tensor.dstShapes[rank] = shapeOf(sides.target);
    }
  }
}

Step stepOf(CollectiveOp op) {
  return {stepKindOf(op), op.getFrom().getValue(), op.getTo().getValue()};
}

FailureOr<EmittedPart> emitPart(const Use &use, ArrayRef<ScheduleOp> classes,
                                const Topology &topology, Budget &budget) {
  CollectiveOp op = use.op;
  Step step = stepOf(op);
  EmittedPart part;
  format::ChannelPart &tensor = part.tensor;
  if (isHostCopy(op)) {
    tensor.dtype = toDType(elementTypeOf(op));
    addShapes(use, classes, tensor);
    return part;
  }
  std::optional<Reduction> reduction = reductionOf(step);
  if (reduction)
    tensor.reduction = toFormat(*reduction);
  tensor.dtype = toDType(elementTypeOf(op));
  addShapes(use, classes, tensor);
  if (step.kind == StepKind::AllReduce)
    return part;
  CellWriter cells(op, reduction, budget, part);
  if (!forEachReceiver(step, topology, [&](Receiver receiver) {
        return succeeded(cells.add(std::move(receiver)));
      }))
    return failure();
  for (const Sender &sender : sendersOf(step)) {
    auto source = tensor.srcShapes.find(sender.device);
    if (source != tensor.srcShapes.end())
      source->second = toShape(sender.shape);
  }
  return part;
}

/// Those that channels consist of, each different one emitted once: channels of
/// several parts are of the same few in other combinations.
class EmittedParts {
public:
  EmittedParts(ArrayRef<ScheduleOp> classes, const Topology &topology,
               Budget &budget)
      : classes(classes), topology(topology), budget(budget) {}

  /// Of all that are asked for later.
  void add(Use *use);
  LogicalResult emit(MLIRContext *context);
  /// Takes its pieces from the budget, once more where it was emitted for
  /// another one.
  FailureOr<format::ChannelPart> find(Use *use) const;

private:
  ArrayRef<ScheduleOp> classes;
  const Topology &topology;
  Budget &budget;
  std::vector<Use *> distinct;
  std::vector<EmittedPart> emitted;
  llvm::DenseMap<std::pair<Attribute, Attribute>, SmallVector<size_t>>
      similarTo;
  llvm::DenseMap<Use *, size_t> numberOf;
};

void EmittedParts::add(Use *use) {
  auto &similar = similarTo[{use->op.getFrom(), use->op.getTo()}];
  auto *same = llvm::find_if(similar, [&](size_t number) {
    return distinct[number]->movesLike(*use);
  });
  if (same == similar.end()) {
    similar.push_back(distinct.size());
    distinct.push_back(use);
    same = &similar.back();
  }
  numberOf[use] = *same;
}

LogicalResult EmittedParts::emit(MLIRContext *context) {
  emitted.resize(distinct.size());
  return failableParallelForEachN(
      context, 0, distinct.size(), [&](size_t number) -> LogicalResult {
        FailureOr<EmittedPart> part =
            emitPart(*distinct[number], classes, topology, budget);
        if (succeeded(part))
          emitted[number] = std::move(*part);
        return part;
      });
}

FailureOr<format::ChannelPart> EmittedParts::find(Use *use) const {
  size_t number = numberOf.at(use);
  const EmittedPart &part = emitted[number];
  if (distinct[number] != use && ((budget.looked -= part.looked) < 0 ||
                                  (budget.written -= part.written) < 0))
    return failTooLarge(use->op);
  return part.tensor;
}

FailureOr<format::Collective> emitChannel(ArrayRef<Use *> parts,
                                          ArrayRef<ScheduleOp> classes,
                                          const Topology &topology,
                                          const EmittedParts &emitted) {
  format::Collective collective;
  collective.parts.clear();
  for (Use *use : parts) {
    FailureOr<format::ChannelPart> part = emitted.find(use);
    if (failed(part))
      return failure();
    collective.parts.push_back(std::move(*part));
  }
  Step step = stepOf(parts.front()->op);
  Operation *first = parts.front()->op;
  collective.kind = isHostCopy(first) ? first->getName().stripDialect().str()
                                      : stringifyStepKind(step.kind).str();
  for (const auto &[number, sides] : parts.front()->sides)
    llvm::append_range(collective.participants,
                       ScheduleOp(classes[number]).getRanks());
  llvm::sort(collective.participants);
  if (step.kind == StepKind::AllReduce) {
    for (const auto &group : groups(step, topology))
      if (group.size() > 1)
        collective.groups.insert({group.begin(), group.end()});
  } else {
    collective.groups = groupsOf(collective.parts);
  }
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
    // An all-reduce has groups only, a copy not even these.
    if (isa<AllReduceOp>(op.getOperation()) || isHostCopy(op) ||
        !counted.insert({op.getFrom(), op.getTo()}).second)
      return WalkResult::advance();
    Step step = stepOf(op);
    // Where each rank takes one piece from each other, and there are few, it is
    // as fast to make the pieces.
    int64_t pairs =
        int64_t(step.from.shards().size()) * int64_t(step.to.shards().size());
    if (2 * pairs <= kMostWritten)
      return WalkResult::advance();
    pieces += countPieces(step, topology, kMostWritten - pieces);
    if (pieces <= kMostWritten)
      return WalkResult::advance();
    (void)failTooLarge(op);
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

static LogicalResult failUnlike(CollectiveOp op) {
  return op.emitError("channel ")
         << op.getChannel() << " is another one in another rank class";
}

/// By channel: the first use of a class, which those of other micro-batches are
/// like.
using FirstUses = llvm::MapVector<uint64_t, CollectiveOp>;

static FailureOr<FirstUses> findFirstUses(ScheduleOp schedule) {
  FirstUses uses;
  WalkResult walk = schedule.walk([&](CollectiveOp op) {
    auto [use, isNew] = uses.insert({op.getChannel(), op});
    if (isNew)
      return WalkResult::advance();
    if (!isSameExchange(use->second, op))
      return WalkResult(failUnlike(op));
    if (Sides(use->second) != Sides(op))
      return WalkResult(op.emitError("channel ")
                        << op.getChannel() << " is used with different shapes");
    return WalkResult::advance();
  });
  return walk.wasInterrupted() ? FailureOr<FirstUses>() : std::move(uses);
}

static FailureOr<std::map<uint64_t, Use>>
collectUses(ArrayRef<ScheduleOp> classes) {
  std::vector<FirstUses> usesOf(classes.size());
  auto find = [&](size_t number) -> LogicalResult {
    FailureOr<FirstUses> found = findFirstUses(classes[number]);
    if (succeeded(found))
      usesOf[number] = std::move(*found);
    return found;
  };
  if (failed(failableParallelForEachN(classes.front()->getContext(), 0,
                                      classes.size(), find)))
    return failure();
  std::map<uint64_t, Use> uses;
  for (auto [number, firstUses] : llvm::enumerate(usesOf))
    for (auto [channel, op] : firstUses) {
      Use &use = uses[channel];
      if (!use.op)
        use.op = op;
      else if (!isSameExchange(use.op, op))
        return failUnlike(op);
      use.sides.try_emplace(number, op);
    }
  return uses;
}

/// The parts of each channel, in the order of their starts, which is that of
/// all classes.
static std::map<uint64_t, Parts> partsOf(std::map<uint64_t, Use> &uses) {
  std::map<uint64_t, Parts> parts;
  for (auto &[number, use] : uses) {
    if (use.op.getWith())
      continue;
    Parts &its = parts[number];
    its.push_back(&use);
    for (Operation *next = use.op->getNextNode(); next;
         next = next->getNextNode()) {
      auto part = dyn_cast<CollectiveOp>(next);
      if (!part || part.getWith() != number)
        break;
      its.push_back(&uses.at(part.getChannel()));
    }
  }
  return parts;
}

FailureOr<std::map<int64_t, format::Shared<format::Collective>>>
emitChannels(ModuleOp module, ArrayRef<ScheduleOp> classes) {
  FailureOr<std::map<uint64_t, Use>> uses = collectUses(classes);
  if (failed(uses))
    return failure();
  std::map<uint64_t, Parts> parts = partsOf(*uses);
  Topology topology = topologyOf(module);
  // The same collective of many layers is one: on many ranks its table is what
  // is large.
  std::map<int64_t, format::Shared<format::Collective>> channels;
  std::map<int64_t, int64_t> sameAs;
  using Numbered = std::pair<int64_t, ArrayRef<Use *>>;
  std::vector<Numbered> distinct;
  llvm::DenseMap<std::pair<Attribute, Attribute>, SmallVector<Numbered>>
      similarTo;
  for (const auto &[channel, its] : parts) {
    CollectiveOp op = its.front()->op;
    auto &similar = similarTo[{op.getFrom(), op.getTo()}];
    auto *first = llvm::find_if(similar, [&its = its](const Numbered &other) {
      return moveAlike(its, other.second);
    });
    auto number = int64_t(channel);
    channels[number] = nullptr;
    if (first != similar.end()) {
      sameAs[number] = first->first;
      continue;
    }
    similar.push_back({number, its});
    distinct.push_back({number, its});
  }
  Budget budget;
  EmittedParts emitted(classes, topology, budget);
  for (const auto &[number, its] : distinct)
    for (Use *use : its)
      emitted.add(use);
  if (failed(emitted.emit(module.getContext())))
    return failure();
  auto emit = [&](const Numbered &channel) {
    FailureOr<format::Collective> collective =
        emitChannel(channel.second, classes, topology, emitted);
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
