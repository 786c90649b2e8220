//===- FitOptions.cpp - Options that let a step need less -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a step as it was read, and what its plan needs. Out: changes of it, with
// what each is expected to save and to take. More micro-batches divide what is
// kept of samples; replicas divide the state; recomputation keeps less of
// samples. What is expected decides only which of them is tried first.
//
//===----------------------------------------------------------------------===//

#include "FitOptions.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Plans.h"

using namespace mlir;

namespace whale {

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

static std::string describe(const Plan::Option::Value &value) {
  if (const auto *flag = std::get_if<bool>(&value))
    return *flag ? "True" : "False";
  if (const auto *number = std::get_if<int64_t>(&value))
    return std::to_string(*number);
  return std::get<std::string>(value);
}

std::string StepChange::describe() const {
  std::vector<std::string> parts;
  for (const Plan::Option &option : options)
    parts.push_back(option.key + " " + whale::describe(option.value));
  if (splits)
    parts.push_back("'split' as the default strategy in place of 'replicate'");
  std::string text;
  for (auto [number, part] : llvm::enumerate(parts)) {
    if (number > 0)
      text += number + 1 == parts.size() ? " and " : ", ";
    text += part;
  }
  return text;
}

void StepChange::apply(ModuleOp module) const {
  setOptions(module, options);
  if (splits)
    module->setAttr(kDefaultStrategyAttr,
                    parseAttribute("#whale.split<>", module.getContext()));
}

//===----------------------------------------------------------------------===//
// Outcomes
//===----------------------------------------------------------------------===//

FitOutcome findOutcome(const PlannedStep &step, const Cluster &cluster) {
  FitOutcome outcome{std::numeric_limits<int64_t>::min(), step.seconds};
  for (auto [device, need] : llvm::enumerate(step.needs))
    outcome.lackBytes =
        std::max(outcome.lackBytes,
                 need.bytes - cluster.kindOf(int64_t(device)).memoryBytes);
  return outcome;
}

int64_t findFullest(ArrayRef<MemoryNeed> needs, const Cluster &cluster) {
  int64_t fullest = 0;
  double most = -1;
  for (auto [device, need] : llvm::enumerate(needs))
    if (double fill = double(need.bytes) /
                      double(cluster.kindOf(int64_t(device)).memoryBytes);
        fill > most) {
      most = fill;
      fullest = int64_t(device);
    }
  return fullest;
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

int64_t countSamples(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main)
    return 0;
  for (BlockArgument argument : main.getArguments())
    if (auto dim = main.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                      kBatchDimAttr))
      return cast<ShapedType>(argument.getType()).getDimSize(dim.getInt());
  return 0;
}

/// What is kept of samples, and gradients.
static int64_t getKeptBytes(const MemoryNeed &need) {
  return std::max<int64_t>(0, need.bytes - need.argumentBytes -
                                  need.resultBytes - need.constantBytes -
                                  need.scratchBytes);
}

FitOptions::FitOptions(ModuleOp input, const Cluster &cluster,
                       const PlannedStep &without, bool kept)
    : cluster(cluster),
      need(without.needs[findFullest(without.needs, cluster)]),
      seconds(without.seconds), kept(kept) {
  addZero(input);
  addMicroBatches(input);
  addRecomputation(input);
  addOffload(input);
}

void FitOptions::addMicroBatches(ModuleOp input) {
  // Statistics of a micro-batch depend on how many there are.
  Config config(input);
  std::optional<int64_t> given = config.getNumMicroBatches();
  if (config.hasOwnStatistics() || (kept && given))
    return;
  int64_t now = given.value_or(1);
  int64_t most = countSamples(input) / int64_t(cluster.devices.size());
  Option option{Config::kMicroBatches, {}};
  FitOption expects;
  for (int64_t count = 2 * now, level = 1; count <= most; count *= 2, ++level) {
    option.values.push_back(count);
    expects.levels.push_back(
        {getKeptBytes(need) - getKeptBytes(need) * now / count,
         0.02 * double(level) * seconds});
  }
  if (option.values.empty() || getKeptBytes(need) == 0)
    return;
  options.push_back(std::move(option));
  expected.push_back(std::move(expects));
}

void FitOptions::addZero(ModuleOp input) {
  ZeroLevel given = Config(input).getZeroLevel();
  auto count = int64_t(cluster.devices.size());
  if (count < 2 || (kept && given != ZeroLevel::None))
    return;
  // Of Adam, two thirds of the state are not parameters.
  int64_t state = need.argumentBytes - need.argumentBytes / count;
  int64_t sums = Config(input).getNumMicroBatches().value_or(1) > 1 ? 1 : 0;
  struct Level {
    ZeroLevel level;
    StringRef name;
    int64_t thirds;
    double seconds;
  };
  Option option{Config::kZeroLevel, {}};
  FitOption expects;
  for (const Level &each : {Level{ZeroLevel::State, "v0", 2, 0.01},
                            {ZeroLevel::Gradients, "v1", 2 + sums, 0.02},
                            {ZeroLevel::Parameters, "v2", 3 + sums, 0.1}}) {
    if (each.level <= given)
      continue;
    option.values.push_back(each.name.str());
    expects.levels.push_back({state * each.thirds / 3, each.seconds * seconds});
  }
  if (option.values.empty())
    return;
  options.push_back(std::move(option));
  expected.push_back(std::move(expects));
}

void FitOptions::addRecomputation(ModuleOp input) {
  if (Config(input).getGradientCheckpoint() != GradientCheckpoint::None ||
      getKeptBytes(need) == 0)
    return;
  options.push_back({Config::kGradientCheckpoint, {std::string("auto")}});
  // A forward is a third of a step; of what it keeps some is needed at once.
  expected.push_back({{{getKeptBytes(need) * 4 / 5, seconds / 4}},
                      /*savesWhatLacks=*/true});
}

/// State in the memory of hosts, where all nodes have any, and no GPUs, which
/// copy nothing from there.
void FitOptions::addOffload(ModuleOp input) {
  OffloadLevel given = Config(input).getOffloadLevel();
  if ((kept && given != OffloadLevel::None) ||
      !llvm::all_of(cluster.nodes,
                    [](const NodeGroup &node) { return bool(node.host); }) ||
      llvm::any_of(cluster.devices, [&](const Device &device) {
        return !cluster.kinds[device.kind].arch.empty();
      }))
    return;
  Option option{Config::kOffloadLevel, {}};
  FitOption expects;
  for (auto [level, name, thirds] :
       {std::tuple(OffloadLevel::State, "state", 2),
        {OffloadLevel::Weights, "weights", 3}}) {
    if (level <= given)
      continue;
    option.values.push_back(std::string(name));
    expects.levels.push_back(
        {need.argumentBytes * thirds / 3, 0.2 * double(thirds) * seconds});
  }
  if (option.values.empty())
    return;
  options.push_back(std::move(option));
  expected.push_back(std::move(expects));
}

StepChange FitOptions::combine(ArrayRef<unsigned> levels) const {
  StepChange change;
  for (auto [option, level] : llvm::zip_equal(options, levels))
    if (level > 0)
      change.options.push_back({option.key.str(), option.values[level - 1]});
  return change;
}

} // namespace whale
