//===- CutTaskGraphs.cpp - Automatic stages -------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main with `num_task_graph`. Out: on each operation its phase, and the
// strategy of its stage. The forward operations are units in topological order,
// and a loop that can be split has one for each iteration; the planner
// (cutStages) says where to cut, from the costs of CutCosts.h. Then each
// operation takes the stage of its unit, loops that several stages share are
// split, all else joins a stage as in whale-import-scopes, and what depends on
// no argument is copied into each stage that uses it.
//
//===----------------------------------------------------------------------===//

#include "CutTaskGraphs/CutCosts.h"
#include "CutTaskGraphs/SplitLoop.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/DeviceRequests.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/Plans.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/Format.h"

namespace whale {
#define GEN_PASS_DEF_CUTTASKGRAPHS
#include "whale/Transforms/Import/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

namespace {

class CutTaskGraphs : public whale::impl::CutTaskGraphsBase<CutTaskGraphs> {
  using CutTaskGraphsBase::CutTaskGraphsBase;

  void runOnOperation() override {
    module = getOperation();
    std::optional<int64_t> wanted = Config(module).getNumTaskGraphs();
    if (!wanted) {
      if (failed(checkUncut()))
        signalPassFailure();
      return;
    }
    count = *wanted;
    if (failed(run()))
      signalPassFailure();
  }

  LogicalResult run() {
    FailureOr<func::FuncOp> found = getMainFunction(module);
    if (failed(found))
      return failure();
    main = *found;
    defaultStrategy = module->getAttrOfType<StrategyAttr>(kDefaultStrategyAttr);
    for (Operation &op : main.front().without_terminator())
      step[&op].phase = phaseOf(&op);
    FailureOr<bool> hasScopes = checkScopes();
    if (failed(hasScopes))
      return failure();
    if (*hasScopes)
      return checkUncut();

    StepUnits units = findUnits(step, main);
    int64_t counted = llvm::count_if(
        units.operations, [](Operation *op) { return opFlops(op) > 0; });
    if (counted == 0)
      return failWithoutUnits();
    FailureOr<Cluster> cluster = getCluster(module);
    if (failed(cluster))
      return failure();
    Location first = units.operations.front()->getLoc();
    // Bounds the planner's time, which is cubic in the number of task graphs:
    // it looks at twice as many positions, and for each task graph at all pairs
    // of them, here about 1024 * 2048^2 / 2 = 2^31. Twice as many task graphs
    // would take eight times as long. The limit is generous.
    constexpr int64_t kMost = 1024;
    if (count > kMost)
      return emitError(first) << "num_task_graph = " << count
                              << " is more than " << kMost << " task graphs";
    given = getGivenPlan(module);
    if (given && given->cuts.empty()) {
      if (failed(checkStageNames(std::min(count, counted))))
        return failure();
      given.reset();
    }
    if (given && failed(checkGivenCut(units)))
      return failure();
    llvm::Expected<Cut> cut =
        given ? takeCut(units, *cluster)
              : chooseCut(units, *cluster, std::min(count, counted));
    if (!cut)
      return emitError(first) << "num_task_graph = " << count << ": "
                              << llvm::toString(cut.takeError());
    if (int64_t made = cut->loads.size(); made < count && !given)
      emitRemark(first) << "num_task_graph = " << count << ": cut into " << made
                        << (made == 1 ? " task graph" : " task graphs")
                        << ", as of more of them some would have less than a "
                           "tenth of an even part of the work";
    MemoryFit &fit = getMemoryFit(module);
    strategies = std::move(cut->strategies);
    fit.cut = toEstimate(needsOf(cut->problem, cut->loads),
                         cluster->devices.size(), fit.cutScratchBytes);
    explain(cut->loads, units, cut->devices);
    addToPlan(module, [&](Plan &plan) {
      plan.cuts.clear();
      for (const StageLoad &load : cut->loads)
        plan.cuts.push_back({load.begin});
    });
    assign(cut->loads, units);
    copyFree();
    return success();
  }

