//===- JoinCollectives.cpp - whale-join-collectives -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the schedules of the rank classes. Out: the same, where small
// all-reduces, all-gathers and reduce-scatters of the same groups that don't
// depend on one another are one, of their operands side by side. They take the
// place of the first: what the others need and that comes behind it moves in
// front of it. As no other exchange moves, all classes still reach theirs in
// one order.
//
// What a moved operation leaves for others lives longer. Of this there is as
// little as of what is joined, and few operations move, which bounds the cost:
// that of O(buckets * operations that may move) for each collective.
//
//===----------------------------------------------------------------------===//

#include "CollectiveSteps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Placement/GroupGather.h"
#include "whale/Placement/GroupReduction.h"
#include "whale/Transforms/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_JOINCOLLECTIVES
#include "whale/Transforms/Partition/Passes.h.inc"

namespace {

/// How a collective can be joined with others.
struct JoinForm {
  StepKind kind;
  Type elementType;
  /// Of an all-reduce, and of the others.
  GroupReduction reduction;
  GroupGather gather;

  bool canJoin(const JoinForm &other) const {
    return kind == other.kind && elementType == other.elementType &&
           reduction.reduction == other.reduction.reduction &&
           reduction.groups == other.reduction.groups &&
           gather.reduction == other.gather.reduction &&
           gather.groups == other.gather.groups;
  }
};

/// A collective that may be joined with others.
struct Candidate {
  /// In each class that takes part, with the number of the class.
  SmallVector<std::pair<size_t, CollectiveOp>> uses;
  const JoinForm *form = nullptr;
  /// Of the whole value.
  int64_t bytes = 0;
};

/// Candidates that become one in the place of the first.
struct Bucket {
  SmallVector<Candidate *> members;
  int64_t bytes = 0;
  /// Of the results of moved operations that others than these use, in the
  /// class that has most.
  int64_t leftBytes = 0;
};

class CollectiveJoiner {
public:
  CollectiveJoiner(ArrayRef<ScheduleOp> classes, int64_t bucketBytes)
      : classes(classes), bucketBytes(bucketBytes) {}

  void run();

private:
  /// Operations to be moved, in their order, and what they leave for others.
  struct Moved {
    SmallVector<Operation *> ops;
    int64_t leftBytes = 0;
  };

  const JoinForm *formOf(CollectiveOp op);
  void collect(size_t number);
  bool tryJoin(Bucket &bucket, Candidate &candidate);
  std::optional<Moved> findMoved(Operation *first, Operation *op);
  void join(ArrayRef<Candidate *> members, size_t use);

  ArrayRef<ScheduleOp> classes;
  int64_t bucketBytes;
  std::map<std::tuple<StepKind, const void *, const void *, const void *>,
           std::optional<JoinForm>>
      known;
  /// By channel, in the order in which they are reached; null where one is no
  /// candidate.
  llvm::MapVector<uint64_t, std::unique_ptr<Candidate>> candidates;
  /// Where an operation stands in its schedule: a joined one at the first of
  /// its bucket, and right in front of that what it needs.
  DenseMap<Operation *, int64_t> places;
};

} // namespace

/// What a collective does; null if it can't be joined with any.
const JoinForm *CollectiveJoiner::formOf(CollectiveOp op) {
  StepKind kind = stepKindOf(op);
  bool isReduction = kind == StepKind::AllReduce;
  if ((!isReduction && kind != StepKind::AllGather &&
       kind != StepKind::ReduceScatter) ||
      !op.getInput() || !op.getOutput() || op.getToken() ||
      op.getInput().getDefiningOp<PackOp>())
    return nullptr;
  Type elementType = getElementTypeOrSelf(op.getOutput().getType());
  auto [it, isNew] = known.try_emplace({kind, op.getFrom().getAsOpaquePointer(),
                                        op.getTo().getAsOpaquePointer(),
                                        elementType.getAsOpaquePointer()},
                                       std::nullopt);
  if (!isNew)
    return it->second ? &*it->second : nullptr;
  Step step{kind, op.getFrom().getValue(), op.getTo().getValue()};
  if (isReduction) {
    if (auto reduction = GroupReduction::of(step))
      it->second = JoinForm{kind, elementType, std::move(*reduction), {}};
  } else if (auto gather = GroupGather::of(step)) {
    it->second = JoinForm{kind, elementType, {}, std::move(*gather)};
  }
  return it->second ? &*it->second : nullptr;
}

