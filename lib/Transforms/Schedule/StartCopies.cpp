//===- StartCopies.cpp - whale-start-copies -------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: schedules with their instructions in order, and copies between the
// memories of host and device that are over where they are. Out: the same with
// starts and waits of copies.
//
// What one instruction is the first to read is fetched at once, as a granule.
// Backwards through the instructions, each granule starts as late as lets the
// link bring it, and what is brought back meanwhile, in the time that the
// instructions take; but only so early that at most kAhead times the bytes of
// the largest granule are under way. Forwards, with what that makes of waits,
// a copy back is waited for where it is expected to be over. Cost: linear in
// instructions and copies.
//
//===----------------------------------------------------------------------===//

#include "InstructionCosts.h"
#include "mlir/IR/Threading.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Transforms/Passes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_STARTCOPIES
#include "whale/Transforms/Schedule/Passes.h.inc"

namespace {

/// The granule that is used, and the next one.
constexpr int64_t kAhead = 2;

class CopySchedule {
public:
  CopySchedule(ScheduleOp schedule, ProgramCosts &costs);

  void run();

private:
  struct Granule {
    SmallVector<Operation *, 2> copies;
    /// The instruction that it is for, and that before which it starts.
    size_t needed = 0, start = 0;
    int64_t bytes = 0;
    double seconds = 0;
  };
  struct Back {
    Operation *copy;
    /// The instructions before which it starts, and is waited for.
    size_t start, wait;
    double seconds;
  };

  void read();
  void startGranules();
  void leaveRoom();
  void waitForBacks();
  void write();
  double secondsOf(Operation *copy) const {
    return costs.hostCopySeconds(cast<CollectiveOp>(copy), device);
  }

  Block *block;
  int64_t device;
  ProgramCosts &costs;
  /// What is no copy.
  SmallVector<Operation *> ops;
  /// When each of them begins without waiting, and when all are over.
  std::vector<double> begins;
  std::vector<Granule> granules;
  std::vector<Back> backs;
};

} // namespace

CopySchedule::CopySchedule(ScheduleOp schedule, ProgramCosts &costs)
    : block(&schedule.front()), device(schedule.getRanks().front()),
      costs(costs) {}

/// Lists instructions and copies. A copy from the host is for its first reader,
/// wherever it stands.
void CopySchedule::read() {
  InstructionCosts seconds(costs, device);
  llvm::DenseMap<Operation *, size_t> positions;
  SmallVector<Operation *> copies;
  double clock = 0;
  for (Operation &op : *block) {
    if (isHostCopy(&op)) {
      // What goes back as it came stays where it is.
      if (!isHostCopy(op.getOperand(0).getDefiningOp()) &&
          llvm::none_of(op.getUsers(), isHostCopy))
        copies.push_back(&op);
      continue;
    }
    positions[&op] = ops.size();
    ops.push_back(&op);
    begins.push_back(clock);
    clock += seconds.secondsOf(&op);
  }
  llvm::DenseMap<size_t, size_t> granuleOf;
  for (Operation *copy : copies) {
    if (isa<DeviceToHostOp>(copy)) {
      auto made = positions.find(copy->getOperand(0).getDefiningOp());
      size_t start = made == positions.end() ? 0 : made->second + 1;
      backs.push_back({copy, start, start, secondsOf(copy)});
      continue;
    }
    size_t needed = ops.size() - 1;
    for (Operation *user : copy->getUsers()) {
      auto reader = positions.find(block->findAncestorOpInBlock(*user));
      needed = std::min(needed, reader->second);
    }
    auto [number, isNew] = granuleOf.try_emplace(needed, granules.size());
    if (isNew)
      granules.emplace_back().needed = needed;
    Granule &granule = granules[number->second];
    granule.copies.push_back(copy);
    granule.bytes += getTensorBytes(copy->getOperand(0).getType());
    granule.seconds += secondsOf(copy);
  }
  llvm::stable_sort(granules, [](const Granule &a, const Granule &b) {
    return a.needed < b.needed;
  });
  llvm::stable_sort(
      backs, [](const Back &a, const Back &b) { return a.start < b.start; });
}

/// As late as the link allows, which is taken by what goes back as well.
void CopySchedule::startGranules() {
  double free = begins.back();
  size_t back = backs.size();
  for (size_t number = granules.size(); number-- > 0;) {
    Granule &granule = granules[number];
    for (; back > 0 && backs[back - 1].start > granule.needed; --back)
      free = std::min(free, begins.back()) - backs[back - 1].seconds;
    free = std::min(free, begins[granule.needed]) - granule.seconds;
    granule.start = llvm::upper_bound(begins, free) - begins.begin();
    granule.start = granule.start > 0 ? granule.start - 1 : 0;
    granule.start = std::min(granule.start, granule.needed);
  }
}

