//===- CutCosts.cpp - What the units of a step cost -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CutCosts.h"
#include "whale/Planner/CostModel.h"
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
        cluster(cluster), model(createRooflineModel(cluster)) {
    problem.units.resize(units.operations.size());
  }

  CutProblem run(ArrayRef<VirtualDevice> devices, bool sharesState,
                 int64_t microBatches) {
    problem.microBatches = microBatches;
    addStages(devices, sharesState);
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
      CutUnit &unit = problem.units[at->second];
      unit.flops += double(opFlops(op));
      for (auto [i, device] : llvm::enumerate(speedClasses))
        unit.seconds[i] += opSeconds(op, *model, device);
      if (info.phase == Phase::Forward)
        for (Value result : op->getResults())
          if (hasBackwardUser(result))
            unit.activationBytes += tensorBytes(result.getType());
    }
  }

  bool hasBackwardUser(Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      auto it = step.find(ancestorInMain(user, body));
      return it != step.end() && it->second.phase == Phase::Backward;
    });
  }

  /// Optimizer state belongs to the parameters of its shape.
  void addState() {
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
      } else {
        bytes += tensorBytes(argument.getType());
      }
    }
    for (BlockArgument parameter : parameters) {
      auto [users, bytes] = ofShape[shapeOf(parameter)];
      int64_t own = tensorBytes(parameter.getType());
      int64_t at = forwardUsers(step, units, parameter)->first;
      problem.units[at].stateBytes += own + bytes / users;
      problem.units[at].gradientBytes += own;
    }
  }

  void addValue(Value value) {
    CutValue result;
    llvm::SmallSetVector<int64_t, 4> users;
    for (Operation *user : value.getUsers()) {
      Operation *ancestor = ancestorInMain(user, body);
      auto it = step.find(ancestor);
      auto unit = units.unitOf.find(ancestor);
      if (it != step.end() && it->second.phase == Phase::Forward &&
          unit != units.unitOf.end())
        users.insert(unit->second);
    }
    if (users.empty())
      return;
    SmallVector<int64_t> sorted = users.takeVector();
    llvm::sort(sorted);
    // An argument is kept where it is used first.
    result.producer = value.getDefiningOp()
                          ? units.unitOf.lookup(value.getDefiningOp())
                          : sorted.front();
    for (int64_t user : sorted)
      if (user > result.producer)
        result.users.push_back(user);
    if (result.users.empty())
      return;
    result.bytes = double(tensorBytes(value.getType()));
    // A gradient comes back.
    if (isa<FloatType>(getElementTypeOrSelf(value.getType())) &&
        llvm::any_of(step, [](auto &entry) {
          return entry.second.phase == Phase::Backward;
        }))
      result.bytes *= 2;
    problem.values.push_back(std::move(result));
  }

  const Step &step;
  const StepUnits &units;
  func::FuncOp main;
  Block *body;
  const Cluster &cluster;
  std::unique_ptr<CostModel> model;
  /// A device of each kind and slowdown.
  SmallVector<int64_t> speedClasses;
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