static int64_t bytesOf(Value value) { return getTensorBytes(value.getType()); }

void CollectiveJoiner::collect(size_t number) {
  ScheduleOp schedule = classes[number];
  for (auto [place, op] : llvm::enumerate(schedule.front())) {
    places[&op] = 2 * int64_t(place);
    auto collective = dyn_cast<CollectiveOp>(op);
    const JoinForm *form = collective ? formOf(collective) : nullptr;
    if (!form) {
      op.walk(
          [&](CollectiveOp inner) { candidates[inner.getChannel()].reset(); });
      continue;
    }
    auto [it, isNew] = candidates.try_emplace(collective.getChannel());
    if (isNew)
      it->second = std::make_unique<Candidate>(
          Candidate{{},
                    form,
                    std::max(bytesOf(collective.getInput()),
                             bytesOf(collective.getOutput()))});
    if (!it->second)
      continue;
    // Micro-batches use a channel once each.
    if (Candidate &its = *it->second;
        its.uses.empty() || its.uses.back().first != number)
      its.uses.push_back({number, collective});
    else
      it->second.reset();
  }
}

/// Whether ranks exchange something in an operation.
static bool hasExchange(Operation *op) {
  return op
      ->walk([](CollectiveOp inner) {
        return isa<LocalSliceOp>(inner.getOperation())
                   ? WalkResult::advance()
                   : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// What has to move in front of `first` for `op` to stand there; nullopt where
/// that can't be, or would be much.
std::optional<CollectiveJoiner::Moved>
CollectiveJoiner::findMoved(Operation *first, Operation *op) {
  constexpr size_t mostOps = 64;
  Block *block = op->getBlock();
  int64_t place = places.lookup(first);
  llvm::SmallSetVector<Operation *, 16> moved;
  auto addReads = [&](Operation *reader) {
    for (Value value : getReads(reader)) {
      Operation *producer = value.getDefiningOp();
      if (!producer || producer->getBlock() != block ||
          places.lookup(producer) < place || moved.contains(producer))
        continue;
      if (!isMemoryEffectFree(producer) || hasExchange(producer) ||
          moved.size() == mostOps)
        return false;
      moved.insert(producer);
    }
    return true;
  };
  if (!addReads(op))
    return std::nullopt;
  for (size_t i = 0; i < moved.size(); ++i)
    if (!addReads(moved[i]))
      return std::nullopt;
  Moved result{moved.takeVector(), 0};
  llvm::SmallDenseSet<Operation *, 16> inside(result.ops.begin(),
                                              result.ops.end());
  inside.insert(op);
  for (Operation *producer : result.ops)
    for (Value value : producer->getResults())
      if (llvm::any_of(value.getUsers(), [&](Operation *user) {
            return !inside.contains(block->findAncestorOpInBlock(*user));
          }))
        result.leftBytes += bytesOf(value);
  llvm::sort(result.ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return result;
}

/// Adds a candidate to a bucket if it can stand where that does in all classes.
bool CollectiveJoiner::tryJoin(Bucket &bucket, Candidate &candidate) {
  Candidate &first = *bucket.members.front();
  if (bucket.bytes + candidate.bytes > bucketBytes ||
      !first.form->canJoin(*candidate.form) ||
      first.uses.size() != candidate.uses.size())
    return false;
  SmallVector<Moved> moved;
  int64_t leftBytes = 0;
  for (auto [place, use] : llvm::zip_equal(first.uses, candidate.uses)) {
    if (place.first != use.first)
      return false;
    std::optional<Moved> its = findMoved(place.second, use.second);
    if (!its)
      return false;
    leftBytes = std::max(leftBytes, its->leftBytes);
    moved.push_back(std::move(*its));
  }
  if (bucket.leftBytes + leftBytes > bucketBytes)
    return false;
  for (auto [place, use, its] :
       llvm::zip_equal(first.uses, candidate.uses, moved)) {
    int64_t here = places.lookup(place.second);
    for (Operation *op : its.ops) {
      op->moveBefore(place.second);
      places[op] = here - 1;
    }
    places[use.second] = here;
  }
  bucket.members.push_back(&candidate);
  bucket.bytes += candidate.bytes;
  bucket.leftBytes += leftBytes;
  return true;
}

namespace {
/// Makes one collective of several.
class JointBuilder {
public:
  JointBuilder(MutableArrayRef<CollectiveOp> ops, CollectiveOp first,
               Location loc)
      : ops(ops), first(first), builder(first), loc(loc),
        elementType(getElementTypeOrSelf(first.getOutput().getType())) {}

  void reduce(const Step &step) { unpack(exchange(step, pack(), 1)); }
  void gather(const Step &step, ArrayRef<const GroupGather *> forms);
  void scatter(const Step &step, ArrayRef<const GroupGather *> forms);

private:
  static int64_t elementsOf(Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements();
  }
  /// The extents of what one group gathers, with the parts in a dimension of
  /// their own: what is in front of the one that is cut, and the rest.
  static SmallVector<int64_t, 3> wholeView(const GroupGather &form) {
    return {elementsIn(form.before), form.members(),
            form.part * elementsIn(form.after)};
  }
  static int64_t elementsIn(ArrayRef<int64_t> extents) {
    int64_t count = 1;
    for (int64_t extent : extents)
      count *= extent;
    return count;
  }
  Value reshape(Value value, ArrayRef<int64_t> shape) {
    Type type = RankedTensorType::get(shape, elementType);
    return type == value.getType()
               ? value
               : stablehlo::ReshapeOp::create(builder, loc, type, value);
  }
  Value swapFirstTwo(Value value) {
    return stablehlo::TransposeOp::create(
        builder, loc, value, builder.getDenseI64ArrayAttr({1, 0, 2}));
  }

  /// The operands side by side.
  Value pack() {
    SmallVector<Value> parts;
    int64_t elements = 0;
    for (CollectiveOp op : ops) {
      parts.push_back(op.getInput());
      elements += elementsOf(parts.back());
    }
    auto whole = RankedTensorType::get({elements}, elementType);
    return PackOp::create(builder, loc, whole, parts).getWhole();
  }
  void unpack(Value whole) {
    SmallVector<Type> types;
    for (CollectiveOp op : ops)
      types.push_back(op.getOutput().getType());
    auto parts = UnpackOp::create(builder, loc, types, whole);
    for (auto [op, part] : llvm::zip_equal(ops, parts.getParts()))
      op.getOutput().replaceAllUsesWith(part);
  }
  /// The joint collective, whose result has `times` / 1 or 1 / `times` of the
  /// elements of its operand.
  Value exchange(const Step &step, Value operand, int64_t times) {
    int64_t elements = step.kind == StepKind::ReduceScatter
                           ? elementsOf(operand) / times
                           : elementsOf(operand) * times;
    Operation *joint =
        createStep(builder, first, step, first.getChannel(), operand,
                   RankedTensorType::get({elements}, elementType));
    joint->setLoc(loc);
    return joint->getResult(0);
  }

  MutableArrayRef<CollectiveOp> ops;
  CollectiveOp first;
  OpBuilder builder;
  Location loc;
  Type elementType;
};
} // namespace

/// What each member sends is the parts side by side, and each receives that of
/// one member after the other. Where members are few, what is alike is put
/// together by one kernel, which knows no offsets.
void JointBuilder::gather(const Step &step,
                          ArrayRef<const GroupGather *> forms) {
  constexpr int64_t fewMembers = 8;
  int64_t members = forms.front()->members();
  Value all = exchange(step, pack(), members);
  ValueRange parts;
  if (members <= fewMembers) {
    SmallVector<Type> types;
    for (int64_t i = 0; i < members; ++i)
      for (CollectiveOp op : ops)
        types.push_back(
            RankedTensorType::get({elementsOf(op.getInput())}, elementType));
    parts = UnpackOp::create(builder, loc, types, all).getParts();
  } else {
    all = reshape(all, {members, elementsOf(all) / members});
  }
  int64_t begin = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    CollectiveOp op = ops[i];
    SmallVector<int64_t, 3> view = wholeView(*forms[i]);
    int64_t end = begin + elementsOf(op.getInput());
    Value value;
    if (parts.empty()) {
      value = stablehlo::SliceOp::create(
          builder, loc, all, builder.getDenseI64ArrayAttr({0, begin}),
          builder.getDenseI64ArrayAttr({members, end}),
          builder.getDenseI64ArrayAttr({1, 1}));
      if (view[0] > 1)
        value = swapFirstTwo(reshape(value, {view[1], view[0], view[2]}));
    } else {
      SmallVector<Value> its;
      for (size_t part = i; part < parts.size(); part += ops.size())
        its.push_back(reshape(parts[part], {view[0], view[2]}));
      value = stablehlo::ConcatenateOp::create(builder, loc, its, 1);
    }
    auto type = cast<RankedTensorType>(op.getOutput().getType());
    op.getOutput().replaceAllUsesWith(reshape(value, type.getShape()));
    begin = end;
  }
}

void JointBuilder::scatter(const Step &step,
                           ArrayRef<const GroupGather *> forms) {
  int64_t members = forms.front()->members();
  SmallVector<Value> parts;
  for (auto [op, form] : llvm::zip_equal(ops, forms)) {
    Value value = op.getInput();
    SmallVector<int64_t, 3> view = wholeView(*form);
    if (view[0] > 1)
      value = swapFirstTwo(reshape(value, view));
    parts.push_back(reshape(value, {members, view[0] * view[2]}));
  }
  Value all = stablehlo::ConcatenateOp::create(builder, loc, parts, 1);
  unpack(exchange(step, reshape(all, {elementsOf(all)}), members));
}

/// The largest power of two that divides the size of the value, at most that of
/// a cache line.
static int64_t alignmentOf(const Candidate &member) {
  return std::min<int64_t>(member.bytes & -member.bytes, 64);
}

void CollectiveJoiner::join(ArrayRef<Candidate *> members, size_t use) {
  CollectiveOp first = members.front()->uses[use].second;
  // Each starts at a multiple of its alignment, without gaps, in all classes.
  auto order = llvm::to_vector(llvm::seq(members.size()));
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::pair(-alignmentOf(*members[a]), a) <
           std::pair(-alignmentOf(*members[b]), b);
  });
  auto ordered =
      llvm::map_to_vector(order, [&](size_t i) { return members[i]; });
  auto ops = llvm::map_to_vector(
      ordered, [&](Candidate *it) { return it->uses[use].second; });
  Location loc = FusedLoc::get(
      first.getContext(),
      llvm::map_to_vector(ops, [](CollectiveOp op) { return op.getLoc(); }));
  JointBuilder joint(ops, first, loc);
  const JoinForm &form = *members.front()->form;
  if (form.kind == StepKind::AllReduce) {
    GroupReduction all = form.reduction;
    for (Candidate *member : members.drop_front())
      for (auto [sum, more] :
           llvm::zip_equal(all.elements, member->form->reduction.elements))
        sum += more;
    joint.reduce(all.asStep());
  } else {
    auto forms = llvm::map_to_vector(
        ordered, [](Candidate *it) { return &it->form->gather; });
    int64_t elements = 0;
    bool gathers = form.kind == StepKind::AllGather;
    for (CollectiveOp op : ops)
      elements += cast<RankedTensorType>(
                      (gathers ? op.getInput() : op.getOutput()).getType())
                      .getNumElements();
    Step step = form.gather.asStep(elements);
    if (gathers)
      joint.gather(step, forms);
    else
      joint.scatter(step, forms);
  }
  for (CollectiveOp op : ops)
    op->erase();
}

void CollectiveJoiner::run() {
  for (size_t number = 0; number < classes.size(); ++number)
    collect(number);
  // Earlier ones are closed.
  constexpr size_t mostOpen = 32;
  std::vector<std::unique_ptr<Bucket>> buckets;
  for (auto &[channel, candidate] : candidates) {
    // A large one is worth its own exchange.
    if (!candidate || candidate->bytes > bucketBytes / 2)
      continue;
    auto open = ArrayRef(buckets).take_back(mostOpen);
    if (llvm::any_of(open, [&](const std::unique_ptr<Bucket> &bucket) {
          return tryJoin(*bucket, *candidate);
        }))
      continue;
    buckets.push_back(std::make_unique<Bucket>());
    buckets.back()->members.push_back(candidate.get());
    buckets.back()->bytes = candidate->bytes;
  }
  for (const std::unique_ptr<Bucket> &bucket : buckets)
    if (bucket->members.size() > 1)
      for (size_t use = 0; use < bucket->members.front()->uses.size(); ++use)
        join(bucket->members, use);
}

namespace {

struct JoinCollectivesPass : impl::JoinCollectivesBase<JoinCollectivesPass> {
  void runOnOperation() final {
    int64_t bytes = Config(getOperation()).getBucketBytes();
    SmallVector<ScheduleOp> classes = getRankClasses(getOperation());
    CollectiveJoiner(classes, bytes).run();
  }
};

} // namespace
} // namespace whale
