//===- StepLayouts.cpp - Layouts along the axes of devices ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the strategies of task graphs, or the shardings of a mesh that the
// program names, and the meshes. Out: the layout of every value along each
// axis. The strategies become seeds and options of AxisPropagation, which runs
// once for each axis: first everything follows the mini-batch, which is the
// layout along the repetitions of groups; then inside a group, where parameters
// of split TaskGraphs are seeded as split. Which of their pieces is chosen by
// trials (chooseSplits): each propagates over the whole function and gives the
// seconds of a step. A mesh that the program names is seeded by its shardings
// instead. Cost: a propagation for each axis, and one more where parameters are
// split; trials, in parallel, at most 256, or more as long as all together lay
// out 2^20 operations.
//
//===----------------------------------------------------------------------===//

#include "StepLayouts.h"

#include "PlannedSplits.h"
#include "mlir/IR/Threading.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Sharding/ShardingPattern.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Feedback.h"
#include "whale/Transforms/Import/StackPieces.h"
#include "whale/Transforms/Plans.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

StepLayouts::StepLayouts(func::FuncOp function, const Cluster &cluster,
                         const StepMeshes &meshes)
    : function(function), cluster(cluster), meshes(meshes), costs(cluster),
      feeds(findFedArguments(function)),
      zeroLevel(Config(function->getParentOfType<ModuleOp>()).getZeroLevel()) {}

/// The choices of splits that may be tried. Each takes time in proportion to
/// the operations, so more than the first bound only while the second, of
/// operations that are laid out, isn't passed.
static size_t mostTrials(func::FuncOp function) {
  constexpr size_t always = 256, mostWork = size_t(1) << 20;
  size_t operations = 0;
  function.walk([&](Operation *) { ++operations; });
  return std::max(always, mostWork / operations);
}

LogicalResult StepLayouts::followStrategies() {
  rules = std::make_shared<RuleCache>();
  Factorization factorization(function, feeds, *rules);
  seedBatch(factorization);
  findState(factorization);
  findGiven(factorization);
  AxisPropagation &batch = propagate(batchOptions(factorization));
  SmallVector<ParameterGroup> groups = findSplitParameters(
      function, factorization,
      [&](Operation *op) -> int64_t {
        return isa_and_nonnull<SplitAttr>(strategyOf(op))
                   ? meshes.meshOf(op)->getNumParts(1)
                   : 1;
      },
      [&](BlockArgument argument) { return !batchSeeds.contains(argument); });
  bool isSplit = !groups.empty();
  leaveOutGiven(groups);
  // The search tries each piece at least twice.
  size_t most = mostTrials(function);
  joinManyGroups(groups, most / 2);
  auto module = function->getParentOfType<ModuleOp>();
  Plan given = getGivenPlan(module).value_or(Plan());
  SmallVector<unsigned> pieces;
  std::unique_ptr<AxisPropagation> chosen;
  if (!given.splits.empty()) {
    if (failed(takeSplits(given, function, groups, pieces)))
      return failure();
  } else {
    SplitChoice splits;
    chosen = chooseParameterSplits(groups, batch, factorization, most, splits);
    pieces = splits.pieces;
  }
  AxisPropagation::Options options =
      seedSplits(innerOptions(batch, factorization, costs), groups, pieces);
  if (chosen)
    axes.push_back(std::move(chosen));
  else
    propagate(options);
  if (!isSplit && given.sums)
    return emitPlanError(module, given.sums->place)
           << "decisions.sums: no task graph is split";
  if (isSplit) {
    bool areScattered = decideSums(given.sums, std::move(options));
    addToPlan(module, [&](Plan &plan) {
      plan.splits = planOf(groups, pieces);
      plan.sums = {areScattered};
    });
  }
  return explainState();
}

