//===- Propagate.cpp - Decide where every value is placed ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main with task graphs on virtual devices, or with shardings on a mesh
// that the program names. Out: a placement of each operand, result and
// argument.
//
// Decides layouts (StepLayouts.cpp), then shares (BalanceMeshes.cpp), and
// writes the placements that both make. A program without strategies that names
// a mesh of its own keeps to that. Where shares rotate between micro-batches,
// regions are copied for those with shares of their own, and the shares are
// decided anew, once. Before all that, each user of a splat constant or iota
// gets its own. Cost: nearly all of it is the layouts', which try ways to split
// parameters; what is here is linear in operations and uses, and in task graphs
// times devices.
//
//===----------------------------------------------------------------------===//

#include "Propagate/BalanceMeshes.h"
#include "Propagate/MomentRegions.h"
#include "Propagate/ShardScratch.h"
#include "Propagate/WritePlacements.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/GivenPlacements.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/DeviceRequests.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/Placed/Pipeline.h"
#include "whale/Transforms/Plans.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_PROPAGATE
#include "whale/Transforms/Placed/Passes.h.inc"

namespace {

/// Constants and iotas are made where they are used: each user gets its own,
/// so that one user's layout is no other's communication.
void separateSources(func::FuncOp function) {
  SmallVector<Operation *> sources;
  function.walk([&](Operation *op) {
    auto constant = dyn_cast<hlo::ConstantOp>(op);
    if (isa<hlo::IotaOp>(op) || (constant && constant.getValue().isSplat()))
      sources.push_back(op);
  });
  for (Operation *source : sources) {
    // Where a TaskGraph yields it, the users of the TaskGraph's result too.
    SmallVector<Value> values{source->getResult(0)};
    while (!values.empty()) {
      for (OpOperand &use :
           llvm::make_early_inc_range(values.pop_back_val().getUses())) {
        Operation *user = use.getOwner();
        if (isa<YieldOp>(user) && isa<TaskGraphOp>(user->getParentOp()))
          llvm::append_range(values, resultsOfYielded(use));
        // In a loop it would be made again in each round, but it is cheap, and
        // a kernel absorbs it.
        OpBuilder builder(user);
        use.set(builder.clone(*source)->getResult(0));
      }
    }
    source->erase();
  }
}

class Placer {
public:
  Placer(func::FuncOp function, const Cluster &cluster)
      : function(function), cluster(cluster), meshes(function, cluster),
        layouts(function, cluster, meshes) {}

  LogicalResult run() {
    separateSources(function);
    auto named = function->getParentOfType<ModuleOp>().getOps<sdy::MeshOp>();
    if (!named.empty()) {
      if (failed(followProgram(*named.begin())))
        return failure();
    } else {
      meshes.findArgumentMeshes();
      if (failed(layouts.followStrategies()))
        return failure();
      if (failed(readPlan()))
        return failure();
      expectScratch();
      // Where micro-batches with shares of their own have become regions of
      // their own, these are what loads are read from.
      if (balance(/*mayRotate=*/true))
        balance(/*mayRotate=*/false);
    }
    writePlacements(function, meshes, layouts);
    return success();
  }

private:
  /// Keeps to the mesh that whale-normalize has left, and to its shardings.
  LogicalResult followProgram(sdy::MeshOp op) {
    if (countDevices(op.getMesh()) != int64_t(cluster.devices.size()))
      return op.emitOpError("has ")
             << countDevices(op.getMesh()) << " devices and the cluster "
             << cluster.devices.size()
             << "; whale-normalize drops what cannot be followed";
    auto module = function->getParentOfType<ModuleOp>();
    Plan given = getGivenPlan(module).value_or(Plan());
    system::TextPlace place;
    if (!given.splits.empty())
      place = given.splits.front().place;
    else if (given.sums)
      place = given.sums->place;
    else if (!given.shares.empty())
      place = given.shares.front().place;
    if (place.line > 0)
      return emitPlanError(module, place)
             << "decisions: the step has a mesh, and shardings, of its own";
    ShardingHints hints(op.getMesh(), function);
    meshes.useHints(hints);
    layouts.followHints(hints);
    meshes.findArgumentMeshes();
    return success();
  }

