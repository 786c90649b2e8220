//===- MemoryAdvice.cpp - What lets a step fit ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a step that does not fit, its plan, and a way to plan others. Out: a
// sentence with what other plans would need.
//
// Which changes are tried follows from what takes the memory. More
// micro-batches divide what is kept of samples, so as many are tried as would
// do if that were in proportion. 'split' and stages divide what parameters
// take, too. Recomputation keeps less of samples, and hosts have room for state
// of the optimizer. What donation would save is known without another plan. A
// change is named only if the fullest device then needs less. Cost: at most
// four plans.
//
//===----------------------------------------------------------------------===//

#include "MemoryAdvice.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Report/TextTable.h"
#include "whale/Transforms/Attributes.h"

using namespace mlir;

namespace whale {
namespace {

/// What the step's devices would need at most, relative to what they have.
struct Advice {
  std::string name;
  int64_t bytes = 0;
  bool fits = false;
};

class Adviser {
public:
  Adviser(ModuleOp input, const Cluster &cluster, const MemoryNeed &need,
          int64_t memory, int64_t donatable)
      : input(input), cluster(cluster), need(need), memory(memory),
        donatable(donatable) {}

  std::string run(TryChange tryChange);

private:
  std::vector<StepChange> listChanges();
  void tryOut(const StepChange &change, TryChange tryChange,
              std::vector<Advice> &list);
  int64_t mostMicroBatches() const;
  std::optional<StepChange> moreMicroBatches();
  std::optional<StepChange> moreStages();
  std::optional<StepChange> splitInstead();
  std::optional<StepChange> recompute();
  std::optional<StepChange> offload();
  void addDonation(std::vector<Advice> &list) const;
  int64_t fixedBytes() const {
    return need.bytes - std::max<int64_t>(0, keptBytes());
  }
  /// What is kept of samples, about.
  int64_t keptBytes() const {
    return need.bytes - need.argumentBytes - need.resultBytes -
           need.constantBytes - need.scratchBytes;
  }

  ModuleOp input;
  const Cluster &cluster;
  /// Of the device that lacks memory.
  const MemoryNeed &need;
  int64_t memory, donatable;
  /// The largest number that was tried; 0 if none was.
  int64_t microBatches = 0;
};

constexpr size_t mostTries = 4;

} // namespace

/// The samples of the mini-batch; 0 if no argument carries it.
static int64_t countSamples(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main)
    return 0;
  for (BlockArgument argument : main.getArguments())
    if (auto dim = main.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                      kBatchDimAttr))
      return cast<ShapedType>(argument.getType()).getDimSize(dim.getInt());
  return 0;
}

int64_t Adviser::mostMicroBatches() const {
  return countSamples(input) / int64_t(cluster.devices.size());
}

static StepChange useMicroBatches(int64_t count) {
  return StepChange{
      std::to_string(count) + " micro-batches (num_micro_batch)",
      [count](ModuleOp module) { Config::setNumMicroBatches(module, count); }};
}

std::optional<StepChange> Adviser::moreMicroBatches() {
  int64_t now = Config(input).getNumMicroBatches().value_or(1);
  int64_t most = mostMicroBatches();
  int64_t room = memory - fixedBytes();
  if (room <= 0 || keptBytes() <= 0)
    return std::nullopt;
  // A power of two times as many, and a tenth to spare.
  double times = 1.1 * double(keptBytes()) / double(room);
  int64_t count = 2 * now;
  while (double(count) < times * double(now) && count <= most)
    count *= 2;
  if (count > most)
    count /= 2;
  if (count <= now)
    return std::nullopt;
  microBatches = count;
  return useMicroBatches(count);
}

/// The strategy of operations without one; null if there is none.
static StrategyAttr defaultOf(ModuleOp module) {
  return module->getAttrOfType<StrategyAttr>(kDefaultStrategyAttr);
}

std::optional<StepChange> Adviser::splitInstead() {
  StrategyAttr strategy = defaultOf(input);
  if (!isa_and_nonnull<ReplicateAttr>(strategy) || cluster.devices.size() < 2)
    return std::nullopt;
  return StepChange{
      "'split' as the default strategy in place of 'replicate'",
      [](ModuleOp module) {
        module->setAttr(kDefaultStrategyAttr,
                        parseAttribute("#whale.split<>", module.getContext()));
      }};
}

static void setTaskGraphs(ModuleOp module, int64_t count) {
  NamedAttrList config(module->getAttrOfType<DictionaryAttr>(Config::kAttr));
  config.set(Config::kTaskGraphs, Builder(module).getI64IntegerAttr(count));
  module->setAttr(Config::kAttr, config.getDictionary(module.getContext()));
}

