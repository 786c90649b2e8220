//===- Fitter.cpp - Lower a step for what devices have ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module that is not planned yet. Out: the module at the last level, with
// buffers that fit into the memory of each device, or else with some that do
// not, and what is short.
//
// What devices need is known once buffers are planned. Where one lacks memory,
// transfers are started as late as possible; if that is not enough, and the
// step asks for it, backwards compute values of the forward again, as many as
// suffice by what that has saved so far (Planner/SavingSearch.h). If no more
// can be saved, the module is restored from a copy, and lowered once more: with
// other devices for the stages where that is enough, else with corrected
// estimates, by which automatic stages are cut until they are expected to fit.
// Remarks and warnings about a plan that is dropped are forgotten. Cost: at
// most two lowerings, each of which recomputation repeats up to mostSavings
// times; in the second of which what comes before kernels is run at most five
// times, and two copies of the module at a time.
//
//===----------------------------------------------------------------------===//

#include "Fitter.h"

#include "MemoryAdvice.h"
#include "MemoryTable.h"
#include "Reporter.h"
#include "RunLevels.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Planner/SavingSearch.h"
#include "whale/Report/TextTable.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Plans.h"
#include "whale/Transforms/SourceLines.h"
#include <numeric>

using namespace mlir;

namespace whale {

//===----------------------------------------------------------------------===//
// Lowering
//===----------------------------------------------------------------------===//

/// Whether the plan that is to be carried out has it.
static bool saysWhatIsRecomputed(ModuleOp module) {
  std::optional<Plan> plan = getGivenPlan(module);
  return plan && !plan->recomputed.empty();
}

Fitter::Fitter(ModuleOp module, const LevelRunner &levels,
               const format::Libraries &libraries, Reporter &reporter,
               PriceStep price)
    : module(module), levels(levels), reporter(reporter),
      price(std::move(price)),
      cluster(levels.getCluster() ? &*levels.getCluster() : nullptr),
      fit(getMemoryFit(module)),
      scratch(libraries, cluster ? cluster->devices.size() : 1,
              [&levels](int64_t rank) { return levels.getGpuWorkspace(rank); }),
      firstDecision(Config(module).getNumTaskGraphs() ? "annotated" : "placed"),
      isRecomputing(Config(module).getGradientCheckpoint() ==
                        GradientCheckpoint::Auto &&
                    !saysWhatIsRecomputed(module)) {
  getScratchFinder(module) = [this](ModuleOp products, const Cluster &,
                                    int64_t device) {
    return findScratch(products, device);
  };
}

static const Level *findLevel(StringRef name) {
  return llvm::find_if(getLevels(),
                       [&](const Level &level) { return level.name == name; });
}

/// Lowers the module through the levels from `first` to `last`.
LogicalResult Fitter::lower(StringRef first, StringRef last) {
  for (const Level &level :
       llvm::make_range(findLevel(first), findLevel(last) + 1)) {
    if (level.name == firstDecision)
      undecided = save(level.name);
    if (level.name == kPlannedLevel) {
      if (isRecomputing)
        scheduled = save(level.name);
      fit.replaceableSchedule.clear();
      summary.addPlacement(module);
      findStageDevices();
    }
    if (keepsUnordered && level.name == getLevels().back().name)
      unordered = module.clone();
    if (failed(levels.run(module, level, lack)))
      return failure();
    if (level.name == kPlannedLevel) {
      summary.addDecisions(module);
      summary.addCollectives(module);
    }
  }
  // Some of them are parts of others by then.
  if (last == getLevels().back().name)
    summary.addCollectives(module);
  return success();
}

Snapshot Fitter::save(StringRef level) {
  return {level, module.clone(), reporter.getNumHeld()};
}

StringRef Fitter::restore(Snapshot snapshot) {
  module->setAttrs((*snapshot.module)->getAttrDictionary());
  module.getBodyRegion().takeBody((*snapshot.module).getBodyRegion());
  reporter.forget(snapshot.said);
  return snapshot.level;
}

//===----------------------------------------------------------------------===//
// What devices need
//===----------------------------------------------------------------------===//

/// What a device uses for products and convolutions besides buffers, once they
/// are lowered as a program is. What is said of it, and errors, are there
/// again.
int64_t Fitter::findScratch(ModuleOp products, int64_t device) {
  ScopedDiagnosticHandler quiet(products.getContext(),
                                [](Diagnostic &) { return success(); });
  if (failed(levels.lowerProducts(products, device)))
    return 0;
  // What a program without code takes of the processor's libraries is not
  // known.
  bool isForProcessor = levels.isGpu() && !levels.getTarget(device).isGpu();
  return scratch.find(llvm::to_vector(products.getOps<FunctionOpInterface>()),
                      levels.isCpu() || isForProcessor, device);
}

/// Finds what devices need: where one lacks memory, with transfers that start
/// as late as they can.
LogicalResult Fitter::findNeeds() {
  needs = findMemoryNeeds(module, *cluster, levels.isCpu(), scratch);
  delayed.clear();
  std::optional<int64_t> device = findOverfull(needs, *cluster);
  if (!device)
    return success();
  bool hasStarts = module->walk([](WaitOp) { return WalkResult::interrupt(); })
                       .wasInterrupted();
  if (!hasStarts)
    return success();
  delayed = describeLack(needs, *cluster, *device);
  if (failed(levels.delayTransfers(module)))
    return failure();
  needs = findMemoryNeeds(module, *cluster, levels.isCpu(), scratch);
  return success();
}

/// Plans the step as far as is known what it comes to without recomputation,
/// which is decided next.
LogicalResult Fitter::takeKnown(StringRef first) {
  const Level *planned = findLevel(kPlannedLevel);
  if (failed(lower(first, std::prev(planned)->name)))
    return failure();
  scheduled = save(kPlannedLevel);
  needs = known->needs;
  seconds = known->seconds;
  isPriced = true;
  return success();
}

/// What devices are expected to need with the plan that was made last; empty
/// if that isn't known.
std::vector<MemoryNeed> Fitter::getExpectedNeeds() const {
  std::vector<MemoryNeed> expected(fit.shares.bytes.size());
  for (size_t device = 0; device < expected.size(); ++device) {
    expected[device].bytes = fit.shares.bytes[device];
    expected[device].argumentBytes = fit.shares.fixedBytes[device];
    if (!fit.shares.scratchBytes.empty())
      expected[device].scratchBytes = fit.shares.scratchBytes[device];
  }
  return expected;
}

//===----------------------------------------------------------------------===//
// Deciding again
//===----------------------------------------------------------------------===//

/// How often what recomputation is to save is corrected.
constexpr int mostSavings = 8;

/// What a device has too little; negative where it has enough.
int64_t Fitter::findMissing(size_t device) const {
  return needs[device].bytes + spare -
         cluster->kindOf(int64_t(device)).memoryBytes;
}

/// The most that any device lacks; negative where all have enough.
int64_t Fitter::findMostLacking() const {
  int64_t most = std::numeric_limits<int64_t>::min();
  for (size_t device = 0; device < needs.size(); ++device)
    most = std::max(most, findMissing(device));
  return most;
}

/// Lowers the step anew from where recomputation is decided.
LogicalResult Fitter::lowerScheduled() {
  return failure(
      failed(lower(restore(std::move(scheduled)), getLevels().back().name)) ||
      failed(findNeeds()));
}

/// Whether devices that lack memory need less where backwards compute again all
/// that they can. If they don't, the plan at hand is another one than `needs`
/// and `seconds` are of.
FailureOr<bool> Fitter::savesAnything() {
  std::vector<MemoryNeed> before = needs;
  if (failed(findSeconds()))
    return failure();
  lack.assign(needs.size(), 0);
  for (auto [device, bytes] : llvm::enumerate(lack))
    if (findMissing(device) > 0)
      bytes = SavingSearch::mostAsked(needs[device].bytes);
  std::vector<int64_t> asked = lack;
  if (failed(lowerScheduled()))
    return failure();
  for (auto [device, bytes] : llvm::enumerate(asked))
    if (bytes > 0 && needs[device].bytes < before[device].bytes)
      return true;
  needs = std::move(before);
  return false;
}

/// Where devices lack memory, has backwards compute values again until they
/// don't, no more than that takes, or until no more can be saved; of what was
/// tried, the least that fits stays, or else what lacks least.
LogicalResult Fitter::recompute() {
  lack.clear();
  // A run that begins behind the level that decides it computes nothing again.
  if (!scheduled.module || needs.empty() || findMostLacking() <= 0)
    return success();
  std::vector<MemoryNeed> before = needs;
  // A trial that must have memory left over is about what can be saved, mostly
  // in a step that fits: it may be nothing.
  if (isTrial && spare > 0) {
    FailureOr<bool> saves = savesAnything();
    if (failed(saves))
      return failure();
    lack.clear();
    isPriced = !*saves;
    if (isPriced)
      return success();
    needs = before;
  }
  std::vector<SavingSearch> searches;
  for (auto [device, need] : llvm::enumerate(needs))
    searches.emplace_back(need.bytes - findMissing(device), need.bytes);
  // What lacks nothing, and then what asks for least, is better.
  auto rate = [&] {
    return std::pair(std::max<int64_t>(0, findMostLacking()),
                     std::accumulate(lack.begin(), lack.end(), 0.0));
  };
  lack.assign(needs.size(), 0);
  std::vector<int64_t> best = lack, asked = lack;
  std::vector<std::vector<int64_t>> tried{lack};
  auto least = rate();
  for (int savings = 0; savings < mostSavings; ++savings) {
    for (auto [search, bytes] : llvm::zip_equal(searches, asked)) {
      search.next();
      bytes = search.getAsked();
    }
    // Where all have ended, what is best for each may not have been tried for
    // all at once.
    if (llvm::is_contained(tried, asked))
      break;
    tried.push_back(asked);
    lack = asked;
    if (failed(lowerScheduled()))
      return failure();
    for (auto [search, need] : llvm::zip_equal(searches, needs))
      search.tell(need.bytes);
    if (rate() < least) {
      least = rate();
      best = lack;
    }
  }
  if (lack != best) {
    lack = std::move(best);
    if (failed(lowerScheduled()))
      return failure();
  }
  for (auto [need, was] : llvm::zip_equal(needs, before))
    need.savedBytes = std::max<int64_t>(0, was.bytes - need.bytes);
  return success();
}

void Fitter::findStageDevices() {
  stageDevices.clear();
  for (VirtualDeviceOp device : module.getOps<VirtualDeviceOp>()) {
    SmallVector<int64_t> &all = stageDevices.emplace_back();
    for (size_t group = 0; group < device.getNumGroups(); ++group)
      llvm::append_range(all, device.getGroup(group));
  }
}

/// What a device of each stage needs, if the stages' devices have enough memory
/// once those with most of it go to the stages that need most; else nothing, or
/// if they have done so already.
SmallVector<int64_t> Fitter::findStageBytes() const {
  SmallVector<int64_t> bytes, memory;
  if (module->hasAttr(kVirtualDevicesAttr))
    return bytes;
  for (ArrayRef<int64_t> devices : stageDevices) {
    int64_t &most = bytes.emplace_back(0);
    int64_t &least = memory.emplace_back(std::numeric_limits<int64_t>::max());
    for (int64_t device : devices) {
      most = std::max(most, needs[device].bytes);
      least = std::min(least, cluster->kindOf(device).memoryBytes);
    }
  }
  SmallVector<int64_t> sorted = bytes;
  llvm::sort(sorted, std::greater<>());
  llvm::sort(memory, std::greater<>());
  if (sorted == bytes ||
      llvm::any_of(llvm::zip_equal(sorted, memory), [](auto pair) {
        return std::get<0>(pair) > std::get<1>(pair);
      }))
    bytes.clear();
  return bytes;
}

/// Makes ready to decide again what makes devices need too much: with other
/// devices for the stages, where that is enough; else with estimates that are
/// corrected by what devices have turned out to need, and without the schedule,
/// if another one needs less. Returns the level that the module is restored to.
StringRef Fitter::correct() {
  SmallVector<int64_t> stageBytes = findStageBytes();
  MemoryFit next;
  next.isCorrected = true;
  if (!fit.replaceableSchedule.empty())
    next.misfitSchedules = {fit.replaceableSchedule};
  next.stageBytes.assign(stageBytes.begin(), stageBytes.end());
  if (stageBytes.empty()) {
    next.shareScale = findScale(fit.shares, needs);
    correctCut(next, needs);
  }
  fit = std::move(next);
  return restore(
      stageBytes.empty()
          ? std::move(undecided)
          : Snapshot{input.level, input.module->clone(), input.said});
}

/// Plans the restored module with other decisions; false, without an error, if
/// these can't be followed.
bool Fitter::plan(StringRef first) {
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &said) {
    return success(said.getSeverity() == DiagnosticSeverity::Error);
  });
  return succeeded(lower(first, kPlannedLevel));
}