  /// The shares that a plan says must be those of meshes of the step, and of
  /// its samples.
  LogicalResult readPlan() {
    auto module = function->getParentOfType<ModuleOp>();
    if (std::optional<Plan> plan = getGivenPlan(module))
      planned = std::move(plan->shares);
    if (planned.empty())
      return success();
    std::vector<int64_t> moments = readLoads().getMoments();
    for (const PlannedShares &shares : planned) {
      if (llvm::none_of(meshes.getMeshes(), [&](const Mesh *mesh) {
            return mesh->getGroups() == shares.devices;
          }))
        return emitPlanError(module, shares.place)
               << "decisions.shares: no task graph is on these devices; leave "
                  "it out, and what they share is decided";
      if (!shares.moments.empty() && shares.moments != moments)
        return emitPlanError(module, shares.place)
               << "decisions.shares: the step has other micro-batches";
    }
    return success();
  }

  /// What libraries may be asked about; nothing where there are none to ask.
  SmallVector<Operation *> findProducts() {
    SmallVector<Operation *> products;
    if (getScratchFinder(function))
      function.walk([&](Operation *op) {
        if (isa<hlo::DotGeneralOp, hlo::ConvolutionOp>(op))
          products.push_back(op);
      });
    return products;
  }

  /// What libraries use in addition to buffers for the shares that were decided
  /// last.
  std::vector<int64_t> findScratch(const MeshBalancer &balancer,
                                   ArrayRef<Operation *> products) {
    writePlacements(products, meshes, layouts);
    return findShardScratch(products, balancer.findAlike(), cluster,
                            getScratchFinder(function));
  }

  /// Of each device: its part of the work, and what libraries use for that.
  struct ScratchAnswer {
    std::vector<double> parts;
    std::vector<int64_t> bytes;
    bool fits = false;
  };

  /// Asks about the shares that fit with the scratch that is expected so far.
  ScratchAnswer askForScratch(const StepLoads &loads,
                              ArrayRef<Operation *> products) {
    MeshBalancer balancer(loads, cluster, getMemoryFit(function), scratch,
                          planned);
    balancer.balance(meshes.getMeshes(), /*mostVariants=*/1);
    ScratchAnswer answer;
    answer.bytes = findScratch(balancer, products);
    for (size_t device = 0; device < answer.bytes.size(); ++device)
      answer.parts.push_back(balancer.getPart(device));
    balancer.setScratch(answer.bytes);
    answer.fits = balancer.isWithinMemory();
    return answer;
  }

  /// Libraries are asked about shards, and how large these may be depends on
  /// what libraries use. So the shares that speed would have come first. Where
  /// they don't fit with it, a second answer, for shares that leave as much
  /// free, gives what each sample adds. If that has turned out wrong, as much
  /// is left free as they use.
  void expectScratch() {
    SmallVector<Operation *> products = findProducts();
    if (products.empty())
      return;
    StepLoads loads = readLoads();
    ScratchAnswer first = askForScratch(loads, products);
    for (int64_t bytes : first.bytes)
      scratch.push_back({double(bytes), 0});
    if (first.fits || getMemoryFit(function).isCorrected)
      return;
    ScratchAnswer second = askForScratch(loads, products);
    for (size_t device = 0; device < scratch.size(); ++device)
      scratch[device] = ScratchLine::through(
          second.parts[device], double(second.bytes[device]),
          first.parts[device], double(first.bytes[device]));
  }

  /// Decides all shares. True if the regions of micro-batches were multiplied,
  /// for shares that rotate; they are laid out like what they are copies of.
  bool balance(bool mayRotate) {
    MemoryFit &fit = getMemoryFit(function);
    StepLoads loads = readLoads();
    MeshBalancer balancer(loads, cluster, fit, scratch, planned);
    SmallVector<Mesh *> list = meshes.getMeshes();
    if (mayRotate)
      mostVariants = countVariants(function);
    balancer.balance(list, mostVariants);
    // Without samples in the loops there is nothing to rotate.
    bool canRotate = mayRotate && loads.getMoments().size() > 1;
    auto addCopy = [&](MicroBatchesOp loop, MicroBatchesOp copy) {
      layouts.addCopy(loop, copy);
    };
    if (canRotate &&
        multiplyRegions(function, balancer.findVariants(list), addCopy))
      return true;
    if (SmallVector<Operation *> products = findProducts(); !products.empty())
      balancer.setScratch(findScratch(balancer, products));
    balancer.explain(function.getLoc(), list,
                     [&](const Mesh *mesh) { return meshes.namesOn(mesh); });
    for (auto loop : function.getOps<MicroBatchesOp>()) {
      Pipeline pipeline(loop, cluster);
      if (pipeline.getNumStages() > 1 && pipeline.goesBack())
        writeLoopBytes(loop, pipeline, balancer.loopBytes(loop));
    }
    fit.shares = balancer.estimate(list);
    addToPlan(function->getParentOfType<ModuleOp>(),
              [&](Plan &plan) { plan.shares = balancer.getShares(list); });
    return false;
  }

