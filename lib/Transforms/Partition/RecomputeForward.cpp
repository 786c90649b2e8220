//===- RecomputeForward.cpp - whale-recompute-forward ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: task graphs with their placements, in the order in which they run. Out:
// the same, in which backwards compute values of the forward again.
//
// The forwards of some devices in a block are a chain of pieces. Under 'auto',
// where devices lack memory, the planner's dynamic programming chooses what to
// keep of each (Planner/Recompute.h), so that what is kept shrinks by what
// they lack, in the least time. Under 'collection' all is computed again but
// what the step names, and what that needs. Collectives and loops never run
// again: what they make is kept. Cost: Choices.h, and linear in copies.
//
//===----------------------------------------------------------------------===//

#include "RecomputeForward/Choices.h"
#include "RecomputeForward/ComputeAgain.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/DeviceRequests.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/Placed/Pipeline.h"
#include "whale/Transforms/Plans.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_RECOMPUTEFORWARD
#include "whale/Transforms/Partition/Passes.h.inc"

namespace {

/// How many micro-batches' values a device keeps at a time; of several chunks
/// an average.
int64_t countInFlight(MicroBatchesOp loop, int64_t device) {
  if (!loop)
    return 1;
  for (OrderAttr order : loop.getOrders()) {
    if (!llvm::is_contained(order.getDevices(), device))
      continue;
    int64_t now = 0, most = 0, chunks = 1;
    for (const ScheduleStep &step : order.getSteps()) {
      chunks = std::max(chunks, step.chunk + 1);
      if (step.kind == ScheduleStep::Forward)
        most = std::max(most, ++now);
      else if (step.kind == ScheduleStep::Backward)
        --now;
    }
    return std::max<int64_t>(1, llvm::divideCeil(most, chunks));
  }
  return 1;
}

/// The task graphs of a chain, for people.
std::string namesOf(const ForwardChain &chain) {
  llvm::SetVector<StringRef> names;
  for (Operation *op : chain.getOps())
    names.insert(op->getParentOfType<TaskGraphOp>().getName());
  return (names.size() == 1 ? "task graph '" : "task graphs '") +
         llvm::join(names, "', '") + "'";
}

using DeviceGroups = std::vector<std::vector<int64_t>>;

/// What is computed again of a chain, and what that is for.
struct Decision {
  llvm::SetVector<Operation *> ops;
  int64_t keptBefore = 0, keptBehind = 0;
  double seconds = 0;
  /// What could not be saved of what is lacking.
  int64_t lackingBytes = 0;
};

struct RecomputeForwardPass : impl::RecomputeForwardBase<RecomputeForwardPass> {
  using RecomputeForwardBase::RecomputeForwardBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> main = getMainFunction(module);
    if (failed(main))
      return signalPassFailure();
    GradientCheckpoint wish = Config(module).getGradientCheckpoint();
    takeNames(*main);
    isLacking = llvm::any_of(lack, [](int64_t bytes) { return bytes > 0; });
    bool isAuto = wish == GradientCheckpoint::Auto;
    given = getGivenPlan(module).value_or(Plan()).recomputed;
    if (!given.empty() && !isAuto) {
      emitPlanError(module, given.front().place)
          << "decisions.recomputed: needs gradient_checkpoint.type \"auto\"";
      return signalPassFailure();
    }
    if (wish == GradientCheckpoint::None ||
        (isAuto && !isLacking && given.empty()))
      return;
    FailureOr<Cluster> found = getCluster(module);
    if (failed(found))
      return signalPassFailure();
    cluster = std::move(*found);
    model = createRooflineModel(cluster);
    if (!isAuto && named.empty()) {
      emitError(main->getLoc())
          << "gradient_checkpoint.type: 'collection' keeps the values that "
             "jax.ad_checkpoint.checkpoint_name names, and the step names "
             "none";
      return signalPassFailure();
    }
    for (auto loop : main->getOps<MicroBatchesOp>())
      for (Region &body : loop.getBodies())
        if (failed(visit(body.front(), loop, isAuto)))
          return signalPassFailure();
    if (failed(visit(main->front(), {}, isAuto)))
      return signalPassFailure();
    if (!given.empty()) {
      emitPlanError(module, given.front().place)
          << "decisions.recomputed: no backward is on these devices, or none "
             "that is not above";
      return signalPassFailure();
    }
  }

private:
  void takeNames(func::FuncOp main);
  LogicalResult visit(Block &block, MicroBatchesOp loop, bool isAuto);
  FailureOr<Decision> take(const ForwardChain &chain, const Choices &choices,
                           const Plan::Recomputed &planned);
  FailureOr<Decision> decideOrTake(const ForwardChain &chain,
                                   const Choices &choices, MicroBatchesOp loop,
                                   const DeviceGroups &groups);
  int64_t findFullest(ArrayRef<int64_t> devices) const;
  Decision decide(const ForwardChain &chain, const Choices &choices,
                  MicroBatchesOp loop) const;
  Decision keepNamed(const ForwardChain &chain, const Choices &choices) const;
  void explain(const ForwardChain &chain, const Decision &decision,
               int64_t count) const;
  void explainLoops(const ForwardChain &chain) const;

