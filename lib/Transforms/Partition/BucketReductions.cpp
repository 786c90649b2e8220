//===- BucketReductions.cpp - whale-bucket-reductions ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the schedules of the rank classes with an all-reduce for each value. Out:
// the same, where small ones that follow one another are one all-reduce of
// their operands side by side. A small all-reduce takes its latency, whatever
// its size. The buffer planner lets the operands be written where they are
// reduced, so joining copies nothing; but all start when the last is there, so
// large ones stay by themselves.
//
// Only all-reduces in the same groups of ranks are joined, that no other
// exchange is between in any class: so all classes still reach their exchanges
// in one order. They come to be at the last of them, behind which
// all that use their results must be.
//
// Costs O(operations) for each class.
//
//===----------------------------------------------------------------------===//

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Placement/GroupReduction.h"
#include "whale/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_BUCKETREDUCTIONS
#include "whale/Transforms/Partition/Passes.h.inc"

namespace {

/// An all-reduce that may be joined with others.
struct BucketCandidate {
  /// In each class that takes part, with the number of the class.
  SmallVector<std::pair<size_t, AllReduceOp>> uses;
  int64_t bytes = 0;
  /// The elements of each group.
  Extents elements;
  /// What must be the same of those that are joined: the groups, the element
  /// type, and by class the run of all-reduces that it is in.
  SmallVector<int64_t> key;
};

/// What all-reduces have in common that can be joined.
struct ReductionKind {
  Type elementType;
  GroupReduction groups;

  bool canJoin(const ReductionKind &other) const {
    return elementType == other.elementType &&
           groups.reduction == other.groups.reduction &&
           groups.groups == other.groups.groups;
  }
};

class Bucketer {
public:
  Bucketer(ArrayRef<ScheduleOp> classes, int64_t bucketBytes)
      : classes(classes), bucketBytes(bucketBytes) {}

  void run();

private:
  void sinkUses(ScheduleOp schedule);
  void collect(size_t number);
  const ReductionKind *kindOf(AllReduceOp op);
  size_t numberOf(const ReductionKind &kind);
  void join(ArrayRef<BucketCandidate *> members);
  void join(ArrayRef<AllReduceOp> ordered, AllReduceOp first, AllReduceOp last,
            const Step &step);

  ArrayRef<ScheduleOp> classes;
  int64_t bucketBytes;
  /// By placements and element type; nullopt of what can't be joined.
  std::map<std::tuple<const void *, const void *, const void *>,
           std::optional<ReductionKind>>
      known;
  /// One of each that can be joined with others.
  SmallVector<const ReductionKind *> kinds;
  /// By channel, in the order in which they are reached; null where one is no
  /// candidate.
  llvm::MapVector<uint64_t, std::unique_ptr<BucketCandidate>> candidates;
};

} // namespace

/// What an all-reduce does; null if it can't be joined with any.
const ReductionKind *Bucketer::kindOf(AllReduceOp op) {
  CollectiveOp collective(op);
  if (!collective.getInput() || !collective.getOutput())
    return nullptr;
  Type elementType = getElementTypeOrSelf(op->getResult(0).getType());
  // Ranks and layers have the same ones.
  auto [it, isNew] = known.try_emplace({op.getFrom().getAsOpaquePointer(),
                                        op.getTo().getAsOpaquePointer(),
                                        elementType.getAsOpaquePointer()},
                                       std::nullopt);
  if (isNew)
    if (auto groups =
            GroupReduction::of({StepKind::AllReduce, op.getFrom().getValue(),
                                op.getTo().getValue()}))
      it->second = {elementType, std::move(*groups)};
  return it->second ? &*it->second : nullptr;
}

/// The same number for all that can be joined.
size_t Bucketer::numberOf(const ReductionKind &kind) {
  auto *same = llvm::find_if(kinds, [&](const ReductionKind *other) {
    return other == &kind || other->canJoin(kind);
  });
  size_t number = same - kinds.begin();
  if (same == kinds.end())
    kinds.push_back(&kind);
  return number;
}