  /// For the choice of a schedule: what is fixed as the number of micro-batches
  /// in flight changes, and what is not.
  void writeLoopBytes(MicroBatchesOp loop, Pipeline &pipeline,
                      ArrayRef<LoopBytes> devices) {
    Builder builder(loop.getContext());
    llvm::MapVector<Attribute, SmallVector<int64_t>> devicesWith;
    for (auto [device, bytes] : llvm::enumerate(devices)) {
      double fixed = bytes.inside;
      // What no slot counts stays part of what is fixed.
      auto list = [&](const std::map<StringRef, double> &amounts,
                      llvm::function_ref<double(StringRef)> count) {
        SmallVector<NamedAttribute> list;
        for (const auto &[name, each] : amounts) {
          if (pipeline.getSlots(name).empty())
            continue;
          fixed -= each * count(name);
          list.push_back(builder.getNamedAttr(
              name, builder.getI64IntegerAttr(toBytes(each))));
        }
        return builder.getDictionaryAttr(list);
      };
      DictionaryAttr kept = list(bytes.kept, [&](StringRef name) {
        return double(pipeline.getInFlight(name));
      });
      DictionaryAttr sums = list(bytes.sums, [](StringRef) { return 1; });
      fixed = std::max(fixed, 0.0);
      auto number = [&](double amount) {
        return builder.getI64IntegerAttr(toBytes(amount));
      };
      devicesWith[builder.getDictionaryAttr(
                      {builder.getNamedAttr("fixed", number(fixed)),
                       builder.getNamedAttr("kept", kept),
                       builder.getNamedAttr("outside", number(bytes.outside)),
                       builder.getNamedAttr("sums", sums)})]
          .push_back(device);
    }
    SmallVector<Attribute> list;
    for (auto &[attr, ids] : devicesWith) {
      NamedAttrList entry(cast<DictionaryAttr>(attr));
      entry.set("devices", builder.getDenseI64ArrayAttr(ids));
      list.push_back(entry.getDictionary(loop.getContext()));
    }
    loop->setAttr(kLoopBytesAttr, builder.getArrayAttr(list));
  }

  StepLoads readLoads() {
    llvm::DenseMap<Operation *, std::unique_ptr<Pipeline>> pipelines;
    auto inFlight = [&](Operation *op) -> int64_t {
      auto loop = op->getParentOfType<MicroBatchesOp>();
      TaskGraphOp graph = graphOf(op);
      if (!loop || !graph)
        return 1;
      std::unique_ptr<Pipeline> &pipeline = pipelines[loop];
      if (!pipeline)
        pipeline = std::make_unique<Pipeline>(loop, cluster);
      return pipeline->getInFlight(graph.getName());
    };
    return StepLoads(function, cluster, meshes, layouts, inFlight);
  }

  func::FuncOp function;
  const Cluster &cluster;
  StepMeshes meshes;
  StepLayouts layouts;
  /// What a given plan says.
  std::vector<PlannedShares> planned;
  /// How many kinds of micro-batches there may be.
  int64_t mostVariants = 1;
  /// What libraries use on each device in addition to buffers, by its shares.
  std::vector<ScratchLine> scratch;
};

struct PropagatePass : impl::PropagateBase<PropagatePass> {
  using PropagateBase::PropagateBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> function = getMainFunction(module);
    if (failed(function))
      return signalPassFailure();
    // whale-place-results has placed everything.
    if (hasGivenResults(*function))
      return;
    FailureOr<Cluster> cluster = getCluster(module);
    if (failed(cluster) || failed(Placer(*function, *cluster).run()))
      return signalPassFailure();
  }
};

} // namespace
} // namespace whale