  int64_t lackOf(int64_t device) const {
    return size_t(device) < lack.size() ? lack[device] : 0;
  }

  Cluster cluster;
  std::shared_ptr<CostModel> model;
  bool isLacking = false;
  /// What a plan says that has not been carried out yet.
  std::vector<Plan::Recomputed> given;
  /// Operations whose results the step names.
  llvm::DenseSet<Operation *> named;
};

/// Notes what the step names, and drops the names.
void RecomputeForwardPass::takeNames(func::FuncOp main) {
  named.clear();
  SmallVector<hlo::OptimizationBarrierOp> barriers;
  main.walk([&](hlo::OptimizationBarrierOp op) {
    if (op->hasAttr(kCheckpointNameAttr))
      barriers.push_back(op);
  });
  for (hlo::OptimizationBarrierOp op : barriers) {
    for (Value operand : op->getOperands())
      if (Operation *maker = lookThroughTaskGraph(operand).getDefiningOp())
        named.insert(maker);
    op->replaceAllUsesWith(op->getOperands());
    op->erase();
  }
}

/// The device that lacks most memory.
int64_t RecomputeForwardPass::findFullest(ArrayRef<int64_t> devices) const {
  return *std::max_element(
      devices.begin(), devices.end(),
      [&](int64_t a, int64_t b) { return lackOf(a) < lackOf(b); });
}

/// Of devices that no task graph names, one group.
static DeviceGroups listGroups(Attribute groups, ArrayRef<int64_t> devices) {
  if (!groups)
    return {devices.vec()};
  DeviceGroups lists;
  for (auto group : cast<ArrayAttr>(groups).getAsRange<DenseI64ArrayAttr>())
    lists.emplace_back(group.asArrayRef().begin(), group.asArrayRef().end());
  return lists;
}

LogicalResult RecomputeForwardPass::visit(Block &block, MicroBatchesOp loop,
                                          bool isAuto) {
  // What names no devices is computed by all of them.
  SmallVector<int64_t> all =
      llvm::to_vector(llvm::seq<int64_t>(0, cluster.devices.size()));
  llvm::MapVector<Attribute, SmallVector<int64_t>> meshes;
  for (auto graph : block.getOps<TaskGraphOp>())
    if (graph.getPhase() == Phase::Backward) {
      VirtualDeviceOp devices = devicesOf(graph);
      meshes[groupsOf(graph)] = devices ? devices.getDevices() : all;
    }
  int64_t moments = loop ? loop.getNumMoments(block.getParent()) : 1;
  for (auto &[groups, devices] : meshes) {
    ForwardChain chain(block, groups, findFullest(devices));
    if (chain.getOps().empty())
      continue;
    for (Operation *op : chain.getOps())
      for (Value result : op->getResults())
        if (chain.isNeeded(result) && !hasGradients(chain, result))
          chain.pin(result);
    Choices choices(chain, *model, moments);
    FailureOr<Decision> decision =
        isAuto ? decideOrTake(chain, choices, loop, listGroups(groups, devices))
               : FailureOr<Decision>(keepNamed(chain, choices));
    if (failed(decision))
      return failure();
    if (isAuto && decision->ops.empty() && lackOf(chain.getDevice()) <= 0)
      continue;
    explainLoops(chain);
    int64_t count = computeAgain(chain, decision->ops);
    explain(chain, *decision, count);
  }
  return success();
}

/// What the plan says of the chain, or else what is decided; adds it to the
/// plan.
FailureOr<Decision>
RecomputeForwardPass::decideOrTake(const ForwardChain &chain,
                                   const Choices &choices, MicroBatchesOp loop,
                                   const DeviceGroups &groups) {
  FailureOr<Decision> decision = Decision();
  auto planned = llvm::find_if(given, [&](const Plan::Recomputed &each) {
    return each.devices == groups;
  });
  if (planned != given.end()) {
    decision = take(chain, choices, *planned);
    given.erase(planned);
  } else if (lackOf(chain.getDevice()) > 0) {
    decision = decide(chain, choices, loop);
  }
  if (failed(decision))
    return failure();
  addToPlan(getOperation(), [&](Plan &plan) {
    plan.recomputed.push_back({groups, {}});
    for (auto [number, op] : llvm::enumerate(chain.getOps()))
      if (decision->ops.contains(op))
        plan.recomputed.back().operations.push_back(number);
  });
  return decision;
}