  /// There is nothing to cut, mostly as a loop computes the gradients.
  LogicalResult failWithoutUnits() {
    Operation *loop = nullptr;
    for (auto op : main.getOps<stablehlo::WhileOp>())
      if (opFlops(op) > 0 && (!loop || opFlops(op) > opFlops(loop)))
        loop = op;
    InFlightDiagnostic error = loop ? loop->emitError() : main.emitError();
    error << "num_task_graph = " << count
          << ": there is no forward operation with FLOPs to cut";
    if (loop)
      error << " outside of this loop, which computes gradients as well and is "
               "one piece; leave num_task_graph out, or let num_micro_batch "
               "sum up the gradients in the place of the loop";
    else
      error << "; leave num_task_graph out";
    return error;
  }

  /// Whether the text has scopes, and then as many TaskGraphs as wanted.
  FailureOr<bool> checkScopes() {
    llvm::SmallSetVector<StrategyAttr, 8> scopes;
    Operation *first = nullptr;
    main.walk([&](Operation *op) {
      auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttr);
      if (!strategy)
        return;
      scopes.insert(strategy);
      if (strategy != defaultStrategy && !first)
        first = op;
    });
    if (!first)
      return false;
    if (int64_t(scopes.size()) == count)
      return true;
    return first->emitError("num_task_graph = ")
           << count << " cuts a step without scopes, but this operation "
           << "is in one, and the scopes make " << scopes.size()
           << " task graphs; leave num_task_graph or the scopes out";
  }

  /// Stages with their devices and their parts of the step.
  struct Cut {
    SmallVector<StrategyAttr> strategies;
    std::vector<VirtualDevice> devices;
    CutProblem problem;
    std::vector<StageLoad> loads;
  };

  /// With less of what an even cut would give it, what a stage sends and waits
  /// takes longer than it saves, and its devices are better used by the others.
  static constexpr double kUsefulShare = 0.1;

  /// What is not cut automatically has no cut that a plan could give.
  LogicalResult checkUncut() {
    std::optional<Plan> plan = getGivenPlan(module);
    if (!plan || plan->cuts.empty())
      return success();
    return emitPlanError(module, plan->cuts.front().place)
           << "decisions.cuts: the step is not cut automatically, as with "
              "num_task_graph and without scopes";
  }

  /// The given plan has devices for each of so many stages, if for any.
  LogicalResult checkStageNames(int64_t stages) {
    SmallVector<StrategyAttr> made = makeStrategies(1, stages);
    return checkPlannedNames(
        module, llvm::map_to_vector(made, [](StrategyAttr strategy) {
          return strategy.getName();
        }));
  }

  /// Each stage has something to compute, and devices of its own, or the same
  /// as another.
  LogicalResult checkGivenCut(const StepUnits &units) {
    auto total = int64_t(units.operations.size());
    if (int64_t(given->cuts.size()) > count)
      return emitPlanError(module, given->cuts.back().place)
             << "decisions.cuts: " << given->cuts.size()
             << " stages, and num_task_graph = " << count;
    for (auto [stage, cut] : llvm::enumerate(given->cuts)) {
      int64_t end =
          stage + 1 < given->cuts.size() ? given->cuts[stage + 1].begin : total;
      if (cut.begin >= total)
        return emitPlanError(module, cut.place)
               << "decisions.cuts[" << stage << "]: begins with operation "
               << cut.begin << " of " << total;
      if (llvm::none_of(llvm::seq(cut.begin, std::min(end, total)),
                        [&](int64_t unit) {
                          return opFlops(units.operations[unit]) > 0;
                        }))
        return emitPlanError(module, cut.place)
               << "decisions.cuts[" << stage
               << "]: the stage has no operation with FLOPs";
    }
    if (failed(checkStageNames(given->cuts.size())))
      return failure();
    for (const Plan::Devices &stage : given->devices)
      if (stage.groups.size() != given->devices.front().groups.size())
        return emitPlanError(module, stage.place)
               << "decisions.devices." << stage.taskGraph << ": has "
               << stage.groups.size() << " repetitions, and '"
               << given->devices.front().taskGraph << "' has "
               << given->devices.front().groups.size();
    llvm::DenseMap<int64_t, const Plan::Devices *> owners;
    for (const Plan::Devices &stage : given->devices)
      for (const std::vector<int64_t> &group : stage.groups)
        for (int64_t device : group) {
          const Plan::Devices *owner =
              owners.try_emplace(device, &stage).first->second;
          if (owner != &stage && owner->groups != stage.groups)
            return emitPlanError(module, stage.place)
                   << "decisions.devices." << stage.taskGraph << ": device "
                   << device << " is one of '" << owner->taskGraph
                   << "', which has others besides";
        }
    return success();
  }

