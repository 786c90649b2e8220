//===- CutCosts.cpp - What the units of a step cost -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the step with the phase of each operation, its units, and the virtual
// device of each stage. Out: the problem that the planner's stage cut solves:
// time and memory of each unit, bytes that go from unit to unit, and links.
//
// Seconds are those of the roofline model, for one device of each kind and
// slowdown. Of a loop whose iterations are units, each has its part: of time,
// of what the backward needs, and of parameters that it reads by rows. Cost:
// linear in operations and uses, times the iterations of such loops.
//
//===----------------------------------------------------------------------===//

#include "CutCosts.h"
#include "../DivideStacks/FindStacks.h"
#include "SplitLoop.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Step/CostModel.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Feedback.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;

namespace whale {

namespace {

class Builder {
public:
  Builder(const Step &step, const StepUnits &units, func::FuncOp main,
          const Cluster &cluster)
      : step(step), units(units), main(main), body(&main.front()),
        cluster(cluster), model(createRooflineModel(cluster)),
        hasBackward(llvm::any_of(step, [](auto &entry) {
          return entry.second.phase == Phase::Backward;
        })) {
    problem.units.resize(units.operations.size());
  }

  CutProblem run(ArrayRef<VirtualDevice> devices, bool sharesState,
                 int64_t microBatches) {
    problem.microBatches = microBatches;
    addStages(devices, sharesState);
    findStacks();
    addOperations();
    addState();
    for (BlockArgument argument : main.getArguments())
      addValue(argument);
    for (auto &[op, info] : step)
      if (info.phase == Phase::Forward && units.unitOf.contains(op))
        for (Value result : op->getResults())
          addValue(result);
    return std::move(problem);
  }

private:
  void addStages(ArrayRef<VirtualDevice> devices, bool sharesState) {
    for (auto [index, groups] : llvm::enumerate(devices)) {
      CutStage &stage = problem.stages.emplace_back();
      stage.sharesState = sharesState;
      for (const std::vector<int64_t> &group : groups)
        for (int64_t device : group)
          stage.devices.push_back({device, speedClassOf(device),
                                   cluster.kindOf(device).memoryBytes});
      if (index > 0) {
        const VirtualDevice &before = devices[index - 1];
        stage.latency = sendSeconds(before, groups, 0);
        constexpr double kBytes = 1 << 30;
        stage.secondsPerByte =
            (sendSeconds(before, groups, kBytes) - stage.latency) / kBytes;
      }
    }
  }

  unsigned speedClassOf(int64_t device) {
    const Device &it = cluster.devices[device];
    for (auto [i, other] : llvm::enumerate(speedClasses))
      if (cluster.devices[other].kind == it.kind &&
          cluster.devices[other].slowdown == it.slowdown)
        return i;
    speedClasses.push_back(device);
    return speedClasses.size() - 1;
  }

  /// Until a value of so many bytes, in equal parts, has gone from one virtual
  /// device to the next.
  double sendSeconds(const VirtualDevice &from, const VirtualDevice &to,
                     double bytes) {
    Exchange exchange;
    for (auto [senders, receivers] : llvm::zip_equal(from, to)) {
      size_t parts = std::max(senders.size(), receivers.size());
      for (size_t i = 0; i < parts; ++i) {
        int64_t sender = senders[i % senders.size()];
        int64_t receiver = receivers[i % receivers.size()];
        if (sender != receiver)
          exchange.transfers.push_back(
              {sender, receiver, bytes / double(parts * from.size())});
      }
    }
    return exchange.transfers.empty() ? 0 : model->exchangeSeconds(exchange);
  }

  void addOperations() {
    for (auto [unit, op] : llvm::zip_equal(problem.units, units.operations))
      unit.counts = opFlops(op) > 0;
    for (CutUnit &unit : problem.units)
      unit.seconds.assign(speedClasses.size(), 0);
    for (auto &[op, info] : step) {
      auto at = units.unitOf.find(op);
      if (at == units.unitOf.end())
        continue;
      // Of a loop, each iteration its part.
      auto rows = onRows.find(op);
      auto [first, last] = rows == onRows.end() ? at->second : rows->second;
      int64_t parts = last - first + 1;
      CutUnit part;
      part.flops = double(opFlops(op)) / double(parts);
      for (int64_t device : speedClasses)
        part.seconds.push_back(opSeconds(op, *model, device) / double(parts));
      part.fusedSeconds =
          fusedSeconds(op, *model, speedClasses.front()) / double(parts);
      if (info.phase == Phase::Forward)
        for (Value result : op->getResults())
          if (hasBackwardUser(result))
            part.activationBytes += getTensorBytes(result.getType()) / parts;
      for (int64_t i = first; i <= last; ++i) {
        CutUnit &unit = problem.units[i];
        unit.flops += part.flops;
        unit.fusedSeconds += part.fusedSeconds;
        unit.activationBytes += part.activationBytes;
        for (auto [sum, seconds] : llvm::zip_equal(unit.seconds, part.seconds))
          sum += seconds;
      }
      if (auto loop = dyn_cast<stablehlo::WhileOp>(op);
          loop && parts > 1 && info.phase == Phase::Forward)
        addCarried(loop, first);
    }
  }

