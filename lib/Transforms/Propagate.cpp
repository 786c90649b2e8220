//===- Propagate.cpp - Decide where every value is placed ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Runs propagation along both axes of the devices (repetitions of the group,
// devices inside one), chooses how parameters of split TaskGraphs are cut, and
// writes the resulting placements on every operation. A program without
// strategies that names a mesh of its own is propagated along the axes of that,
// from the shardings that it gives.
//
//===----------------------------------------------------------------------===//

#include "Propagate/AxisCosts.h"
#include "Propagate/BalanceMeshes.h"
#include "ScheduleMicroBatches/Pipeline.h"
#include "mlir/IR/IRMapping.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/AxisPropagation.h"
#include "whale/Sharding/Factorization.h"
#include "whale/Sharding/Mesh.h"
#include "whale/Sharding/ParameterSplits.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Sharding/ShardingHints.h"
#include "whale/Sharding/ShardingPattern.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Feedback.h"
#include "whale/Transforms/Passes.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_PROPAGATE
#include "whale/Transforms/Passes.h.inc"

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
      : function(function), cluster(cluster), costs(cluster),
        feeds(findFedArguments(function)) {}

  LogicalResult run() {
    if (failed(collectMeshes()))
      return failure();
    separateSources(function);
    if (hints) {
      Factorization factorization(function, feeds);
      followHints(factorization);
      findArgumentMeshes();
    } else {
      // Micro-batches with shares of their own become regions of their own, in
      // which everything is decided again.
      bool isBalanced = decide(/*mayRotate=*/true);
      if (!isBalanced)
        decide(/*mayRotate=*/false);
    }
    placeArguments();
    writePlacements();
    return success();
  }

