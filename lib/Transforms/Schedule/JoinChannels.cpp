//===- JoinChannels.cpp - whale-join-channels -----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the schedules of the rank classes, with starts and waits. Out: the same,
// where small sends and reshards that follow one another in all classes are
// parts of one transfer: two ranks exchange one message for all of them, which
// takes its latency once.
//
// Only neighbours in the orders of all classes that take part are joined, so
// the order of all transfers stays one. A part that is sent waits for those
// that are sent behind it, so what is computed between them must take less than
// to start another message; what is only received can be so earlier. The
// transfer is over where the first of its parts is needed.
//
// Costs O(operations), and for each pair of neighbours the uses of the channels
// that it would be joined with.
//
//===----------------------------------------------------------------------===//

#include "InstructionCosts.h"
#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Step/StepCost.h"
#include "whale/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_JOINCHANNELS
#include "whale/Transforms/Schedule/Passes.h.inc"

namespace {

/// A start in a rank class.
struct ClassUse {
  CollectiveOp op;
  WaitOp wait;
  /// Among the exchanges of the class.
  size_t place;
};

/// A channel that may be joined with others.
struct JoinedChannel {
  uint64_t number;
  StepKind kind;
  /// By class.
  llvm::MapVector<size_t, SmallVector<ClassUse>> uses;
  int64_t bytes = 0;
  /// Whether it may be a part of a transfer with others.
  bool isCandidate = true;
};

/// What becomes one transfer, in its order.
using Group = SmallVector<JoinedChannel *>;

class ChannelJoiner {
public:
  ChannelJoiner(ArrayRef<ScheduleOp> classes, int64_t bucketBytes)
      : classes(classes), bucketBytes(bucketBytes) {}

  void run(ProgramCosts &costs);

private:
  void collect(size_t number, ProgramCosts &costs);
  bool canJoin(const Group &group, const JoinedChannel &next) const;
  bool isShort(Operation *first, Operation *last) const;
  void join(const Group &group) const;
  void join(ArrayRef<ClassUse> parts) const;

  ArrayRef<ScheduleOp> classes;
  int64_t bucketBytes;
  llvm::MapVector<uint64_t, std::unique_ptr<JoinedChannel>> channels;
  /// By class, the channels of its exchanges in their order; null for what
  /// holds some.
  SmallVector<SmallVector<JoinedChannel *>> orders;
  /// What the instructions before an operation of a schedule take.
  llvm::DenseMap<Operation *, double> secondsBefore;
};

} // namespace

static bool isJoinable(StepKind kind) {
  return kind == StepKind::SendRecv || kind == StepKind::Broadcast ||
         kind == StepKind::AllToAll;
}

static int64_t bytesOf(Value value) {
  return value ? getTensorBytes(value.getType()) : 0;
}

static WaitOp waitOf(CollectiveOp op) {
  return cast<WaitOp>(*op.getToken().user_begin());
}

void ChannelJoiner::collect(size_t number, ProgramCosts &program) {
  SmallVector<JoinedChannel *> &order = orders.emplace_back();
  ScheduleOp schedule = classes[number];
  InstructionCosts costs(program, schedule.getRanks().front());
  double seconds = 0;
  for (Operation &op : schedule.front()) {
    secondsBefore[&op] = seconds;
    seconds += costs.secondsOf(&op);
    auto collective = dyn_cast<CollectiveOp>(op);
    auto channelOf = [&](CollectiveOp its) {
      std::unique_ptr<JoinedChannel> &channel = channels[its.getChannel()];
      if (!channel) {
        channel = std::make_unique<JoinedChannel>();
        channel->number = its.getChannel();
        channel->kind = stepKindOf(its);
        channel->isCandidate = isJoinable(channel->kind);
      }
      return channel.get();
    };
    if (!collective) {
      bool hasExchange = false;
      op.walk([&](CollectiveOp inner) {
        channelOf(inner)->isCandidate = false;
        hasExchange |=
            !isa<LocalSliceOp>(inner.getOperation()) && !isHostCopy(inner);
      });
      if (hasExchange)
        order.push_back(nullptr);
      continue;
    }
    // A rank takes a local slice from itself, outside of its queue, and copies
    // in another one.
    if (isa<LocalSliceOp>(op) || isHostCopy(&op))
      continue;
    JoinedChannel *channel = channelOf(collective);
    channel->isCandidate &= bool(collective.getToken());
    channel->bytes = std::max({channel->bytes, bytesOf(collective.getInput()),
                               bytesOf(collective.getOutput())});
    if (channel->isCandidate)
      channel->uses[number].push_back(
          {collective, waitOf(collective), order.size()});
    order.push_back(channel);
  }
}

/// Whether what is between two operations of a schedule takes less than to
/// start another transfer.
bool ChannelJoiner::isShort(Operation *first, Operation *last) const {
  return secondsBefore.lookup(last) - secondsBefore.lookup(first) <
         kCollectiveStart;
}

/// Whether the parts of a transfer start together where the last one is. Else
/// they do where the first one is: what is only received needs nothing.
static bool startLast(ArrayRef<ClassUse> parts) {
  return llvm::any_of(parts.drop_front(), [](const ClassUse &part) {
    return bool(CollectiveOp(part.op).getInput());
  });
}