/// Has sums of split products whole where they are made, if the plan says so or
/// that is shorter than to scatter them; where it is longer a remark says so.
bool StepLayouts::decideSums(const std::optional<Plan::Sums> &given,
                             AxisPropagation::Options options) {
  if (given && given->areScattered)
    return true;
  options.scatters = false;
  auto whole = std::make_unique<AxisPropagation>(function, std::move(options));
  whole->run();
  double wholeSeconds = whole->getSeconds();
  double scattered = axes.back()->getSeconds();
  if (given || wholeSeconds < scattered) {
    axes.back() = std::move(whole);
    return false;
  }
  if (scattered < wholeSeconds) {
    std::string text =
        "sums of split products are scattered, and gathered where they are "
        "needed whole (sequence parallelism): ";
    llvm::raw_string_ostream(text)
        << llvm::format("%.4g s, not %.4g s", scattered, wholeSeconds);
    emitRemark(function.getLoc()) << text;
  }
  return true;
}

void StepLayouts::followHints(const ShardingHints &hints) {
  rules = std::make_shared<RuleCache>();
  Factorization factorization(function, feeds, *rules);
  size_t count = hints.getSizes().size();
  std::vector<llvm::DenseMap<Value, AxisState>> seeds(count), wishes(count);
  auto follow = [&](Value value, Value shape, sdy::TensorShardingAttr sharding,
                    auto &states, const Twine &what) {
    SmallVector<StringRef> dropped;
    SmallVector<AxisState> given =
        hints.getStates(shape, sharding, factorization, dropped);
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
      follow(argument, argument, sharding, seeds, "argument " + Twine(number));
      function.removeArgAttr(number, shardingAttrName);
    }
  }
  function.walk([&](sdy::ShardingConstraintOp op) {
    follow(op.getResult(), op.getInput(), op.getSharding(), wishes, "value");
  });
  for (size_t axis = 0; axis < count; ++axis) {
    AxisPropagation::Options options = commonOptions(axis, costs);
    options.policy = [](Operation *) { return AxisPolicy::Cheapest; };
    options.parts = [this, axis](Operation *) {
      return meshes.getWholeCluster()->getNumParts(axis);
    };
    options.pieces = [&factorization](Value value) {
      return factorization.getPieces(value);
    };
    options.seeds = seeds[axis];
    options.constraints = wishes[axis];
    propagate(std::move(options));
  }
}

void StepLayouts::addCopy(MicroBatchesOp loop, MicroBatchesOp copy) {
  parallelForEach(function.getContext(), axes, [&](const auto &axis) {
    axis->addCopy(*loop, *copy);
    for (auto [variant, body] : llvm::enumerate(copy.getBodies())) {
      int64_t moment =
          llvm::find(copy.getVariants(), variant) - copy.getVariants().begin();
      axis->addCopy(*loop.getBody(moment).getParent(), body);
    }
  });
}

AxisPropagation &StepLayouts::propagate(AxisPropagation::Options options) {
  axes.push_back(
      std::make_unique<AxisPropagation>(function, std::move(options)));
  axes.back()->run();
  return *axes.back();
}

/// The policy of the axis inside a group.
AxisPolicy StepLayouts::policyOf(Operation *op) const {
  StrategyAttr strategy = strategyOf(op);
  if (sharesState(op, /*axis=*/1))
    return AxisPolicy::Cheapest;
  if (isa_and_nonnull<ReplicateAttr>(strategy))
    return AxisPolicy::Batch;
  if (isa_and_nonnull<SplitAttr>(strategy))
    return AxisPolicy::Cheapest;
  return AxisPolicy::Whole;
}

/// Of propagation along an axis of the meshes.
AxisPropagation::Options StepLayouts::commonOptions(unsigned axis,
                                                    AxisCosts &costs) {
  AxisPropagation::Options options;
  options.devices = [this](Operation *op) -> const void * {
    return meshes.meshOf(op);
  };
  auto isApplied = [](Operation *op) {
    TaskGraphOp graph = op ? graphOf(op) : TaskGraphOp();
    return graph && graph.getPhase() == Phase::Apply;
  };
  options.passesPartial = [isApplied](Operation *op, Value value) {
    return !isApplied(op) ||
           isApplied(lookThroughTaskGraph(value).getDefiningOp());
  };
  options.rules = rules;
  options.feeds = feeds;
  options.work = [this, &costs, axis](Operation *op) {
    return costs.work(op, *meshes.meshOf(op), axis);
  };
  options.exchange = [this, &costs, axis](Operation *op, Exchange::Kind kind,
                                          double bytes) {
    return costs.exchange(kind, bytes, *meshes.meshOf(op), axis);
  };
  options.halo = [this, &costs, axis](Operation *op, double partBytes,
                                      double haloBytes) {
    return costs.halo(partBytes, haloBytes, *meshes.meshOf(op), axis);
  };
  options.repeats = [&costs](Operation *op) { return costs.repeats(op); };
  return options;
}

