//===- MemoryAdvice.cpp - What lets a step fit ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a step that does not fit, its plan, and a way to plan others. Out: a
// sentence with what other plans would need, or options that let the step fit.
//
// Combinations of options are tried as searchFit (FitSearch.h) says. Where none
// suffices, 'split' and stages, which divide what parameters take, are tried
// too. What donation would save is known without another plan. A change is
// named only if the fullest device then needs less. Cost: plans, of which the
// constants below are the most.
//
//===----------------------------------------------------------------------===//

#include "MemoryAdvice.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Report/TextTable.h"
#include "whale/Transforms/Attributes.h"

#include "llvm/Support/Format.h"

using namespace mlir;

namespace whale {
namespace {

/// Who gives an error another ear would rather have it soon.
constexpr size_t mostTriesOfAdvice = 8;
/// Who asks for a choice wants the best.
constexpr size_t mostTriesOfChoice = 12;

/// What the step's devices would need at most, relative to what they have.
struct Advice {
  std::string name;
  int64_t bytes = 0;
  bool fits = false;
  /// Of a step more than without it.
  double seconds = 0;
};

/// Plans a step with combinations of options, and remembers what each needs.
class FitTrials {
public:
  FitTrials(ModuleOp input, const Cluster &cluster, const PlannedStep &without,
            bool kept, PlanChange plan)
      : options(input, cluster, without, kept), cluster(cluster),
        without(without), plan(plan) {}