std::optional<StepChange> Adviser::moreStages() {
  int64_t now = Config(input).getNumTaskGraphs().value_or(1);
  auto count = int64_t(cluster.devices.size());
  if (count <= now)
    return std::nullopt;
  // Few micro-batches leave stages idle; many cost little.
  int64_t batches = Config(input).getNumMicroBatches().value_or(1);
  if (int64_t wanted = 4 * count;
      batches < wanted && wanted <= countSamples(input))
    batches = wanted;
  return StepChange{std::to_string(count) + " stages (num_task_graph) and " +
                        std::to_string(batches) + " micro-batches",
                    [=](ModuleOp module) {
                      Config::setNumMicroBatches(module, batches);
                      setTaskGraphs(module, count);
                    }};
}

std::optional<StepChange> Adviser::recompute() {
  if (Config(input).getGradientCheckpoint() != GradientCheckpoint::None ||
      keptBytes() <= 0)
    return std::nullopt;
  return StepChange{"recomputation (gradient_checkpoint.type)",
                    &Config::setGradientCheckpoint};
}

static void setOffload(ModuleOp module) {
  Builder builder(module);
  NamedAttrList config(module->getAttrOfType<DictionaryAttr>(Config::kAttr));
  config.set("offload", builder.getDictionaryAttr(builder.getNamedAttr(
                            "level", builder.getStringAttr("state"))));
  module->setAttr(Config::kAttr, config.getDictionary(module.getContext()));
}

/// State in the memory of hosts, where all nodes have any, and no GPUs, which
/// copy nothing from there.
std::optional<StepChange> Adviser::offload() {
  if (Config(input).getOffloadLevel() != OffloadLevel::None ||
      !llvm::all_of(cluster.nodes,
                    [](const NodeGroup &node) { return bool(node.host); }) ||
      llvm::any_of(cluster.devices, [&](const Device &device) {
        return !cluster.kinds[device.kind].arch.empty();
      }))
    return std::nullopt;
  return StepChange{"the optimizer's state in the memory of hosts "
                    "(offload.level)",
                    &setOffload};
}

std::vector<StepChange> Adviser::listChanges() {
  std::vector<StepChange> list;
  for (auto change :
       {&Adviser::moreMicroBatches, &Adviser::recompute, &Adviser::offload,
        &Adviser::splitInstead, &Adviser::moreStages})
    if (std::optional<StepChange> found = (this->*change)())
      list.push_back(std::move(*found));
  return list;
}

/// Some results replace no argument of their type, as a loss: these are not
/// worth a word, nor what is small beside what the device lacks.
void Adviser::addDonation(std::vector<Advice> &list) const {
  int64_t saved = std::min(donatable, need.resultBytes);
  if (saved > (need.bytes - memory) / 20)
    list.push_back({"donate_argnums for the arguments that results replace",
                    need.bytes - saved, need.bytes - saved <= memory});
}

/// Adds what a change comes to, if it helps.
void Adviser::tryOut(const StepChange &change, TryChange tryChange,
                     std::vector<Advice> &list) {
  std::optional<std::vector<MemoryNeed>> tried = tryChange(change);
  if (!tried || tried->size() != cluster.devices.size())
    return;
  // The device that has least room then.
  Advice advice{change.name, 0, true};
  double fullest = 0;
  for (auto [number, other] : llvm::enumerate(*tried)) {
    double fill = double(other.bytes) /
                  double(cluster.kindOf(int64_t(number)).memoryBytes);
    if (fill > fullest) {
      fullest = fill;
      advice.bytes = other.bytes;
    }
  }
  advice.fits = fullest <= 1;
  if (fullest * double(memory) < 0.98 * double(need.bytes))
    list.push_back(std::move(advice));
}

std::string Adviser::run(TryChange tryChange) {
  std::vector<Advice> list;
  addDonation(list);
  std::vector<StepChange> changes = listChanges();
  if (changes.size() > mostTries)
    changes.resize(mostTries);
  for (const StepChange &change : changes)
    tryOut(change, tryChange, list);
  // Not all that was taken for samples' was: more micro-batches may do.
  for (size_t tries = changes.size(); tries < mostTries; ++tries) {
    microBatches *= 2;
    if (microBatches == 0 || microBatches > mostMicroBatches() ||
        llvm::any_of(list, [](const Advice &advice) { return advice.fits; }))
      break;
    tryOut(useMicroBatches(microBatches), tryChange, list);
  }
  llvm::sort(list, [](const Advice &a, const Advice &b) {
    return std::tuple(!a.fits, a.bytes, a.name) <
           std::tuple(!b.fits, b.bytes, b.name);
  });
  if (list.empty())
    return changes.empty()
               ? ""
               : "; no other number of micro-batches, strategy or number of "
                 "stages that was tried needs less";
  std::string text;
  for (const Advice &advice : list)
    text += (text.empty() ? "; about " : ", ") +
            describeBytes(double(advice.bytes)) + " with " + advice.name +
            (advice.fits ? "" : ", which is not enough alone");
  return text;
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

std::string adviseOnMemory(ModuleOp input, const Cluster &cluster,
                           ArrayRef<MemoryNeed> needs, int64_t device,
                           int64_t donatableBytes, TryChange tryChange) {
  return Adviser(input, cluster, needs[device],
                 cluster.kindOf(device).memoryBytes, donatableBytes)
      .run(tryChange);
}

} // namespace whale