static Decision makeDecision(const Choices &choices, Again again) {
  Decision decision;
  decision.keptBefore = choices.getKeptBytes();
  decision.keptBehind = again.keptBytes;
  decision.seconds = again.seconds;
  decision.ops = std::move(again.ops);
  return decision;
}

FailureOr<Decision>
RecomputeForwardPass::take(const ForwardChain &chain, const Choices &choices,
                           const Plan::Recomputed &planned) {
  llvm::DenseSet<Operation *> wanted;
  for (int64_t number : planned.operations) {
    bool isThere = size_t(number) < chain.getOps().size();
    if (isThere && chain.isRecomputable(chain.getOps()[number])) {
      wanted.insert(chain.getOps()[number]);
      continue;
    }
    InFlightDiagnostic error = emitPlanError(getOperation(), planned.place);
    error << "decisions.recomputed: operation " << number;
    if (isThere)
      error << ", '" << chain.getOps()[number]->getName()
            << "', is not computed again";
    else
      error << " is not there: the forward on these devices has "
            << int64_t(chain.getOps().size());
    return failure();
  }
  Again again = choices.computeBetween(
      [&](Operation *op) { return !wanted.contains(op); });
  for (int64_t number : planned.operations)
    if (Operation *op = chain.getOps()[number]; !again.ops.contains(op))
      return emitPlanError(getOperation(), planned.place)
             << "decisions.recomputed: operation " << number << ", '"
             << op->getName() << "', is not needed again";
  return makeDecision(choices, std::move(again));
}

Decision RecomputeForwardPass::decide(const ForwardChain &chain,
                                      const Choices &choices,
                                      MicroBatchesOp loop) const {
  int64_t inFlight = countInFlight(loop, chain.getDevice());
  Decision decision;
  decision.keptBefore = inFlight * choices.getKeptBytes();
  int64_t limit = decision.keptBefore - lackOf(chain.getDevice());
  RecomputePlan plan = chooseRecompute(choices.getNumPieces(),
                                       choices.getList(), inFlight, limit);
  decision.seconds = plan.seconds;
  decision.keptBehind = plan.peakBytes;
  decision.lackingBytes = std::max<int64_t>(0, plan.peakBytes - limit);
  for (size_t choice : plan.choices)
    decision.ops.insert_range(choices.getAgain(choice).ops);
  return decision;
}

Decision RecomputeForwardPass::keepNamed(const ForwardChain &chain,
                                         const Choices &choices) const {
  return makeDecision(choices, choices.computeBetween([&](Operation *op) {
    return named.contains(op);
  }));
}

void RecomputeForwardPass::explain(const ForwardChain &chain,
                                   const Decision &decision,
                                   int64_t count) const {
  if (chain.getOps().empty())
    return;
  Location loc = chain.getOps().front()->getLoc();
  if (count == 0) {
    emitRemark(loc) << "recompute: nothing of " << namesOf(chain)
                    << " can be computed again for fewer bytes";
    return;
  }
  int64_t products = llvm::count_if(decision.ops, isProductLike);
  std::string text;
  llvm::raw_string_ostream remark(text);
  remark << "recompute: the backward of " << namesOf(chain) << " computes "
         << count << " operations again, ";
  if (products > 0)
    remark << products << " of them products or the like; ";
  else
    remark << "element by element; ";
  remark << "device " << chain.getDevice() << " holds " << decision.keptBehind
         << " of " << decision.keptBefore << " bytes for it, for "
         << llvm::format("%.4g s ", std::abs(decision.seconds))
         << (decision.seconds < 0 ? "less" : "more");
  if (decision.lackingBytes > 0)
    remark << "; " << decision.lackingBytes << " bytes are still lacking";
  emitRemark(loc) << text;
}

/// Says what loops keep, which are not run again.
void RecomputeForwardPass::explainLoops(const ForwardChain &chain) const {
  int64_t bytes = 0;
  Operation *first = nullptr;
  for (Operation *op : chain.getOps()) {
    if (!isa<hlo::WhileOp>(op))
      continue;
    for (Value result : op->getResults())
      if (chain.isNeeded(result)) {
        bytes += chain.bytesOf(result);
        first = first ? first : op;
      }
  }
  if (bytes > 0)
    emitRemark(first->getLoc())
        << "recompute: " << bytes
        << " bytes that a loop has made for its backward are kept: loops are "
           "not run again; jax.checkpoint of the loop's body keeps less";
}

} // namespace
} // namespace whale