  void run(size_t mostTries);
  /// The best, if it is no worse than without any option.
  std::optional<FitCombination> getBest() const;
  bool hasTried() const { return !steps.empty(); }
  StepChange combine(const FitCombination &levels) const {
    return options.combine(levels);
  }
  const PlannedStep &getStep(const FitCombination &levels) const {
    return steps.find(levels)->second;
  }

private:
  FitOptions options;
  const Cluster &cluster;
  const PlannedStep &without;
  PlanChange plan;
  std::map<FitCombination, PlannedStep> steps;
  std::vector<FitTrial> trials;
};

} // namespace

void FitTrials::run(size_t mostTries) {
  trials =
      searchFit(options.getExpected(), findOutcome(without, cluster), mostTries,
                [&](const FitCombination &levels) -> std::optional<FitOutcome> {
                  PlannedStep &step = steps[levels] = plan(combine(levels), 0);
                  if (!step.hasPlan())
                    return std::nullopt;
                  return findOutcome(step, cluster);
                });
}

std::optional<FitCombination> FitTrials::getBest() const {
  const FitTrial *best = findBest(trials);
  if (best == &trials.front())
    return std::nullopt;
  return best->levels;
}

/// Of a plan, beside the one without a change.
static Advice describe(const StepChange &change, const PlannedStep &step,
                       const PlannedStep &without, const Cluster &cluster) {
  const MemoryNeed &fullest = step.needs[findFullest(step.needs, cluster)];
  return {change.describe(), fullest.bytes, findOutcome(step, cluster).fits(),
          step.seconds - without.seconds};
}

/// ", for 12 % more time a step"; a step that takes no longer has no price.
static std::string describePrice(double more, double seconds) {
  double percent = seconds > 0 ? 100 * more / seconds : 0;
  if (percent < 0.05)
    return "";
  std::string text;
  llvm::raw_string_ostream(text)
      << ", for " << llvm::format(percent < 99.5 ? "%.2g" : "%.0f", percent)
      << " % more time a step";
  return text;
}

/// The strategy of operations without one; null if there is none.
static StrategyAttr defaultOf(ModuleOp module) {
  return module->getAttrOfType<StrategyAttr>(kDefaultStrategyAttr);
}

/// 'split' for what has no strategy of its own.
static std::optional<StepChange> splitInstead(ModuleOp input,
                                              const Cluster &cluster) {
  if (!isa_and_nonnull<ReplicateAttr>(defaultOf(input)) ||
      cluster.devices.size() < 2)
    return std::nullopt;
  return StepChange{{}, /*splits=*/true};
}

/// A stage for each device.
static std::optional<StepChange> useStages(ModuleOp input,
                                           const Cluster &cluster) {
  Config config(input);
  auto count = int64_t(cluster.devices.size());
  if (count <= config.getNumTaskGraphs().value_or(1))
    return std::nullopt;
  StepChange change{{{Config::kTaskGraphs.str(), count}}};
  // Few micro-batches leave stages idle; many cost little.
  if (int64_t wanted = 4 * count;
      config.getNumMicroBatches().value_or(1) < wanted &&
      wanted <= countSamples(input))
    change.options.push_back({Config::kMicroBatches.str(), wanted});
  return change;
}

static std::string describeAll(std::vector<Advice> list, double seconds) {
  llvm::sort(list, [](const Advice &a, const Advice &b) {
    return std::tuple(!a.fits, a.fits ? a.seconds : 0, a.bytes, a.name) <
           std::tuple(!b.fits, b.fits ? b.seconds : 0, b.bytes, b.name);
  });
  std::string text;
  for (const Advice &advice : list)
    text += (text.empty() ? "; about " : ", ") +
            describeBytes(double(advice.bytes)) + " with " + advice.name +
            (advice.fits ? describePrice(advice.seconds, seconds)
                         : ", which is not enough alone");
  return text;
}

std::string adviseOnMemory(ModuleOp input, const Cluster &cluster,
                           const PlannedStep &without, int64_t device,
                           int64_t donatableBytes, PlanChange plan) {
  std::vector<Advice> list;
  const MemoryNeed &need = without.needs[device];
  int64_t memory = cluster.kindOf(device).memoryBytes;
  // Some results replace no argument of their type, as a loss: these are not
  // worth a word, nor what is small beside what the device lacks.
  if (int64_t saved = std::min(donatableBytes, need.resultBytes);
      saved > (need.bytes - memory) / 20)
    list.push_back({"donate_argnums for the arguments that results replace",
                    need.bytes - saved, need.bytes - saved <= memory});
  double fill = double(need.bytes) / double(memory);
  bool isTried = false;
  auto add = [&](const StepChange &change, const PlannedStep &step) {
    isTried = true;
    if (!step.hasPlan())
      return;
    Advice advice = describe(change, step, without, cluster);
    int64_t fullest = findFullest(step.needs, cluster);
    if (double(advice.bytes) <
        0.98 * fill * double(cluster.kindOf(fullest).memoryBytes))
      list.push_back(std::move(advice));
  };
  FitTrials trials(input, cluster, without, /*kept=*/false, plan);
  trials.run(mostTriesOfAdvice);
  isTried = trials.hasTried();
  if (std::optional<FitCombination> best = trials.getBest())
    add(trials.combine(*best), trials.getStep(*best));
  bool fits = llvm::any_of(list, [](const Advice &each) { return each.fits; });
  for (const std::optional<StepChange> &change :
       {splitInstead(input, cluster), useStages(input, cluster)})
    if (change && !fits)
      add(*change, plan(*change, 0));
  if (!list.empty())
    return describeAll(std::move(list), without.seconds);
  return isTried ? "; no other number of micro-batches, strategy or number of "
                   "stages that was tried needs less"
                 : "";
}

ChosenOptions chooseOptions(ModuleOp input, const Cluster &cluster,
                            const PlannedStep &without, PlanChange plan) {
  FitTrials trials(input, cluster, without, /*kept=*/true, plan);
  trials.run(mostTriesOfChoice);
  std::optional<FitCombination> best = trials.getBest();
  if (!best)
    return {std::nullopt, "fit: there are no options left that would help"};
  StepChange change = trials.combine(*best);
  const PlannedStep &step = trials.getStep(*best);
  Advice advice = describe(change, step, without, cluster);
  if (advice.fits)
    return {change, change.describe() + ": the fullest device needs " +
                        describeBytes(double(advice.bytes)) +
                        describePrice(advice.seconds, without.seconds)};
  std::optional<int64_t> device = findOverfull(step.needs, cluster);
  return {std::nullopt, "fit: with the best of all options, " + advice.name +
                            ", " + describeLack(step.needs, cluster, *device)};
}

int64_t findDonatableBytes(ModuleOp lowered, int64_t device) {
  int64_t bytes = 0;
  for (ScheduleOp schedule : getRankClasses(lowered)) {
    if (!llvm::is_contained(schedule.getRanks(), device))
      continue;
    SmallVector<Type> free;
    for (BlockArgument argument : schedule.getArguments())
      if (!isDonated(schedule, argument.getArgNumber()))
        free.push_back(argument.getType());
    for (auto [number, type] : llvm::enumerate(schedule.getResultTypes())) {
      if (schedule.getResultAttr(number, kAliasAttr))
        continue;
      auto *found = llvm::find(free, type);
      if (found == free.end())
        continue;
      free.erase(found);
      bytes += getTensorBytes(type);
    }
  }
  return bytes;
}

} // namespace whale