/// Whether an instruction waits for the part.
static bool receives(const ClassUse &part) {
  return bool(CollectiveOp(part.op).getOutput());
}

bool ChannelJoiner::canJoin(const Group &group,
                            const JoinedChannel &next) const {
  const JoinedChannel &last = *group.back();
  int64_t bytes = next.bytes;
  for (const JoinedChannel *part : group)
    bytes += part->bytes;
  if (!next.isCandidate || next.kind != last.kind || bytes > bucketBytes ||
      next.uses.size() != last.uses.size())
    return false;
  for (const auto &[number, nextUses] : next.uses) {
    auto lastUses = last.uses.find(number);
    if (lastUses == last.uses.end() ||
        lastUses->second.size() != nextUses.size())
      return false;
    for (auto [use, its] : llvm::enumerate(nextUses)) {
      if (lastUses->second[use].place + 1 != its.place)
        return false;
      SmallVector<ClassUse> parts;
      for (const JoinedChannel *part : group)
        parts.push_back(part->uses.find(number)->second[use]);
      parts.push_back(its);
      if (!startLast(parts))
        continue;
      if (!isShort(parts.front().op, its.op) ||
          llvm::any_of(parts, [&](const ClassUse &part) {
            return receives(part) && WaitOp(part.wait)->isBeforeInBlock(its.op);
          }))
        return false;
    }
  }
  return true;
}

/// Brings the starts, and the waits, of the parts together.
void ChannelJoiner::join(ArrayRef<ClassUse> parts) const {
  bool isLast = startLast(parts);
  Operation *place = isLast ? parts.back().op : parts.front().op;
  for (const ClassUse &part : parts)
    if (Operation *op = part.op; op != place) {
      if (isLast) {
        op->moveBefore(place);
      } else {
        op->moveAfter(place);
        place = op;
      }
    }
  // It is over where the first part is needed. Where none is, memory is given
  // back when all is sent.
  bool isNeeded = llvm::any_of(parts, receives);
  Operation *wait = nullptr;
  for (const ClassUse &part : parts) {
    Operation *its = part.wait;
    if (receives(part) == isNeeded &&
        (!wait || its->isBeforeInBlock(wait) == isNeeded))
      wait = its;
  }
  for (const ClassUse &part : parts)
    if (Operation *its = part.wait; its != wait)
      its->moveBefore(wait);
  for (size_t i = 1; i < parts.size(); ++i)
    if (Operation *before = parts[i - 1].wait, *its = parts[i].wait;
        before->getNextNode() != its)
      its->moveAfter(before);
}

void ChannelJoiner::join(const Group &group) const {
  for (const auto &[number, uses] : group.front()->uses)
    for (size_t use = 0; use < uses.size(); ++use) {
      SmallVector<ClassUse> parts;
      for (const JoinedChannel *part : group)
        parts.push_back(part->uses.find(number)->second[use]);
      join(parts);
      for (ClassUse &part : MutableArrayRef(parts).drop_front())
        part.op->setAttr(
            "with",
            IntegerAttr::get(IntegerType::get(part.op->getContext(), 64),
                             int64_t(group.front()->number)));
    }
}

void ChannelJoiner::run(ProgramCosts &costs) {
  for (size_t number = 0; number < classes.size(); ++number)
    collect(number, costs);
  std::vector<std::unique_ptr<Group>> groups;
  llvm::DenseMap<JoinedChannel *, Group *> groupOf;
  for (const SmallVector<JoinedChannel *> &order : orders)
    for (JoinedChannel *channel : order) {
      // A large one is worth its own messages.
      if (!channel || !channel->isCandidate ||
          channel->bytes > bucketBytes / 2 || groupOf.contains(channel))
        continue;
      // Neighbours are neighbours in all their classes.
      const auto &[number, uses] = channel->uses.front();
      size_t place = uses.front().place;
      JoinedChannel *last = place ? orders[number][place - 1] : nullptr;
      Group *group = groupOf.lookup(last);
      if (!group || group->back() != last || !canJoin(*group, *channel)) {
        groups.push_back(std::make_unique<Group>());
        group = groups.back().get();
      }
      group->push_back(channel);
      groupOf[channel] = group;
    }
  for (const std::unique_ptr<Group> &group : groups)
    if (group->size() > 1)
      join(*group);
}

namespace {

struct JoinChannelsPass : impl::JoinChannelsBase<JoinChannelsPass> {
  void runOnOperation() final {
    int64_t bytes = Config(getOperation()).getBucketBytes();
    SmallVector<ScheduleOp> classes = getRankClasses(getOperation());
    // Memory may be planned again.
    bool areJoined = llvm::any_of(classes, [](ScheduleOp schedule) {
      return schedule
          .walk([](CollectiveOp op) {
            return op.getWith() ? WalkResult::interrupt()
                                : WalkResult::advance();
          })
          .wasInterrupted();
    });
    if (areJoined || bytes == 0)
      return;
    int64_t numRanks = 0;
    for (ScheduleOp schedule : classes)
      numRanks = std::max(numRanks, schedule.getRanks().back() + 1);
    ProgramCosts costs(getOperation(), numRanks);
    ChannelJoiner(classes, bytes).run(costs);
  }
};

} // namespace
} // namespace whale