/// Tells the next cut what devices need, or are expected to, with the last one.
void Fitter::correctCut(MemoryFit &next, ArrayRef<MemoryNeed> found) const {
  next.cutScale = findScale(fit.cut, found);
  if (!fit.cutScale.empty())
    for (auto [factor, last] : llvm::zip_equal(next.cutScale, fit.cutScale))
      factor *= last;
  next.cutScratchBytes.clear();
  for (const MemoryNeed &need : found)
    next.cutScratchBytes.push_back(need.scratchBytes);
}

/// Cuts automatic stages again as long as a device is expected to lack memory
/// with them, with what is expected for those that were cut last; of all the
/// ones that lack least stay. The module is, and stays, as far as it is
/// planned.
bool Fitter::cutAgain() {
  // Each runs what comes before kernels, also where none fits in the end.
  constexpr int mostCuts = 4;
  // What passes were told; what they wrote beside it they write anew.
  MemoryFit tried = fit, best;
  bool isBest = true;
  int64_t least = std::numeric_limits<int64_t>::max();
  auto planAgain = [&](const MemoryFit &given) {
    fit = given;
    return plan(restore(std::move(undecided)));
  };
  for (int cuts = 1; !fit.cut.bytes.empty(); ++cuts) {
    std::vector<MemoryNeed> expected = getExpectedNeeds();
    std::optional<int64_t> device = findOverfull(expected, *cluster);
    if (!device)
      return true;
    int64_t lack =
        expected[*device].bytes - cluster->kindOf(*device).memoryBytes;
    isBest = lack < least;
    if (isBest) {
      best = tried;
      least = lack;
    }
    if (cuts == mostCuts)
      break;
    correctCut(tried, expected);
    if (!planAgain(tried)) {
      isBest = false;
      break;
    }
  }
  return isBest || planAgain(best);
}