  /// What passes from each iteration of a loop to the next.
  void addCarried(stablehlo::WhileOp loop, int64_t first) {
    llvm::SmallDenseSet<unsigned> stacked = LoopSplitter::stackedResults(loop);
    double bytes = 0;
    for (Value result : loop.getResults())
      if (!stacked.contains(cast<OpResult>(result).getResultNumber()))
        bytes += bytesOf(result);
    for (int64_t i = 0; i + 1 < *tripCount(loop); ++i)
      problem.values.push_back({first + i, {first + i + 1}, bytes});
  }

  bool hasBackwardUser(Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      auto it = step.find(ancestorInMain(user, body));
      return it != step.end() && it->second.phase == Phase::Backward;
    });
  }

  /// Optimizer state belongs to the parameters of its shape, unless it is in
  /// the memory of hosts.
  void addState() {
    bool isInHost =
        Config(main->getParentOfType<ModuleOp>()).getOffloadLevel() !=
        OffloadLevel::None;
    SmallVector<std::optional<unsigned>> next = findFeedback(main);
    std::map<SmallVector<int64_t>, std::pair<int64_t, int64_t>> ofShape;
    SmallVector<BlockArgument> parameters;
    auto shapeOf = [](Value value) {
      auto type = dyn_cast<ShapedType>(value.getType());
      return SmallVector<int64_t>(type ? type.getShape() : ArrayRef<int64_t>());
    };
    for (BlockArgument argument : main.getArguments()) {
      if (!next[argument.getArgNumber()])
        continue;
      auto &[users, bytes] = ofShape[shapeOf(argument)];
      if (forwardUsers(step, units, argument)) {
        parameters.push_back(argument);
        ++users;
      } else if (!isInHost) {
        bytes += getTensorBytes(argument.getType());
      }
    }
    for (BlockArgument parameter : parameters) {
      auto [users, bytes] = ofShape[shapeOf(parameter)];
      int64_t own = getTensorBytes(parameter.getType());
      int64_t at = forwardUsers(step, units, parameter)->first;
      auto stack = stacks.find(parameter);
      UnitRange range =
          stack == stacks.end() ? UnitRange{at, at} : stack->second;
      int64_t parts = range.last - range.first + 1;
      for (int64_t i = range.first; i <= range.last; ++i) {
        problem.units[i].stateBytes += (own + bytes / users) / parts;
        problem.units[i].gradientBytes += own / parts;
      }
    }
  }

  /// Finds the parameters that a loop reads row by row, and the gradients that
  /// one makes so. Where the stages have devices of their own, each stores the
  /// rows of its iterations, and computes with them.
  void findStacks() {
    llvm::SmallDenseSet<int64_t> devices;
    for (const CutStage &stage : problem.stages)
      for (const CutDevice &device : stage.devices)
        if (!devices.insert(device.id).second)
          return;
    DenseSet<Operation *> onData(units.operations.begin(),
                                 units.operations.end());
    for (BlockArgument argument : main.getArguments())
      if (!main.getArgAttr(argument.getArgNumber(), kBatchDimAttr))
        followStack(argument, std::nullopt, onData);
    for (auto &[op, info] : step) {
      auto loop = dyn_cast<stablehlo::WhileOp>(op);
      auto unit = units.unitOf.find(op);
      if (!loop || info.phase != Phase::Backward ||
          unit == units.unitOf.end() || unit->second.first == unit->second.last)
        continue;
      for (unsigned index : LoopSplitter::stackedResults(loop))
        followStack(loop.getResult(index), unit->second, onData);
    }
  }