/// The largest piece of a dimension that the program keeps together, and
/// that micro-batches are not cut across.
AxisState StepLayouts::batchState(Value value, int64_t dim,
                                  Factorization &factorization) {
  for (const DimPiece &piece : factorization.getPieces(value)) {
    bool isCut = llvm::any_of(value.getUses(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (!isa<hlo::SliceOp>(user))
        return false;
      const std::optional<OpRule> &rule = rules->of(user);
      if (!rule)
        return true;
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
void StepLayouts::seedBatch(Factorization &factorization) {
  batchSeeds.clear();
  for (BlockArgument argument : function.getArguments())
    if (auto dim = function.getArgAttrOfType<IntegerAttr>(
            argument.getArgNumber(), kBatchDimAttr))
      batchSeeds[argument] = batchState(argument, dim.getInt(), factorization);
  function.walk([&](MicroBatchesOp loop) {
    for (Region &body : loop.getBodies()) {
      auto samples = llvm::make_filter_range(
          llvm::zip(body.getArguments(), loop.getBatchDims()),
          [](auto pair) { return std::get<1>(pair) >= 0; });
      // A single sample is computed by a single device.
      bool isSingle = llvm::any_of(samples, [](auto pair) {
        auto [argument, dim] = pair;
        return cast<ShapedType>(argument.getType()).getDimSize(dim) == 1;
      });
      for (auto [argument, dim] : samples)
        batchSeeds[argument] = isSingle
                                   ? AxisState::single()
                                   : batchState(argument, dim, factorization);
    }
  });
}

/// Everything follows the mini-batch: the layout along the repetitions of
/// groups, and what operations of replicate TaskGraphs do inside one.
AxisPropagation::Options
StepLayouts::batchOptions(Factorization &factorization) {
  AxisPropagation::Options options = commonOptions(/*axis=*/1, costs);
  options.policy = [this](Operation *op) {
    if (sharesState(op, /*axis=*/0))
      return AxisPolicy::Cheapest;
    return policyOf(op) == AxisPolicy::Whole ? AxisPolicy::Whole
                                             : AxisPolicy::Batch;
  };
  options.pieces = [&factorization](Value value) {
    return factorization.getPieces(value);
  };
  options.parts = [this](Operation *op) {
    const Mesh *mesh = meshes.meshOf(op);
    return std::max(mesh->getNumParts(0), mesh->getNumParts(1));
  };
  options.seeds = batchSeeds;
  seedState(options, /*axis=*/0);
  seedGiven(options, /*axis=*/0);
  return options;
}

AxisPropagation::Options StepLayouts::innerOptions(const AxisPropagation &batch,
                                                   Factorization &factorization,
                                                   AxisCosts &costs) {
  AxisPropagation::Options options = commonOptions(/*axis=*/1, costs);
  options.pieces = [&factorization](Value value) {
    return factorization.getPieces(value);
  };
  options.policy = [this](Operation *op) { return policyOf(op); };
  options.parts = [this](Operation *op) {
    return meshes.meshOf(op)->getNumParts(1);
  };
  options.batchChoices = &batch.getChoices();
  options.scatters = true;
  seedState(options, /*axis=*/1);
  seedGiven(options, /*axis=*/1);
  // The mini-batch is stored in shares where a replicate TaskGraph reads it,
  // and whole where only others do.
  for (auto [value, state] : batchSeeds) {
    bool isShared = llvm::any_of(value.getUsers(), [&](Operation *user) {
      return user
          ->walk([&](Operation *op) {
            return policyOf(op) == AxisPolicy::Batch ? WalkResult::interrupt()
                                                     : WalkResult::advance();
          })
          .wasInterrupted();
    });
    options.seeds[value] = isShared ? state : AxisState::replicated();
  }
  return options;
}

/// A remark for each parameter: the way to split it, and what the step's
/// share of computation and communication is with this one and the others.
static void explainSplit(const ParameterGroup &group, unsigned chosen,
                         ArrayRef<double> seconds, bool isComplete) {
  auto describe = [&](unsigned index) {
    const DimPiece &piece = group.pieces[index];
    std::string text = llvm::formatv("along dimension {0} in {1} grains",
                                     piece.dim, piece.extent);
    std::optional<ShardingPattern> pattern =
        group.isSpatial(index) ? getSpatialPattern()
                               : findPattern(group.parameters.front(), piece);
    if (pattern)
      text +=
          llvm::formatv(" ({0}: {1})", pattern->name, pattern->communication);
    if (isComplete)
      llvm::raw_string_ostream(text)
          << ", " << llvm::format("%.4g s", seconds[index]);
    return text;
  };
  std::string text = "split " + describe(chosen);
  for (unsigned index = 0; isComplete && index < group.pieces.size(); ++index)
    if (index != chosen)
      text += "; not " + describe(index);
  if (!isComplete)
    text += "; there are too many parameters to try all ways";
  for (BlockArgument parameter : group.parameters)
    emitRemark(parameter.getLoc())
        << "argument "
        << getWholeArgument(
               cast<func::FuncOp>(parameter.getOwner()->getParentOp()),
               parameter.getArgNumber())
        << " is " << text;
}

AxisPropagation::Options
StepLayouts::seedSplits(AxisPropagation::Options options,
                        ArrayRef<ParameterGroup> groups,
                        ArrayRef<unsigned> pieces) const {
  for (auto [group, piece] : llvm::zip(groups, pieces))
    for (BlockArgument parameter : group.parameters) {
      options.seeds[parameter] = AxisState::split(group.pieces[piece]);
      (group.isSpatial(piece) ? options.gathered : options.parameters)
          .insert(parameter);
    }
  return options;
}

/// Tries at once as many choices as there are threads, each with tables of its
/// own.
std::unique_ptr<AxisPropagation> StepLayouts::chooseParameterSplits(
    ArrayRef<ParameterGroup> groups, const AxisPropagation &batch,
    const Factorization &factorization, size_t most, SplitChoice &splits) {
  struct Trial {
    Factorization factorization;
    AxisCosts costs;
    Trial(const Factorization &factorization, const Cluster &cluster)
        : factorization(factorization), costs(cluster) {}
  };
  MLIRContext *context = function.getContext();
  SmallVector<std::unique_ptr<Trial>> trials(context->getNumThreads());
  std::unique_ptr<AxisPropagation> cheapest;
  SmallVector<unsigned> cheapestPieces;
  auto estimate = [&](ArrayRef<SmallVector<unsigned>> choices,
                      MutableArrayRef<double> seconds) {
    std::vector<std::unique_ptr<AxisPropagation>> tried(choices.size());
    parallelFor(context, 0, choices.size(), [&](size_t i) {
      std::unique_ptr<Trial> &trial = trials[i];
      if (!trial)
        trial = std::make_unique<Trial>(factorization, cluster);
      auto own = std::make_unique<AxisPropagation>(
          function,
          seedSplits(innerOptions(batch, trial->factorization, trial->costs),
                     groups, choices[i]));
      own->run();
      seconds[i] = own->getSeconds();
      // Others are freed here, in parallel.
      if (!cheapest || seconds[i] < cheapest->getSeconds())
        tried[i] = std::move(own);
    });
    for (auto [own, pieces] : llvm::zip_equal(tried, choices))
      if (own && (!cheapest || own->getSeconds() < cheapest->getSeconds())) {
        cheapest = std::move(own);
        cheapestPieces = pieces;
      }
  };
  splits = chooseSplits(groups, estimate, most, trials.size());
  for (auto [group, piece, seconds] :
       llvm::zip_equal(groups, splits.pieces, splits.alternatives))
    explainSplit(group, piece, seconds, splits.isComplete);
  return cheapestPieces == splits.pieces ? std::move(cheapest) : nullptr;
}

} // namespace whale