/// Finds the seconds of the plan at hand.
LogicalResult Fitter::findSeconds() {
  if (isPriced)
    return success();
  FailureOr<double> found = price(module, needs);
  seconds = found.value_or(0);
  return found;
}

/// Notes what is short on a device, of the plan at hand.
LogicalResult Fitter::noteLack(int64_t device) {
  if (failed(findSeconds()))
    return failure();
  if (isTrial)
    return success();
  lacking.text = "memory: " + describeLack(needs, *cluster, device);
  if (int64_t saved = needs[device].savedBytes)
    lacking.text += "; recomputation (gradient_checkpoint.type) saves " +
                    describeBytes(double(saved));
  lacking.device = device;
  lacking.donatableBytes = findDonatableBytes(module, device);
  lacking.expected = fit.shares;
  if (failed(levels.notePeak(module)))
    return failure();
  lacking.table = makeMemoryTable(module, *cluster, needs, device);
  lacking.held = listMemory(module, needs, findFullest(needs, *cluster));
  return success();
}

LoweredStep Fitter::takeReported() {
  LoweredStep step;
  step.isLowered = isWhole;
  step.fitted.planned = getPlanned();
  step.fitted.isFirst = isFirst;
  step.fitted.expected = isWhole ? fit.shares : lacking.expected;
  if (!needs.empty())
    step.fitted.held =
        isWhole ? listMemory(module, needs, findFullest(needs, *cluster))
                : lacking.held;
  step.needs = std::move(needs);
  step.summary = std::move(summary);
  step.unordered = std::move(unordered);
  return step;
}