  /// The cut of the given plan.
  llvm::Expected<Cut> takeCut(const StepUnits &units, const Cluster &cluster) {
    llvm::Expected<Cut> cut = prepareCut(units, cluster, given->cuts.size());
    if (!cut)
      return cut;
    std::vector<int64_t> begins;
    for (const Plan::Cut &each : given->cuts)
      begins.push_back(each.begin);
    cut->loads = loadsOfCut(cut->problem, begins);
    return cut;
  }

  /// Cuts into `stages` task graphs that all have enough to do or, where they
  /// can't, into fewer. Into as many as wanted, whatever they do, where else
  /// more memory is lacking, or the user says which devices each one has.
  llvm::Expected<Cut> chooseCut(const StepUnits &units, const Cluster &cluster,
                                int64_t stages) {
    bool areDevicesGiven = module->hasAttr(kVirtualDevicesAttr);
    llvm::Expected<Cut> any =
        cutInto(units, cluster, areDevicesGiven ? count : stages, 0);
    if (!any || areDevicesGiven)
      return any;
    for (int64_t fewer = mostStagesOf(any->problem, kUsefulShare); fewer > 0;
         --fewer) {
      llvm::Expected<Cut> useful = cutInto(units, cluster, fewer, kUsefulShare);
      if (!useful) {
        consumeError(useful.takeError());
        continue;
      }
      if (lackOf(useful->loads) <= lackOf(any->loads))
        return useful;
      break;
    }
    return any;
  }

  llvm::Expected<Cut> cutInto(const StepUnits &units, const Cluster &cluster,
                              int64_t stages, double leastShare) {
    llvm::Expected<Cut> cut = prepareCut(units, cluster, stages);
    if (!cut)
      return cut;
    cut->problem.leastShare = leastShare;
    llvm::Expected<std::vector<StageLoad>> loads = cutStages(cut->problem);
    if (!loads)
      return loads.takeError();
    cut->loads = std::move(*loads);
    return cut;
  }

  /// As many stages on their devices, and what is to be cut.
  llvm::Expected<Cut> prepareCut(const StepUnits &units, const Cluster &cluster,
                                 int64_t stages) {
    Cut cut;
    cut.strategies = makeStrategies(cluster.devices.size(), stages);
    llvm::Expected<std::vector<VirtualDevice>> devices =
        virtualDevicesOf(module, cluster, cut.strategies);
    if (!devices)
      return devices.takeError();
    cut.devices = std::move(*devices);
    cut.problem =
        makeCutProblem(step, units, main, cluster, cut.devices,
                       isa_and_nonnull<SplitAttr>(defaultStrategy),
                       Config(module).getNumMicroBatches().value_or(1));
    const MemoryFit &fit = getMemoryFit(module);
    for (CutStage &stage : cut.problem.stages)
      for (CutDevice &device : stage.devices) {
        if (!fit.cutScale.empty())
          device.memoryScale = fit.cutScale[device.id];
        if (!fit.cutScratchBytes.empty())
          device.scratchBytes = fit.cutScratchBytes[device.id];
      }
    return cut;
  }

  static int64_t lackOf(ArrayRef<StageLoad> loads) {
    int64_t most = 0;
    for (const StageLoad &load : loads)
      most = std::max(most, load.lacksBytes);
    return most;
  }