private:
  /// Decides all layouts and shares. False if the regions of micro-batches were
  /// multiplied for it.
  bool decide(bool mayRotate) {
    axes.clear();
    Factorization factorization(function, feeds);
    seedBatch(factorization);
    AxisPropagation &batch = propagate(batchOptions());
    AxisPropagation::Options options = innerOptions(batch, factorization);
    chooseParameterSplits(factorization, options);
    propagate(std::move(options));
    findArgumentMeshes();
    return balance(mayRotate);
  }

  LogicalResult collectMeshes() {
    ModuleOp module = function->getParentOfType<ModuleOp>();
    std::vector<DeviceId> all;
    for (size_t device = 0; device < cluster.devices.size(); ++device)
      all.push_back(device);
    std::unique_ptr<Mesh> &whole = meshes[{all}];
    whole = std::make_unique<Mesh>(std::vector<std::vector<DeviceId>>{all},
                                   cluster);
    wholeCluster = whole.get();
    for (VirtualDeviceOp device : module.getOps<VirtualDeviceOp>()) {
      std::vector<std::vector<DeviceId>> groups;
      for (size_t i = 0; i < device.getNumGroups(); ++i) {
        ArrayRef<int64_t> group = device.getGroup(i);
        groups.emplace_back(group.begin(), group.end());
      }
      // Task graphs on the same devices share a mesh, so that values stay
      // where they are between them.
      std::unique_ptr<Mesh> &mesh = meshes[groups];
      if (!mesh)
        mesh = std::make_unique<Mesh>(groups, cluster);
      meshOfSymbol[device.getSymNameAttr()] = mesh.get();
    }
    return findHints(module);
  }

  /// The mesh that whale-normalize has left, if any.
  LogicalResult findHints(ModuleOp module) {
    auto named = module.getOps<sdy::MeshOp>();
    if (named.empty())
      return success();
    sdy::MeshOp op = *named.begin();
    if (countDevices(op.getMesh()) != int64_t(cluster.devices.size()))
      return op.emitOpError("has ")
             << countDevices(op.getMesh()) << " devices and the cluster "
             << cluster.devices.size()
             << "; whale-normalize drops what cannot be followed";
    hints.emplace(op.getMesh(), function);
    std::unique_ptr<Mesh> &mesh = meshes[{}];
    mesh = std::make_unique<Mesh>(hints->getSizes(), hints->getDevices());
    wholeCluster = mesh.get();
    return success();
  }

  AxisPropagation &propagate(AxisPropagation::Options options) {
    axes.push_back(
        std::make_unique<AxisPropagation>(function, std::move(options)));
    axes.back()->run();
    return *axes.back();
  }

  /// Propagates along each axis of the program's own mesh.
  void followHints(Factorization &factorization) {
    size_t count = hints->getSizes().size();
    std::vector<llvm::DenseMap<Value, AxisState>> seeds(count), wishes(count);
    auto follow = [&](Value value, Value shape,
                      sdy::TensorShardingAttr sharding, auto &states,
                      const Twine &what) {
      SmallVector<StringRef> dropped;
      SmallVector<AxisState> given =
          hints->getStates(shape, sharding, factorization, dropped);
      for (auto [axis, state] : llvm::enumerate(given))
        if (!state.isFree())
          states[axis][value] = state;
      for (StringRef axis : dropped)
        emitRemark(value.getLoc())
            << what << " is not sharded along \"" << axis
            << "\": the pieces that its dimension is used in are too few";
    };
    for (BlockArgument argument : function.getArguments()) {
      unsigned number = argument.getArgNumber();
      if (auto sharding = function.getArgAttrOfType<sdy::TensorShardingAttr>(
              number, shardingAttrName)) {
        follow(argument, argument, sharding, seeds,
               "argument " + Twine(number));
        function.removeArgAttr(number, shardingAttrName);
      }
    }
    function.walk([&](sdy::ShardingConstraintOp op) {
      follow(op.getResult(), op.getInput(), op.getSharding(), wishes, "value");
    });
    for (size_t axis = 0; axis < count; ++axis) {
      AxisPropagation::Options options = commonOptions(axis);
      options.policy = [](Operation *) { return AxisPolicy::Cheapest; };
      options.parts = [this, axis](Operation *) {
        return wholeCluster->getNumParts(axis);
      };
      options.pieces = [&factorization](Value value) {
        return factorization.getPieces(value);
      };
      options.seeds = seeds[axis];
      options.constraints = wishes[axis];
      propagate(std::move(options));
    }
  }

  TaskGraphOp graphOf(Operation *op) const {
    if (auto graph = dyn_cast<TaskGraphOp>(op))
      return graph;
    return op->getParentOfType<TaskGraphOp>();
  }

  const Mesh *meshOf(Operation *op) const {
    TaskGraphOp graph = graphOf(op);
    if (graph && graph.getVirtualDeviceAttr())
      if (const Mesh *mesh =
              meshOfSymbol.lookup(graph.getVirtualDeviceAttr().getAttr()))
        return mesh;
    return wholeCluster;
  }

  /// The policy of the axis inside a group.
  AxisPolicy policyOf(Operation *op) const {
    TaskGraphOp graph = graphOf(op);
    StrategyAttr strategy = graph ? graph.getStrategyAttr() : StrategyAttr();
    if (isa_and_nonnull<ReplicateAttr>(strategy))
      return AxisPolicy::Batch;
    if (isa_and_nonnull<SplitAttr>(strategy))
      return AxisPolicy::Cheapest;
    return AxisPolicy::Whole;
  }

  /// Of propagation along an axis of the meshes.
  AxisPropagation::Options commonOptions(unsigned axis) {
    AxisPropagation::Options options;
    options.devices = [this](Operation *op) -> const void * {
      return meshOf(op);
    };
    auto isApplied = [this](Operation *op) {
      TaskGraphOp graph = op ? graphOf(op) : TaskGraphOp();
      return graph && graph.getPhase() == Phase::Apply;
    };
    options.passesPartial = [isApplied](Operation *op, Value value) {
      return !isApplied(op) ||
             isApplied(lookThroughTaskGraph(value).getDefiningOp());
    };
    options.feeds = feeds;
    options.work = [this, axis](Operation *op) {
      return costs.work(op, *meshOf(op), axis);
    };
    options.exchange = [this, axis](Operation *op, Exchange::Kind kind,
                                    double bytes) {
      return costs.exchange(kind, bytes, *meshOf(op), axis);
    };
    options.repeats = [this](Operation *op) { return costs.repeats(op); };
    return options;
  }

  /// The largest piece of a dimension that the program keeps together, and
  /// that micro-batches are not cut across.
  AxisState batchState(Value value, int64_t dim, Factorization &factorization) {
    for (const DimPiece &piece : factorization.getPieces(value)) {
      bool isCut = llvm::any_of(value.getUses(), [&](OpOperand &use) {
        Operation *user = use.getOwner();
        std::optional<OpRule> rule;
        if (isa<hlo::SliceOp>(user))
          rule = getOpRule(user);
        if (!rule)
          return isa<hlo::SliceOp>(user);
        std::optional<SubFactor> sub =
            findSubFactor(*rule, rule->operands[0], piece);
        return !sub || rule->factors[sub->factor].kind == FactorKind::Blocked;
      });
      if (int64_t(piece.dim) == dim && !isCut)
        return AxisState::split(piece);
    }
    return AxisState::replicated();
  }

  /// The layouts of what carries the mini-batch: arguments of the function, and
  /// of the regions of micro-batches.
  void seedBatch(Factorization &factorization) {
    batchSeeds.clear();
    for (BlockArgument argument : function.getArguments())
      if (auto dim = function.getArgAttrOfType<IntegerAttr>(
              argument.getArgNumber(), "whale.batch_dim"))
        batchSeeds[argument] =
            batchState(argument, dim.getInt(), factorization);
    function.walk([&](MicroBatchesOp loop) {
      for (Region &body : loop.getBodies())
        for (auto [argument, dim] :
             llvm::zip(body.getArguments(), loop.getBatchDims()))
          if (dim >= 0)
            batchSeeds[argument] = batchState(argument, dim, factorization);
    });
  }

  /// Everything follows the mini-batch: the layout along the repetitions of
  /// groups, and what operations of replicate TaskGraphs do inside one.
  AxisPropagation::Options batchOptions() {
    AxisPropagation::Options options = commonOptions(/*axis=*/1);
    options.policy = [this](Operation *op) {
      return policyOf(op) == AxisPolicy::Whole ? AxisPolicy::Whole
                                               : AxisPolicy::Batch;
    };
    options.parts = [this](Operation *op) {
      const Mesh *mesh = meshOf(op);
      return std::max(mesh->getNumParts(0), mesh->getNumParts(1));
    };
    options.seeds = batchSeeds;
    return options;
  }

  AxisPropagation::Options innerOptions(const AxisPropagation &batch,
                                        Factorization &factorization) {
    AxisPropagation::Options options = commonOptions(/*axis=*/1);
    options.pieces = [&factorization](Value value) {
      return factorization.getPieces(value);
    };
    options.policy = [this](Operation *op) { return policyOf(op); };
    options.parts = [this](Operation *op) {
      return meshOf(op)->getNumParts(1);
    };
    options.batchChoices = &batch.getChoices();
    // The mini-batch is stored in shares where a replicate TaskGraph reads it,
    // and whole where only others do.
    for (auto [value, state] : batchSeeds) {
      bool isShared = llvm::any_of(value.getUsers(), [&](Operation *user) {
        return policyOf(user) == AxisPolicy::Batch;
      });
      options.seeds[value] = isShared ? state : AxisState::replicated();
    }
    return options;
  }

  void chooseParameterSplits(Factorization &factorization,
                             AxisPropagation::Options &options) {
    SmallVector<ParameterGroup> groups = findSplitParameters(
        function, factorization,
        [&](Operation *op) -> int64_t {
          return policyOf(op) == AxisPolicy::Cheapest
                     ? meshOf(op)->getNumParts(1)
                     : 1;
        },
        [&](BlockArgument argument) { return !batchSeeds.contains(argument); });
    auto seed = [&](ArrayRef<unsigned> choice) {
      AxisPropagation::Options seeded = options;
      for (auto [group, piece] : llvm::zip(groups, choice))
        for (BlockArgument parameter : group.parameters) {
          seeded.seeds[parameter] = AxisState::split(group.pieces[piece]);
          seeded.parameters.insert(parameter);
        }
      return seeded;
    };
    bool isNew = !splits;
    if (isNew)
      splits = chooseSplits(groups, [&](ArrayRef<unsigned> candidate) {
        AxisPropagation propagation(function, seed(candidate));
        propagation.run();
        return propagation.getSeconds();
      });
    options = seed(splits->pieces);
    for (size_t group = 0; isNew && group < groups.size(); ++group)
      explainSplit(groups[group], splits->pieces[group],
                   splits->alternatives[group]);
  }

  /// A remark for each parameter: the way to split it, and what the step's
  /// share of computation and communication is with this one and the others.
  static void explainSplit(const ParameterGroup &group, unsigned chosen,
                           ArrayRef<double> seconds) {
    auto describe = [&](unsigned index) {
      const DimPiece &piece = group.pieces[index];
      std::string text = llvm::formatv("along dimension {0} in {1} grains",
                                       piece.dim, piece.extent);
      if (auto pattern = findPattern(group.parameters.front(), piece))
        text +=
            llvm::formatv(" ({0}: {1})", pattern->name, pattern->communication);
      llvm::raw_string_ostream(text)
          << ", " << llvm::format("%.4g s", seconds[index]);
      return text;
    };
    std::string text = "split " + describe(chosen);
    for (unsigned index = 0; index < group.pieces.size(); ++index)
      if (index != chosen)
        text += "; not " + describe(index);
    for (BlockArgument parameter : group.parameters)
      emitRemark(parameter.getLoc())
          << "argument " << parameter.getArgNumber() << " is " << text;
  }

  /// An argument lives on the devices of the first operation that uses it.
  void findArgumentMeshes() {
    llvm::DenseMap<Operation *, unsigned> position;
    function.walk<WalkOrder::PreOrder>(
        [&](Operation *op) { position.try_emplace(op, position.size()); });
    for (BlockArgument argument : function.getArguments()) {
      Operation *first = nullptr;
      for (Operation *user : argument.getUsers())
        if (user != function.front().getTerminator() &&
            (!first || position.lookup(user) < position.lookup(first)))
          first = user;
      argumentMesh[argument] = first ? meshOf(first) : wholeCluster;
    }
  }

  void placeArguments() {
    for (BlockArgument argument : function.getArguments())
      function.setArgAttr(
          argument.getArgNumber(), placementAttrName,
          PlacementAttr::get(
              function.getContext(),
              place(argumentMesh.lookup(argument), argument, std::nullopt)));
  }

  /// Balances all meshes. False if regions were multiplied for it, and all must
  /// be decided again.
  bool balance(bool mayRotate) {
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
    auto meshOfOp = [&](Operation *op) { return meshOf(op); };
    auto meshOfAny = [&](Value value) { return meshOfValue(value); };
    StepLoads loads(
        {function, cluster, *axes[0], *axes[1], meshOfOp, meshOfAny, inFlight});
    SmallVector<Mesh *> list;
    for (auto &[groups, mesh] : meshes)
      list.push_back(mesh.get());
    ModuleOp module = function->getParentOfType<ModuleOp>();
    ArrayRef<double> scale;
    if (auto attr = module->getAttrOfType<DenseF64ArrayAttr>(kMemoryScaleAttr);
        attr && attr.size() == int64_t(cluster.devices.size()))
      scale = attr;
    MeshBalancer balancer(loads, cluster, scale);
    if (mayRotate)
      mostVariants = countVariants();
    balancer.balance(list, mostVariants);
    if (mayRotate && multiplyRegions(balancer.findVariants(list))) {
      costs.forgetOperations();
      return false;
    }
    balancer.explain(function.getLoc(), list,
                     [&](const Mesh *mesh) { return namesOn(mesh); });
    if (scale.empty())
      return true;
    Builder builder(module.getContext());
    module->setAttr(kEstimatedBytesAttr,
                    builder.getDenseI64ArrayAttr(balancer.estimateBytes(list)));
    module->setAttr(kArgumentBytesAttr,
                    builder.getDenseI64ArrayAttr(balancer.argumentBytes(list)));
    return true;
  }

  /// The TaskGraphs on a mesh, for people.
  std::string namesOn(const Mesh *mesh) const {
    llvm::SetVector<StringRef> names;
    func::FuncOp(function).walk([&](TaskGraphOp graph) {
      if (graph.getStrategyAttr() && meshOf(graph) == mesh)
        names.insert(graph.getName());
    });
    std::string text;
    for (auto [index, name] : llvm::enumerate(names)) {
      if (index == 4) // The rest goes without saying.
        return text + ", ...";
      text += (index == 0 ? " of '" : ", '") + name.str() + "'";
    }
    return text;
  }

  /// How many kinds of micro-batches there may be, each of which is decided and
  /// compiled for itself.
  int64_t countVariants() {
    constexpr int64_t kMostOperations = 20000, kMostVariants = 32;
    int64_t operations = 0;
    for (auto loop : function.getOps<MicroBatchesOp>())
      loop.getBody(0).walk([&](Operation *) { ++operations; });
    return std::min(kMostVariants, kMostOperations / (operations + 1));
  }

  /// Gives micro-batches that differ from those with the same region a region
  /// of their own.
  bool multiplyRegions(ArrayRef<int64_t> firstAlike) {
    bool hasChanged = false;
    for (auto loop :
         llvm::make_early_inc_range(function.getOps<MicroBatchesOp>())) {
      std::map<std::pair<int64_t, int64_t>, int64_t> numbers;
      SmallVector<int64_t> variants;
      for (auto [moment, variant] : llvm::enumerate(loop.getVariants()))
        variants.push_back(
            numbers.try_emplace({variant, firstAlike[moment]}, numbers.size())
                .first->second);
      if (numbers.size() == loop.getBodies().size())
        continue;
      hasChanged = true;
      OpBuilder builder(loop);
      OperationState state(loop.getLoc(), MicroBatchesOp::getOperationName());
      state.addOperands(loop->getOperands());
      state.addTypes(loop->getResultTypes());
      state.addAttributes(loop->getAttrs());
      for (size_t i = 0; i < numbers.size(); ++i) {
        int64_t moment = llvm::find(variants, int64_t(i)) - variants.begin();
        IRMapping mapping;
        loop.getBodies()[loop.getVariants()[moment]].cloneInto(
            state.addRegion(), mapping);
      }
      auto copy = cast<MicroBatchesOp>(builder.create(state));
      copy.setVariants(variants);
      loop->replaceAllUsesWith(copy);
      loop->erase();
    }
    return hasChanged;
  }

  /// The first of the micro-batches with this region.
  static int64_t firstWith(MicroBatchesOp loop, int64_t region) {
    return llvm::find(loop.getVariants(), region) - loop.getVariants().begin();
  }

  /// The first of the micro-batches that an operation is computed for.
  static std::optional<int64_t> momentOf(Operation *op) {
    for (; op; op = op->getParentOp())
      if (auto loop = dyn_cast_or_null<MicroBatchesOp>(op->getParentOp()))
        return firstWith(loop, op->getParentRegion()->getRegionNumber());
    return std::nullopt;
  }

  /// The same of a piece that enters micro-batches, and of one that leaves.
  static std::optional<int64_t> momentOf(OpOperand &piece) {
    auto loop = cast<MicroBatchesOp>(piece.getOwner());
    int64_t moment = piece.getOperandNumber() % loop.getNumMoments();
    return firstWith(loop, loop.getVariants()[moment]);
  }
  static std::optional<int64_t> momentOf(OpResult result) {
    auto loop = cast<MicroBatchesOp>(result.getOwner());
    auto [index, moment] = loop.getYielded(result.getResultNumber());
    if (!moment)
      return std::nullopt;
    return firstWith(loop, loop.getVariants()[*moment]);
  }

  /// Where a value is made.
  Placement place(const Mesh *mesh, Value value,
                  std::optional<int64_t> moment) {
    SmallVector<AxisState> states;
    for (const auto &axis : axes)
      states.push_back(axis->getState(value));
    return mesh->place(cast<RankedTensorType>(value.getType()).getShape(),
                       states, moment);
  }

  /// Where it is wanted.
  Placement place(const Mesh *mesh, OpOperand &operand,
                  std::optional<int64_t> moment) {
    SmallVector<AxisState> states;
    for (const auto &axis : axes)
      states.push_back(axis->getRequired(operand));
    return mesh->place(
        cast<RankedTensorType>(operand.get().getType()).getShape(), states,
        moment);
  }

  /// The devices that make a value.
  const Mesh *meshOfValue(Value value) {
    if (Operation *producer = findProducer(value))
      return meshOf(producer);
    return argumentMesh.lookup(lookThroughTaskGraph(value));
  }

  /// The devices that first use a piece of the mini-batch.
  const Mesh *meshOfPiece(OpOperand &piece) {
    auto loop = cast<MicroBatchesOp>(piece.getOwner());
    unsigned argument = piece.getOperandNumber() / loop.getNumMoments();
    int64_t moment = piece.getOperandNumber() % loop.getNumMoments();
    for (Operation &op : loop.getBody(moment))
      for (Operation *user :
           loop.getBody(moment).getArgument(argument).getUsers())
        if (op.isAncestor(user))
          return meshOf(user);
    return wholeCluster;
  }

  void writePlacements() {
    MLIRContext *context = function.getContext();
    auto attr = [&](const Placement &placement) -> Attribute {
      return PlacementAttr::get(context, placement);
    };
    auto wanted = [&](OpOperand &operand, const Mesh *mesh,
                      std::optional<int64_t> moment) {
      return attr(place(mesh, operand, moment));
    };
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      bool isLoop = isa<MicroBatchesOp>(op);
      bool endsMoment =
          isa<YieldOp>(op) && !isa<TaskGraphOp>(op->getParentOp());
      if (op == function || isa<TaskGraphOp>(op) ||
          (isa<YieldOp>(op) && !endsMoment))
        return WalkResult::advance();
      const Mesh *mesh = meshOf(op);
      std::optional<int64_t> moment = momentOf(op);
      SmallVector<Attribute> operands, results;
      // What enters and leaves a loop over micro-batches is where it is used
      // and made.
      for (OpOperand &operand : op->getOpOperands())
        if (isLoop)
          operands.push_back(
              wanted(operand, meshOfPiece(operand), momentOf(operand)));
        else if (endsMoment)
          operands.push_back(
              wanted(operand, meshOfValue(operand.get()), moment));
      if (isLoop)
        for (OpResult result : op->getResults())
          results.push_back(
              attr(place(meshOfValue(result), result, momentOf(result))));
      if (isLoop || endsMoment) {
        op->setAttr(operandPlacementsAttrName,
                    ArrayAttr::get(context, operands));
        op->setAttr(placementsAttrName, ArrayAttr::get(context, results));
        return WalkResult::advance();
      }
      for (OpOperand &operand : op->getOpOperands()) {
        if (op != function.front().getTerminator()) {
          operands.push_back(wanted(operand, mesh, moment));
          continue;
        }
        // Results stay on the devices that make them, unless they feed an
        // argument.
        int64_t fed = feeds[operand.getOperandNumber()];
        const Mesh *own = meshOfValue(operand.get());
        if (fed >= 0)
          own = argumentMesh.lookup(function.getArgument(fed));
        operands.push_back(wanted(operand, own, std::nullopt));
      }
      for (Value result : op->getResults())
        results.push_back(attr(place(mesh, result, moment)));
      if (!operands.empty())
        op->setAttr(operandPlacementsAttrName,
                    ArrayAttr::get(context, operands));
      if (!results.empty())
        op->setAttr(placementsAttrName, ArrayAttr::get(context, results));
      // The bodies of reductions work on scalars.
      if (isa<hlo::WhileOp, hlo::CaseOp, hlo::IfOp>(op))
        return WalkResult::advance();
      return WalkResult::skip();
    });
  }

  func::FuncOp function;
  const Cluster &cluster;
  AxisCosts costs;
  SmallVector<int64_t> feeds;
  const Mesh *wholeCluster = nullptr;
  std::optional<ShardingHints> hints;
  std::vector<std::unique_ptr<AxisPropagation>> axes;
  std::map<std::vector<std::vector<DeviceId>>, std::unique_ptr<Mesh>> meshes;
  llvm::DenseMap<Attribute, const Mesh *> meshOfSymbol;
  llvm::DenseMap<Value, AxisState> batchSeeds;
  llvm::DenseMap<Value, const Mesh *> argumentMesh;
  /// How the parameters of split TaskGraphs are cut, once that is decided.
  std::optional<SplitChoice> splits;
  int64_t mostVariants = 1;
};

struct PropagatePass : impl::PropagateBase<PropagatePass> {
  using PropagateBase::PropagateBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> function = getMainFunction(module);
    if (failed(function))
      return signalPassFailure();
    auto clusters = module.getOps<ClusterOp>();
    if (clusters.empty()) {
      module.emitError("has no whale.cluster; run whale-load-cluster first");
      return signalPassFailure();
    }
    Cluster cluster = (*clusters.begin()).getCluster();
    if (failed(Placer(*function, cluster).run()))
      return signalPassFailure();
  }
};

} // namespace
} // namespace whale