/// Moves operations on the result of a small all-reduce alone to their first
/// use.
void Bucketer::sinkUses(ScheduleOp schedule) {
  Block &block = schedule.front();
  llvm::SmallSetVector<Operation *, 16> sunk;
  for (Operation &op : block) {
    if (op.getNumOperands() != 1 || op.getNumRegions() != 0 || !isPure(&op) ||
        isa<CollectiveOp>(op))
      continue;
    Operation *producer = op.getOperand(0).getDefiningOp();
    auto reduction = dyn_cast_or_null<AllReduceOp>(producer);
    if (sunk.contains(producer) ||
        (reduction && kindOf(reduction) &&
         getTensorBytes(reduction->getResult(0).getType()) <= bucketBytes / 2))
      sunk.insert(&op);
  }
  for (Operation *op : llvm::reverse(sunk)) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers())
      if (Operation *its = block.findAncestorOpInBlock(*user);
          !first || its->isBeforeInBlock(first))
        first = its;
    if (first)
      op->moveBefore(first);
  }
}

void Bucketer::collect(size_t number) {
  // All-reduces of one kind after the other are a run.
  int64_t run = 0;
  std::optional<size_t> kindBefore;
  auto refuse = [&](CollectiveOp op) { candidates[op.getChannel()].reset(); };
  ScheduleOp schedule = classes[number];
  for (Operation &op : schedule.front()) {
    auto reduction = dyn_cast<AllReduceOp>(op);
    const ReductionKind *found = reduction ? kindOf(reduction) : nullptr;
    std::optional<size_t> kind;
    if (found)
      kind = numberOf(*found);
    bool isExchange = false;
    if (!kind)
      op.walk([&](CollectiveOp inner) {
        isExchange |= !isa<LocalSliceOp>(inner.getOperation());
        refuse(inner);
      });
    if (!kind && !isExchange)
      continue;
    if (kind != kindBefore)
      ++run;
    kindBefore = kind;
    if (!kind)
      continue;
    auto [it, isNew] = candidates.try_emplace(reduction.getChannel());
    if (isNew) {
      it->second = std::make_unique<BucketCandidate>();
      it->second->bytes = getTensorBytes(reduction->getResult(0).getType());
      it->second->elements = found->groups.elements;
      it->second->key.push_back(int64_t(*kind));
    }
    if (!it->second)
      continue;
    BucketCandidate &candidate = *it->second;
    // Micro-batches use a channel once each.
    if (!candidate.uses.empty() && candidate.uses.back().first == number) {
      it->second.reset();
      continue;
    }
    candidate.uses.push_back({number, reduction});
    candidate.key.append({int64_t(number), run});
  }
}

/// Whether in all classes nothing uses the member's result before the last one.
static bool isUsedBehind(const BucketCandidate &member,
                         const BucketCandidate &last) {
  return llvm::all_of(llvm::zip_equal(member.uses, last.uses), [](auto pair) {
    AllReduceOp op = std::get<0>(pair).second, end = std::get<1>(pair).second;
    Block *block = op->getBlock();
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return end->isBeforeInBlock(block->findAncestorOpInBlock(*user));
    });
  });
}

/// The largest power of two that divides the size of the value, at most that of
/// a cache line.
static int64_t alignmentOf(const BucketCandidate &member) {
  return std::min<int64_t>(member.bytes & -member.bytes, 64);
}

/// Returns the order in memory, the same in all classes. Each member starts at
/// a multiple of its alignment, without gaps. Otherwise the latest in the first
/// class is first, so that those that are there at one time are side by side.
static SmallVector<BucketCandidate *>
layOut(ArrayRef<BucketCandidate *> members) {
  auto producerOf = [](BucketCandidate *member) {
    return member->uses.front().second->getOperand(0).getDefiningOp();
  };
  auto order = llvm::to_vector(llvm::seq(members.size()));
  llvm::sort(order, [&](size_t a, size_t b) {
    int64_t alignment = alignmentOf(*members[a]);
    if (alignment != alignmentOf(*members[b]))
      return alignment > alignmentOf(*members[b]);
    Operation *x = producerOf(members[a]), *y = producerOf(members[b]);
    if (x == y)
      return a < b;
    return x && (!y || y->isBeforeInBlock(x));
  });
  return llvm::map_to_vector(order, [&](size_t i) { return members[i]; });
}