  /// One strategy for each stage, like the default. Fewer stages than wanted
  /// share out the devices of all.
  SmallVector<StrategyAttr> makeStrategies(int64_t devices, int64_t stages) {
    MLIRContext *context = main->getContext();
    std::optional<int64_t> each;
    if (defaultStrategy)
      each = defaultStrategy.getDevices();
    // Stages that wanted more than there are take turns on the same devices.
    bool takeTurns = each && *each * count > devices;
    int64_t all = each ? *each * count : devices;
    SmallVector<StrategyAttr> made;
    for (int64_t stage = 0; stage < stages; ++stage) {
      int64_t part = all / stages + (stage < all % stages);
      std::optional<int64_t> wanted =
          takeTurns ? *each : std::max<int64_t>(part, 1);
      std::string name = "stage" + std::to_string(stage);
      if (given)
        for (const Plan::Devices &devices : given->devices)
          if (devices.taskGraph == name)
            wanted = devices.groups.front().size();
      if (isa_and_nonnull<SplitAttr>(defaultStrategy))
        made.push_back(SplitAttr::get(context, wanted, name, std::nullopt));
      else
        made.push_back(ReplicateAttr::get(context, wanted, name, std::nullopt));
    }
    return made;
  }

  void explain(ArrayRef<StageLoad> loads, const StepUnits &units,
               ArrayRef<VirtualDevice> devices) {
    for (auto [stage, load] : llvm::enumerate(loads)) {
      std::string text;
      llvm::raw_string_ostream os(text);
      os << "stage" << stage << " on devices ";
      llvm::interleaveComma(devices[stage], os, [&](auto &group) {
        os << '[';
        if (group.size() > 8)
          os << group.front() << ", ... " << group.back() << ": "
             << group.size() << " of them";
        else
          llvm::interleaveComma(group, os);
        os << ']';
      });
      Operation *first = units.operations[load.begin];
      os << ": " << load.end - load.begin << " forward operations from ";
      if (int64_t iteration = load.begin - units.unitOf.lookup(first).first)
        os << "iteration " << iteration << " of ";
      os << "'" << first->getName() << "', " << llvm::format("%.4g", load.flops)
         << " FLOPs with its backward, " << load.stateBytes
         << " bytes of parameters and optimizer state, "
         << llvm::format("%.0f", load.bytesIn) << " bytes over its cut, "
         << llvm::format("%.3g", load.seconds) << " s";
      if (load.lacksBytes > 0)
        os << "; lacks " << load.lacksBytes << " bytes of memory";
      emitRemark(first->getLoc()) << text;
    }
  }

  static MemoryFit::Estimate toEstimate(ArrayRef<CutNeed> needs, size_t devices,
                                        std::vector<int64_t> scratch) {
    std::vector<int64_t> bytes(devices, 0), state(devices, 0);
    for (const CutNeed &need : needs) {
      state[need.device] = need.stateBytes;
      bytes[need.device] = need.stateBytes + need.workingBytes;
    }
    MemoryFit::Estimate estimate;
    estimate.bytes = std::move(bytes);
    estimate.fixedBytes = std::move(state);
    estimate.scratchBytes = std::move(scratch);
    return estimate;
  }

  void assign(ArrayRef<StageLoad> loads, const StepUnits &units) {
    SmallVector<StrategyAttr> strategyOf;
    for (auto [load, strategy] : llvm::zip_equal(loads, strategies))
      strategyOf.append(load.end - load.begin, strategy);
    for (auto &[op, info] : step) {
      info.constant = units.free.contains(op);
      auto unit = units.unitOf.find(op);
      info.strategy =
          unit == units.unitOf.end() ? nullptr : strategyOf[unit->second.first];
      annotate(op, info);
    }
    splitLoops(loads, units);
    joinTaskGraphs(step, main, /*defaultStrategy=*/nullptr, [](Operation *op) {
      return op->getAttrOfType<StrategyAttr>(kStrategyAttr);
    });
    for (auto &[op, info] : step) {
      // Nothing that has a stage depends on it, as a count of steps.
      if (!info.strategy)
        info.strategy = strategies.front();
      annotate(op, info);
    }
  }