  /// Follows a stack through casts and the like: its units are those of the
  /// loop that reads it, if not known.
  void followStack(Value stack, std::optional<UnitRange> range,
                   const DenseSet<Operation *> &onData) {
    llvm::SmallSetVector<Value, 4> values;
    SmallVector<Operation *> ops;
    values.insert(stack);
    for (size_t i = 0; i < values.size(); ++i) {
      Value value = values[i];
      for (Operation *user : value.getUsers()) {
        Operation *ancestor = ancestorInMain(user, body);
        auto unit = units.unitOf.find(ancestor);
        if (unit == units.unitOf.end())
          continue;
        auto loop = dyn_cast<stablehlo::WhileOp>(ancestor);
        if (loop && unit->second.first != unit->second.last &&
            LoopSplitter::readsRows(loop, value))
          range = unit->second;
        if (user != ancestor || onData.contains(user))
          continue;
        if (std::optional<RowsOfOp> rows = rowsOfOp(user, value)) {
          ops.push_back(user);
          if (!rows->reduction)
            values.insert_range(user->getResults());
        }
      }
    }
    if (!range)
      return;
    for (Value value : values)
      stacks[value] = *range;
    for (Operation *op : ops)
      onRows[op] = *range;
  }

  void addValue(Value value) {
    llvm::SmallSetVector<Operation *, 4> users;
    for (Operation *user : value.getUsers()) {
      Operation *ancestor = ancestorInMain(user, body);
      auto it = step.find(ancestor);
      if (it != step.end() && it->second.phase == Phase::Forward &&
          units.unitOf.contains(ancestor))
        users.insert(ancestor);
    }
    if (users.empty())
      return;
    std::set<int64_t> used;
    int64_t first = std::numeric_limits<int64_t>::max();
    for (Operation *user : users) {
      auto [begin, end] = units.unitOf.lookup(user);
      first = std::min(first, begin);
      used.insert(begin);
      // What a loop carries goes into its first iteration.
      auto loop = dyn_cast<stablehlo::WhileOp>(user);
      if (begin == end || llvm::is_contained(loop.getOperands(), value))
        continue;
      if (LoopSplitter::readsRows(loop, value))
        continue;
      for (int64_t i = begin; i <= end; ++i)
        used.insert(i);
    }
    // An argument is kept where it is used first.
    CutValue result;
    result.producer = value.getDefiningOp()
                          ? units.unitOf.lookup(value.getDefiningOp()).last
                          : first;
    result.bytes = bytesOf(value);
    for (int64_t user : used)
      if (user > result.producer)
        result.users.push_back(user);
    if (!result.users.empty())
      problem.values.push_back(result);
    for (Operation *user : users)
      addRows(value, user, result.producer);
  }

  /// What a loop reads row by row goes to the iterations.
  void addRows(Value value, Operation *user, int64_t producer) {
    auto [begin, end] = units.unitOf.lookup(user);
    auto loop = dyn_cast<stablehlo::WhileOp>(user);
    if (begin == end || stacks.contains(value) ||
        llvm::is_contained(loop.getOperands(), value) ||
        !LoopSplitter::readsRows(loop, value))
      return;
    double bytes = bytesOf(value) / double(end - begin + 1);
    for (int64_t i = begin; i <= end; ++i)
      if (i > producer)
        problem.values.push_back({producer, {i}, bytes});
  }

  /// Bytes of a value, and of the gradient that comes back.
  double bytesOf(Value value) const {
    bool hasGradient =
        hasBackward && isa<FloatType>(getElementTypeOrSelf(value.getType()));
    return double(getTensorBytes(value.getType())) * (hasGradient ? 2 : 1);
  }

  const Step &step;
  const StepUnits &units;
  func::FuncOp main;
  Block *body;
  const Cluster &cluster;
  std::unique_ptr<CostModel> model;
  bool hasBackward;
  /// A device of each kind and slowdown.
  SmallVector<int64_t> speedClasses;
  /// Of stacks, the units that read or make them by rows, and the same of what
  /// is computed with them.
  DenseMap<Value, UnitRange> stacks;
  DenseMap<Operation *, UnitRange> onRows;
  CutProblem problem;
};

} // namespace

CutProblem makeCutProblem(const Step &step, const StepUnits &units,
                          func::FuncOp main, const Cluster &cluster,
                          ArrayRef<VirtualDevice> devices, bool sharesState,
                          int64_t microBatches) {
  return Builder(step, units, main, cluster)
      .run(devices, sharesState, microBatches);
}

} // namespace whale
