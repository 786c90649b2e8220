//===- StepTimes.cpp - What a step is expected to take --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes the schedule of each rank class down as queues of the model, one for
// each kind of device that runs it. A collective inside a loop or branch is
// over before its device goes on, as often as the loop is known to turn; it
// follows what the loop computes.
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/Schedule/StepTimes.h"

#include "InstructionCosts.h"
#include "mlir/IR/Threading.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Step/Costs.h"
#include "whale/Step/QueueModel.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/ScopePath.h"

#include <map>
#include <set>

using namespace mlir;

namespace whale {
namespace {

/// One queue, and what its items are.
struct Unit {
  ScheduleOp schedule;
  std::vector<int64_t> ranks;
  RankQueue queue;
  /// By item of the queue; of computation alone.
  std::vector<Operation *> computed;
  /// By part of the queue.
  std::vector<CollectiveOp> parts;
  /// How often each part is exchanged.
  std::vector<double> runs;
};

class StepTimer {
public:
  explicit StepTimer(ModuleOp module, int64_t numRanks)
      : costs(module, numRanks) {}

  std::optional<StepTimes> run(ArrayRef<ScheduleOp> classes);

private:
  void addUnits(ScheduleOp schedule);
  void read(Unit &unit);
  void price();
  DeviceTimes describe(Unit &unit, const RankTimes &times, double seconds);
  std::string linkOf(CollectiveOp op);
  std::vector<LinkLoad> findLoads();