Location findPlace(ModuleOp module) {
  Location place = module.getLoc();
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!findPosition(op->getLoc()))
      return WalkResult::advance();
    place = op->getLoc();
    return WalkResult::interrupt();
  });
  return place;
}

FitResult Fitter::run(StringRef first) {
  summary.addInput(module);
  input = save(first);
  StringRef last = getLevels().back().name;
  if (known && isRecomputing && cluster) {
    if (failed(takeKnown(first)))
      return FitResult::Failed;
  } else {
    if (failed(lower(first, last)))
      return FitResult::Failed;
    if (!cluster)
      return FitResult::Fits;
    if (failed(findNeeds()))
      return FitResult::Failed;
  }
  if (failed(recompute()))
    return FitResult::Failed;
  std::optional<int64_t> device = findOverfull(needs, *cluster);
  std::string firstLack;
  if (device && failed(noteLack(*device)))
    return FitResult::Failed;
  // What a plan says is not decided again.
  bool isGiven = module->hasAttr(kGivenPlanAttr);
  if (device && undecided.module && cluster->devices.size() > 1 && !isGiven) {
    firstLack = describeLack(needs, *cluster, *device);
    lack.clear();
    isFirst = false;
    isWhole = isPriced = false;
    // Where nothing else can be decided, this lack is what is wrong.
    if (!plan(correct()) || !cutAgain())
      return FitResult::Lacks;
    if (failed(lower(kKernelsLevel, last)) || failed(findNeeds()) ||
        failed(recompute()))
      return FitResult::Failed;
    isWhole = true;
    device = findOverfull(needs, *cluster);
    if (device && failed(noteLack(*device)))
      return FitResult::Failed;
  }
  if (device)
    return FitResult::Lacks;
  if (std::string lack = describeHostLack(needs, *cluster); !lack.empty()) {
    emitError(findPlace(module)) << "memory: " << lack;
    return FitResult::Failed;
  }
  if (isTrial)
    return succeeded(findSeconds()) ? FitResult::Fits : FitResult::Failed;
  if (!firstLack.empty())
    emitRemark(module.getLoc())
        << "memory: decided again, as with what was decided first "
        << firstLack;
  if (!delayed.empty())
    emitRemark(module.getLoc())
        << "memory: nothing is received before it is needed, as else "
        << delayed;
  if (!needs.empty())
    emitRemark(module.getLoc()) << describeNeeds(needs, fit);
  return FitResult::Fits;
}

} // namespace whale
