//===- VerifySchedule.cpp - The order of all starts -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the schedules of the rank classes, with starts and waits. Out: an error
// if no total order of all transfers extends the orders in which the classes
// start theirs. With one, nothing deadlocks, wherever the waits are, even if a
// transfer begins only at the head of the queues of all its participants.
//
// The order is built: again and again the transfer is taken that is next in all
// classes that take part in it. Which one is taken first makes no difference,
// as a transfer that can be taken stays so. Loops run twice, since an iteration
// may wait for the one before; inner loops once in the second iteration, so
// that the time does not double with each level. Parts of one transfer start
// together, and are waited for together. Costs O(operations).
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Threading.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Transforms/Passes.h"

#include <map>

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "whale/Transforms/Schedule/Passes.h.inc"

namespace {

struct ClassStarts {
  ScheduleOp schedule;
  /// In the order of execution.
  SmallVector<CollectiveOp> starts = {};
  /// How many of them are in the total order.
  size_t numOrdered = 0;

  void collect(Region &region, bool isAgain = false);
  bool isDone() const { return numOrdered == starts.size(); }
  CollectiveOp next() const { return starts[numOrdered]; }
};

/// The classes that take part in a channel, and those that start it next.
struct Channel {
  SmallVector<size_t> participants, ready;
};

using Channels = llvm::DenseMap<uint64_t, Channel>;

} // namespace

void ClassStarts::collect(Region &region, bool isAgain) {
  for (Operation &op : region.getOps()) {
    auto start = dyn_cast<CollectiveOp>(op);
    // A rank takes a local slice from itself, outside of its queue, and copies
    // in another one.
    if (start && !isa<LocalSliceOp>(op) && !isHostCopy(&op))
      starts.push_back(start);
    for (Region &inner : op.getRegions())
      collect(inner, isAgain);
    if (!isAgain && isa<stablehlo::WhileOp>(op))
      for (Region &inner : op.getRegions())
        collect(inner, /*isAgain=*/true);
  }
}

static Channels findChannels(ArrayRef<ClassStarts> classes) {
  Channels channels;
  for (auto [index, each] : llvm::enumerate(classes))
    for (CollectiveOp start : each.starts) {
      SmallVector<size_t> &all = channels[start.getChannel()].participants;
      if (all.empty() || all.back() != index)
        all.push_back(index);
    }
  return channels;
}

/// Takes transfers as long as there is one that all participants start next.
static void orderStarts(MutableArrayRef<ClassStarts> classes,
                        Channels &channels) {
  auto awake = llvm::to_vector(llvm::seq<size_t>(classes.size()));
  while (!awake.empty()) {
    size_t index = awake.pop_back_val();
    if (classes[index].isDone())
      continue;
    Channel &channel = channels[classes[index].next().getChannel()];
    channel.ready.push_back(index);
    if (channel.ready.size() < channel.participants.size())
      continue;
    for (size_t participant : channel.ready)
      ++classes[participant].numOrdered;
    awake.append(channel.ready);
    channel.ready.clear();
  }
}

/// Of a class whose next start can't be taken.
static LogicalResult emitUnordered(ArrayRef<ClassStarts> classes,
                                   const Channels &channels,
                                   const ClassStarts &blocked) {
  CollectiveOp start = blocked.next();
  const Channel &channel = channels.at(start.getChannel());
  const ClassStarts &other =
      classes[*llvm::find_if(channel.participants, [&](size_t index) {
        return !llvm::is_contained(channel.ready, index);
      })];
  InFlightDiagnostic diagnostic = start.emitOpError("channel ");
  diagnostic << int64_t(start.getChannel());
  bool isLater = llvm::any_of(
      ArrayRef(other.starts).drop_front(other.numOrdered),
      [&](CollectiveOp op) { return op.getChannel() == start.getChannel(); });
  diagnostic << (isLater ? " is started in another order in @"
                         : " is started more often than in @")
             << ScheduleOp(other.schedule).getSymName();
  if (isLater)
    diagnostic.attachNote(other.next().getLoc()) << "this is started first";
  return diagnostic;
}

/// The channels of the parts behind the first one of each transfer that has
/// several, by the first one's.
using Parts = std::map<uint64_t, std::vector<uint64_t>>;

/// Checks that the parts of transfers stand together in a block, and are in all
/// classes the same.
static LogicalResult verifyParts(Block &block, Parts &partsOf) {
  for (auto it = block.begin(); it != block.end(); ++it) {
    auto first = dyn_cast<CollectiveOp>(*it);
    if (!first)
      continue;
    if (first.getWith())
      return first.emitOpError("is a part of the transfer of channel ")
             << *first.getWith() << ", which does not start before it";
    std::vector<uint64_t> parts;
    Operation *wait =
        first.getToken() ? *first.getToken().user_begin() : nullptr;
    for (auto next = std::next(it); next != block.end(); ++next) {
      auto part = dyn_cast<CollectiveOp>(*next);
      if (!part || part.getWith() != first.getChannel())
        break;
      if (part->getName() != first->getName() || !wait)
        return part.emitOpError("is a part of another kind of transfer");
      if (wait->getNextNode() != *part.getToken().user_begin())
        return part.emitOpError("is not waited for together with the others of "
                                "its transfer");
      wait = wait->getNextNode();
      parts.push_back(part.getChannel());
      it = next;
    }
    auto [known, isNew] = partsOf.try_emplace(first.getChannel(), parts);
    if (!isNew && known->second != parts)
      return first.emitOpError("the transfer of channel ")
             << int64_t(first.getChannel())
             << " has other parts in another place";
  }
  return success();
}

static LogicalResult verifyParts(ArrayRef<ClassStarts> classes) {
  Parts partsOf;
  for (const ClassStarts &each : classes) {
    WalkResult walk =
        ScheduleOp(each.schedule).walk([&](Block *block) -> WalkResult {
          return verifyParts(*block, partsOf);
        });
    if (walk.wasInterrupted())
      return failure();
  }
  return success();
}

namespace {

struct VerifySchedulePass : impl::VerifyScheduleBase<VerifySchedulePass> {
  using Base::Base;

  void runOnOperation() final {
    markAllAnalysesPreserved();
    SmallVector<ClassStarts> classes;
    for (ScheduleOp schedule : getRankClasses(getOperation()))
      classes.push_back({schedule});
    parallelForEach(&getContext(), classes, [](ClassStarts &each) {
      each.collect(each.schedule.getBody());
    });
    Channels channels = findChannels(classes);
    orderStarts(classes, channels);
    auto *blocked = llvm::find_if_not(
        classes, [](const ClassStarts &each) { return each.isDone(); });
    if (blocked != classes.end() &&
        failed(emitUnordered(classes, channels, *blocked)))
      return signalPassFailure();
    if (failed(verifyParts(classes)))
      signalPassFailure();
  }
};

} // namespace
} // namespace whale