  ProgramCosts costs;
  std::vector<Unit> units;
  /// What some unit has of each transfer, and how often it is exchanged.
  SmallVector<CollectiveOp> firsts;
  std::vector<double> runs;
  /// Of each transfer, each time.
  std::vector<double> seconds;
};

} // namespace

/// The devices of a class that take the same time for the same work.
void StepTimer::addUnits(ScheduleOp schedule) {
  const Cluster &cluster = costs.getCluster();
  std::map<std::pair<unsigned, double>, size_t> numbers;
  for (int64_t rank : schedule.getRanks()) {
    const Device &device = cluster.devices[rank];
    auto [it, isNew] =
        numbers.try_emplace({device.kind, device.slowdown}, units.size());
    if (isNew)
      units.emplace_back().schedule = schedule;
    units[it->second].ranks.push_back(rank);
  }
}

/// How often a step computes an operation, as far as that is known.
static double countRuns(Operation *op) {
  double runs = 1;
  for (auto loop = op->getParentOfType<stablehlo::WhileOp>(); loop;
       loop = loop->getParentOfType<stablehlo::WhileOp>())
    runs = repeatCost(double(tripCount(loop).value_or(1)), runs);
  return runs;
}

void StepTimer::read(Unit &unit) {
  InstructionCosts instructions(costs, unit.ranks.front());
  llvm::DenseMap<Value, size_t> started;
  auto add = [&](QueueItem::Kind kind, size_t part, double seconds,
                 Operation *op) {
    unit.queue.items.push_back({kind, part, seconds});
    unit.computed.push_back(op);
  };
  auto start = [&](CollectiveOp op) {
    size_t part = unit.parts.size();
    add(QueueItem::Kind::Start, part, 0, nullptr);
    unit.parts.push_back(op);
    unit.runs.push_back(countRuns(op));
    return part;
  };
  for (Operation &op : unit.schedule.front().without_terminator()) {
    if (auto wait = dyn_cast<WaitOp>(op)) {
      add(QueueItem::Kind::Wait, started.at(wait.getToken()), 0, nullptr);
      continue;
    }
    if (double seconds = instructions.secondsOf(&op); seconds > 0)
      add(QueueItem::Kind::Compute, 0, seconds, &op);
    op.walk<WalkOrder::PreOrder>([&](CollectiveOp collective) {
      // A rank takes from itself alone.
      if (isa<LocalSliceOp>(collective.getOperation()))
        return;
      size_t part = start(collective);
      if (Value token = collective.getToken();
          token && collective.getOperation() == &op)
        started[token] = part;
      else if (!token)
        add(QueueItem::Kind::Wait, part, 0, nullptr);
    });
  }
}

/// Numbers the transfers as all units meet in them, and prices them.
void StepTimer::price() {
  std::map<std::pair<uint64_t, size_t>, size_t> numbers;
  for (Unit &unit : units) {
    llvm::DenseMap<uint64_t, size_t> uses;
    for (auto [op, times] : llvm::zip_equal(unit.parts, unit.runs)) {
      auto [it, isNew] = numbers.try_emplace(
          {op.getChannel(), uses[op.getChannel()]++}, firsts.size());
      if (isNew) {
        firsts.push_back(op);
        runs.push_back(times);
      }
      unit.queue.parts.push_back({it->second, 0});
    }
  }
  seconds = costs.secondsOf(firsts);
  for (Unit &unit : units)
    for (TransferPart &part : unit.queue.parts)
      part.seconds = repeatCost(runs[part.transfer], seconds[part.transfer]);
}

static Step stepOf(CollectiveOp op) {
  return {stepKindOf(op), op.getFrom().getValue(), op.getTo().getValue()};
}

/// The links that a transfer needs: those between nodes if it crosses them.
std::string StepTimer::linkOf(CollectiveOp op) {
  const Cluster &cluster = costs.getCluster();
  Step step = stepOf(op);
  std::vector<SmallVector<DeviceId>> all = groups(step, Topology::of(cluster));
  if (all.empty()) {
    SmallVector<DeviceId> devices(step.from.devices());
    llvm::append_range(devices, step.to.devices());
    all.push_back(std::move(devices));
  }
  for (ArrayRef<DeviceId> group : all)
    if (llvm::any_of(group, [&](DeviceId device) {
          return !cluster.sameNode(device, group.front());
        }))
      return "network";
  return cluster.nodeOf(all.front().front()).name;
}

std::vector<LinkLoad> StepTimer::findLoads() {
  std::map<std::tuple<StepKind, const void *, const void *>, std::string> known;
  std::map<std::string, LinkLoad> loads;
  for (auto [op, times, each] : llvm::zip_equal(firsts, runs, seconds)) {
    std::string &link =
        known[{stepKindOf(op), op.getFrom().getAsOpaquePointer(),
               op.getTo().getAsOpaquePointer()}];
    if (link.empty())
      link = linkOf(op);
    LinkLoad &load = loads[link];
    load.name = link;
    Value value = op.getInput() ? op.getInput() : op.getOutput();
    load.transfers = addCosts(load.transfers, toBytes(times));
    load.bytes += repeatCost(
        times, double(volumeOf(op.getFrom().getValue().view())) *
                   double(getElementBytes(getElementTypeOrSelf(value))));
    load.seconds += repeatCost(times, each);
  }
  std::vector<LinkLoad> list;
  for (auto &[name, load] : loads)
    list.push_back(std::move(load));
  llvm::sort(list, [](const LinkLoad &a, const LinkLoad &b) {
    return std::pair(-a.seconds, a.name) < std::pair(-b.seconds, b.name);
  });
  return list;
}

/// Which part of training an operation belongs to, by its name in JAX.
static std::string phaseNameOf(Operation *op) {
  llvm::Expected<ScopePath> path = parseScopePath(namePath(op->getLoc()));
  if (!path) {
    llvm::consumeError(path.takeError());
    return "";
  }
  return path->backward         ? "backward"
         : path->differentiated ? "forward"
                                : "update";
}

static void addPiece(std::vector<TimedPiece> &list, TimedPiece piece) {
  if (piece.end <= piece.begin)
    return;
  if (!list.empty() && list.back().what == piece.what &&
      list.back().moment == piece.moment && list.back().end == piece.begin)
    list.back().end = piece.end;
  else
    list.push_back(std::move(piece));
}

DeviceTimes StepTimer::describe(Unit &unit, const RankTimes &times,
                                double seconds) {
  DeviceTimes device;
  device.ranks = unit.ranks;
  for (auto [item, period, op] :
       llvm::zip_equal(unit.queue.items, times.items, unit.computed)) {
    if (item.kind == QueueItem::Kind::Compute) {
      device.computeSeconds += period.end - period.begin;
      TimedPiece piece = {period.begin, period.end, phaseNameOf(op), {}};
      if (auto moment = op->getAttrOfType<IntegerAttr>(kMomentAttr))
        piece.moment = moment.getInt();
      addPiece(device.computed, std::move(piece));
    } else if (item.kind == QueueItem::Kind::Wait) {
      const Period &part = times.parts[item.part];
      double begun = std::clamp(part.begin, period.begin, period.end);
      device.communicationSeconds += period.end - begun;
    }
  }
  device.idleSeconds = std::max(0.0, seconds - device.computeSeconds -
                                         device.communicationSeconds);
  for (auto [op, part] : llvm::zip_equal(unit.parts, times.parts))
    addPiece(device.transferred,
             {part.begin, part.end, op->getName().stripDialect().str(),
              std::nullopt});
  return device;
}

std::optional<StepTimes> StepTimer::run(ArrayRef<ScheduleOp> classes) {
  for (ScheduleOp schedule : classes)
    addUnits(schedule);
  parallelForEach(classes.front()->getContext(), units,
                  [&](Unit &unit) { read(unit); });
  price();
  std::vector<RankQueue> queues;
  for (Unit &unit : units)
    queues.push_back(unit.queue);
  std::optional<std::vector<RankTimes>> times = timeQueues(queues);
  if (!times)
    return std::nullopt;
  StepTimes result;
  for (const RankTimes &rank : *times)
    result.seconds = std::max(result.seconds, rank.seconds);
  for (auto [unit, rank] : llvm::zip_equal(units, *times))
    result.devices.push_back(describe(unit, rank, result.seconds));
  llvm::sort(result.devices, [](const DeviceTimes &a, const DeviceTimes &b) {
    return a.ranks < b.ranks;
  });
  result.links = findLoads();
  return result;
}

std::optional<StepTimes> findStepTimes(ModuleOp module) {
  SmallVector<ScheduleOp> classes = getRankClasses(module);
  int64_t numRanks = 0;
  for (ScheduleOp schedule : classes)
    numRanks = std::max(numRanks, schedule.getRanks().back() + 1);
  if (classes.empty())
    return std::nullopt;
  return StepTimer(module, numRanks).run(classes);
}

} // namespace whale