/// Has granules start when those before leave room, and in their order.
void CopySchedule::leaveRoom() {
  int64_t room = 0, bytes = 0;
  for (const Granule &granule : granules)
    room = std::max(room, kAhead * granule.bytes);
  size_t first = 0, earliest = 0;
  for (Granule &granule : granules) {
    for (bytes += granule.bytes; bytes > room; ++first) {
      bytes -= granules[first].bytes;
      earliest = granules[first].needed + 1;
    }
    earliest = std::min(std::max(earliest, granule.start), granule.needed);
    granule.start = earliest;
  }
}

/// Goes through the step with its waits, and finds where copies back are over.
void CopySchedule::waitForBacks() {
  double clock = 0, free = 0;
  size_t nextStart = 0, nextNeed = 0, nextBack = 0, nextOver = 0;
  std::vector<double> arrival(granules.size()), over(backs.size());
  for (size_t position = 0; position < ops.size(); ++position) {
    for (; nextBack < backs.size() && backs[nextBack].start <= position;
         ++nextBack)
      over[nextBack] = free = std::max(free, clock) + backs[nextBack].seconds;
    for (; nextStart < granules.size() && granules[nextStart].start == position;
         ++nextStart)
      arrival[nextStart] = free =
          std::max(free, clock) + granules[nextStart].seconds;
    for (; nextNeed < granules.size() && granules[nextNeed].needed == position;
         ++nextNeed)
      clock = std::max(clock, arrival[nextNeed]);
    for (; nextOver < nextBack && over[nextOver] <= clock; ++nextOver)
      backs[nextOver].wait = position;
    if (position + 1 < ops.size())
      clock += begins[position + 1] - begins[position];
  }
  for (; nextOver < backs.size(); ++nextOver)
    backs[nextOver].wait = ops.size() - 1;
  for (Back &back : backs)
    back.wait = std::max(back.wait, back.start);
}

/// The same copy, with a token, and its wait.
static std::pair<Operation *, Operation *> divide(Operation *op) {
  OpBuilder builder(op);
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addAttributes(op->getAttrs());
  state.addTypes(op->getResultTypes());
  state.addTypes(TokenType::get(op->getContext()));
  Operation *start = builder.create(state);
  auto wait = WaitOp::create(builder, op->getLoc(), op->getResultTypes()[0],
                             start->getResult(1), start->getResult(0),
                             op->getOperand(0));
  op->replaceAllUsesWith(ValueRange(wait.getResult()));
  op->erase();
  return {start, wait};
}

/// Waits come before starts, and what goes back before what comes, as both make
/// room.
void CopySchedule::write() {
  std::vector<SmallVector<Operation *, 0>> waits(ops.size()),
      starts(ops.size()), needs(ops.size());
  for (Back &back : backs) {
    auto [start, wait] = divide(back.copy);
    starts[back.start].push_back(start);
    (back.wait == back.start ? needs : waits)[back.wait].push_back(wait);
  }
  for (Granule &granule : granules)
    for (Operation *copy : granule.copies) {
      auto [start, wait] = divide(copy);
      starts[granule.start].push_back(start);
      needs[granule.needed].push_back(wait);
    }
  for (auto [position, op] : llvm::enumerate(ops))
    for (auto *list : {&waits[position], &starts[position], &needs[position]})
      for (Operation *each : *list)
        each->moveBefore(op);
}

void CopySchedule::run() {
  read();
  if (granules.empty() && backs.empty())
    return;
  startGranules();
  leaveRoom();
  waitForBacks();
  write();
}

namespace {

struct StartCopiesPass : impl::StartCopiesBase<StartCopiesPass> {
  using Base::Base;

  void runOnOperation() final {
    SmallVector<ScheduleOp> classes = getRankClasses(getOperation());
    bool hasCopies = llvm::any_of(classes, [](ScheduleOp schedule) {
      return llvm::any_of(schedule.front(),
                          [](Operation &op) { return isHostCopy(&op); });
    });
    if (!hasCopies)
      return;
    int64_t numRanks = 0;
    for (ScheduleOp schedule : classes)
      numRanks = std::max(numRanks, schedule.getRanks().back() + 1);
    ProgramCosts costs(getOperation(), numRanks);
    parallelForEach(&getContext(), classes, [&](ScheduleOp schedule) {
      CopySchedule(schedule, costs).run();
    });
  }
};

} // namespace
} // namespace whale