/// The all-reduce gets the channel of the first, and the position of the last.
void Bucketer::join(ArrayRef<AllReduceOp> ordered, AllReduceOp first,
                    AllReduceOp last, const Step &step) {
  Location loc = FusedLoc::get(
      first.getContext(),
      llvm::map_to_vector(ordered, [](AllReduceOp op) { return op.getLoc(); }));
  OpBuilder builder(last);
  SmallVector<Value> parts;
  int64_t elements = 0;
  for (AllReduceOp op : ordered) {
    parts.push_back(op->getOperand(0));
    elements += cast<RankedTensorType>(parts.back().getType()).getNumElements();
  }
  TypeRange types = ValueRange(parts).getTypes();
  auto whole =
      RankedTensorType::get({elements}, getElementTypeOrSelf(types.front()));
  OperationState state(loc, AllReduceOp::getOperationName());
  state.addOperands(PackOp::create(builder, loc, whole, parts).getWhole());
  state.addTypes(whole);
  state.addAttributes(first->getAttrs());
  MLIRContext *context = first.getContext();
  state.attributes.set("from", PlacementAttr::get(context, step.from));
  state.attributes.set("to", PlacementAttr::get(context, step.to));
  Value sum = builder.create(state)->getResult(0);
  auto sums = UnpackOp::create(builder, loc, types, sum);
  for (auto [op, part] : llvm::zip_equal(ordered, sums.getParts())) {
    op->getResult(0).replaceAllUsesWith(part);
    op->erase();
  }
}

void Bucketer::join(ArrayRef<BucketCandidate *> members) {
  SmallVector<BucketCandidate *> ordered = layOut(members);
  GroupReduction all = kinds[members.front()->key.front()]->groups;
  all.elements = members.front()->elements;
  for (BucketCandidate *member : members.drop_front())
    for (auto [sum, more] : llvm::zip_equal(all.elements, member->elements))
      sum += more;
  Step step = all.asStep();
  for (size_t use = 0; use < members.front()->uses.size(); ++use) {
    auto opOf = [&](BucketCandidate *member) {
      return member->uses[use].second;
    };
    join(llvm::map_to_vector(ordered, opOf), opOf(members.front()),
         opOf(members.back()), step);
  }
}

void Bucketer::run() {
  for (ScheduleOp schedule : classes)
    sinkUses(schedule);
  for (size_t number = 0; number < classes.size(); ++number)
    collect(number);
  // Those that are joined so far, by what they have in common.
  struct Bucket {
    SmallVector<BucketCandidate *> members;
    int64_t bytes = 0;
  };
  std::map<std::vector<int64_t>, Bucket> open;
  std::vector<SmallVector<BucketCandidate *>> full;
  for (auto &[channel, candidate] : candidates) {
    // A large one is worth its own exchange.
    if (!candidate || candidate->bytes > bucketBytes / 2)
      continue;
    Bucket &bucket = open[{candidate->key.begin(), candidate->key.end()}];
    bool fits = bucket.bytes + candidate->bytes <= bucketBytes &&
                llvm::all_of(bucket.members, [&](BucketCandidate *member) {
                  return isUsedBehind(*member, *candidate);
                });
    if (!fits)
      full.push_back(std::exchange(bucket, {}).members);
    bucket.members.push_back(candidate.get());
    bucket.bytes += candidate->bytes;
  }
  for (auto &[key, bucket] : open)
    full.push_back(std::move(bucket.members));
  for (ArrayRef<BucketCandidate *> members : full)
    if (members.size() > 1)
      join(members);
}

namespace {

struct BucketReductionsPass : impl::BucketReductionsBase<BucketReductionsPass> {
  void runOnOperation() final {
    int64_t bytes = Config(getOperation()).getBucketBytes();
    SmallVector<ScheduleOp> classes = getRankClasses(getOperation());
    Bucketer(classes, bytes).run();
  }
};

} // namespace
} // namespace whale