  /// Splits the loops that several stages share, the forward ones first.
  void splitLoops(ArrayRef<StageLoad> loads, const StepUnits &units) {
    LoopSplitter splitter;
    Step before;
    std::swap(before, step);
    llvm::SmallDenseSet<Operation *, 4> gone;
    for (auto &[op, info] : before) {
      auto range = units.unitOf.find(op);
      if (range == units.unitOf.end() || units.free.contains(op))
        continue;
      auto [first, last] = range->second;
      SmallVector<LoopPiece> pieces;
      for (auto [load, strategy] : llvm::zip_equal(loads, strategies)) {
        int64_t begin = std::max(load.begin, first) - first;
        int64_t end = std::min(load.end, last + 1) - first;
        int64_t trips = last - first + 1;
        if (begin >= end)
          continue;
        if (info.phase == Phase::Backward)
          pieces.insert(pieces.begin(), {trips - end, trips - begin, strategy});
        else
          pieces.push_back({begin, end, strategy});
      }
      if (pieces.size() < 2)
        continue;
      gone.insert(op);
      splitter.split(cast<stablehlo::WhileOp>(op), pieces, info.strategy);
    }
    // What the pieces of another loop have is never put together.
    Block &body = main.front();
    SmallVector<Operation *> ops;
    for (Operation &op : body.without_terminator())
      ops.push_back(&op);
    for (Operation *op : llvm::reverse(ops))
      if (!gone.empty() && isOpTriviallyDead(op)) {
        gone.insert(op);
        op->erase();
      }
    for (Operation &op : body.without_terminator()) {
      auto known = before.find(&op);
      if (known != before.end() && !gone.contains(&op)) {
        step[&op] = known->second;
        continue;
      }
      StepOp &info = step[&op];
      info.strategy = op.getAttrOfType<StrategyAttr>(kStrategyAttr);
      info.phase = phaseOf(&op);
      info.constant = op.hasTrait<OpTrait::ConstantLike>();
    }
  }

  /// Writes strategy and phase; operations inside take the same strategy.
  void annotate(Operation *op, const StepOp &info) {
    op->setAttr(kPhaseAttr, PhaseAttr::get(&getContext(), *info.phase));
    op->walk([&](Operation *nested) {
      if (info.strategy && !nested->hasTrait<OpTrait::IsTerminator>() &&
          (nested == op || nested->hasAttr(kStrategyAttr) ||
           stablehlo::isControlFlow(nested->getParentOp())))
        nested->setAttr(kStrategyAttr, info.strategy);
      else
        nested->removeAttr(kStrategyAttr);
    });
  }

  /// Gives each stage its own copy of what no argument goes into. Constants
  /// are copied as task graphs are formed.
  void copyFree() {
    Block &body = main.front();
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(body.without_terminator()))) {
      auto it = step.find(&op);
      if (it == step.end() || !it->second.constant || op.getNumOperands() == 0)
        continue;
      auto own = op.getAttrOfType<StrategyAttr>(kStrategyAttr);
      DenseMap<StrategyAttr, Operation *> copies;
      for (OpOperand &use : llvm::make_early_inc_range(op.getUses())) {
        Operation *user = body.findAncestorOpInBlock(*use.getOwner());
        auto strategy = user->getAttrOfType<StrategyAttr>(kStrategyAttr);
        if (!strategy || strategy == own)
          continue;
        Operation *&copy = copies[strategy];
        if (!copy) {
          OpBuilder builder(&getContext());
          builder.setInsertionPointAfter(&op);
          copy = builder.clone(op);
          copy->walk([&](Operation *nested) {
            if (nested->hasAttr(kStrategyAttr))
              nested->setAttr(kStrategyAttr, strategy);
          });
        }
        use.set(copy->getResult(cast<OpResult>(use.get()).getResultNumber()));
      }
    }
  }

  ModuleOp module;
  func::FuncOp main;
  int64_t count = 0;
  StrategyAttr defaultStrategy;
  SmallVector<StrategyAttr> strategies;
  /// The plan whose cut is to be made.
  std::optional<Plan> given;
  Step step;
};

} // namespace
