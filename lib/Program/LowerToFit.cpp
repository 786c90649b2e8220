//===- LowerToFit.cpp - Lower a step so that it fits ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module that is not planned yet. Out: the module at the last level, with
// buffers that fit into the memory of each device, or an error that says what
// is short.
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
// times, and two copies of the module at a time. Where nothing fits, all that
// is done up to four times more, for what the error advises: without code, but
// with the buffers that decide.
//
//===----------------------------------------------------------------------===//

#include "LowerToFit.h"

#include "MemoryAdvice.h"
#include "MemoryTable.h"
#include "PlanSummary.h"
#include "Reporter.h"
#include "RunLevels.h"
#include "ScratchNeeds.h"
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
namespace {

/// A module as it came to some level, and how much had been said by then.
struct Snapshot {
  StringRef level;
  OwningOpRef<ModuleOp> module;
  size_t said = 0;
};

class Fitter {
public:
  Fitter(ModuleOp module, const LevelRunner &levels,
         const format::Libraries &libraries, Reporter &reporter);

  LogicalResult run(StringRef first);
  LoweredStep take() { return {std::move(summary), std::move(needs)}; }

private:
  // Lowering.
  LogicalResult lower(StringRef first, StringRef last);
  Snapshot save(StringRef level);
  StringRef restore(Snapshot snapshot);

  // What devices need.
  LogicalResult findNeeds();
  int64_t findScratch(ModuleOp products, int64_t device);
  std::vector<MemoryNeed> getExpectedNeeds() const;
  void describeError(int64_t device);
  std::optional<std::vector<MemoryNeed>> planWith(const StepChange &change);
  LogicalResult fail();
  Location findPlace();

  // Deciding again.
  LogicalResult recompute();
  int64_t findMostLacking() const;
  LogicalResult lowerScheduled();
  StringRef correct();
  void findStageDevices();
  SmallVector<int64_t> findStageBytes() const;
  void correctCut(MemoryFit &next, ArrayRef<MemoryNeed> found) const;
  bool plan(StringRef first);
  bool cutAgain();

  ModuleOp module;
  const LevelRunner &levels;
  const format::Libraries &libraries;
  Reporter &reporter;
  const Cluster *cluster;
  PlanSummary summary;
  /// What passes expect devices to need, and are told that these do.
  MemoryFit &fit;
  ScratchNeeds scratch;
  /// From where on all is decided again where memory is short, and the module
  /// as it came there: the cut of automatic stages, or else the shares.
  StringRef firstDecision;
  Snapshot undecided;
  bool isRecomputing;
  /// Where recomputation is decided, the module as it came there, and by device
  /// what that is to save.
  Snapshot scheduled;
  std::vector<int64_t> lack;
  /// The module as it came.
  Snapshot input;
  /// The devices of each virtual device, of all its groups.
  std::vector<SmallVector<int64_t>> stageDevices;
  /// By device, of the plan at hand.
  std::vector<MemoryNeed> needs;
  /// Whether this is about an advice, and gives none.
  bool isTrial = false;
  /// What is short in it if transfers start early; empty if nothing is.
  std::string delayed;
  /// What is short in any case, and who holds what where it is.
  std::string error, errorTable;
  /// Of that plan: the device that is short, and what donation would save
  /// there.
  int64_t errorDevice = 0, donatableBytes = 0;
};

//===----------------------------------------------------------------------===//
// Lowering
//===----------------------------------------------------------------------===//

/// Whether the plan that is to be carried out has it.
static bool saysWhatIsRecomputed(ModuleOp module) {
  std::optional<Plan> plan = getGivenPlan(module);
  return plan && !plan->recomputed.empty();
}

Fitter::Fitter(ModuleOp module, const LevelRunner &levels,
               const format::Libraries &libraries, Reporter &reporter)
    : module(module), levels(levels), libraries(libraries), reporter(reporter),
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

/// Makes the module what it was, and returns the level that it came to; what
/// was said about it since then is no longer true.
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
  return scratch.find(llvm::to_vector(products.getOps<FunctionOpInterface>()),
                      levels.isCpu() || !levels.getTarget(device).isGpu(),
                      device);
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

/// The most that any device lacks; negative where all have enough.
int64_t Fitter::findMostLacking() const {
  int64_t most = std::numeric_limits<int64_t>::min();
  for (auto [device, need] : llvm::enumerate(needs))
    most = std::max(most, need.bytes - cluster->kindOf(device).memoryBytes);
  return most;
}

/// Lowers the step anew from where recomputation is decided.
LogicalResult Fitter::lowerScheduled() {
  return failure(
      failed(lower(restore(std::move(scheduled)), getLevels().back().name)) ||
      failed(findNeeds()));
}

/// Where devices lack memory, has backwards compute values again until they
/// don't, no more than that takes, or until no more can be saved; of what was
/// tried, the least that fits stays, or else what lacks least.
LogicalResult Fitter::recompute() {
  lack.clear();
  if (!isRecomputing || needs.empty() || findMostLacking() <= 0)
    return success();
  std::vector<MemoryNeed> before = needs;
  std::vector<SavingSearch> searches;
  for (auto [device, need] : llvm::enumerate(needs))
    searches.emplace_back(cluster->kindOf(device).memoryBytes, need.bytes);
  // What lacks nothing, and then what asks for least, is better.
  auto rate = [&] {
    return std::pair(std::max<int64_t>(0, findMostLacking()),
                     std::accumulate(lack.begin(), lack.end(), 0.0));
  };
  lack.assign(needs.size(), 0);
  std::vector<int64_t> best = lack;
  auto least = rate();
  for (int savings = 0; savings < mostSavings; ++savings) {
    bool isOther = false;
    for (auto [search, asked] : llvm::zip_equal(searches, lack)) {
      isOther |= search.next();
      asked = search.getAsked();
    }
    if (!isOther)
      break;
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

/// Notes what is short on a device, of the plan at hand.
void Fitter::describeError(int64_t device) {
  if (isTrial)
    return;
  error = "memory: " + describeLack(needs, *cluster, device);
  if (int64_t saved = needs[device].savedBytes)
    error += "; recomputation (gradient_checkpoint.type) saves " +
             describeBytes(double(saved));
  errorDevice = device;
  donatableBytes = findDonatableBytes(module, device);
  if (succeeded(levels.notePeak(module)))
    errorTable = makeMemoryTable(module, *cluster, needs, device);
}

/// Where a text does not say where it is, as that of the frontend, the first
/// line of the step.
Location Fitter::findPlace() {
  Location place = module.getLoc();
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!findPosition(op->getLoc()))
      return WalkResult::advance();
    place = op->getLoc();
    return WalkResult::interrupt();
  });
  return place;
}

/// What devices need with a change of the step, which is lowered as it would be
/// by itself: who follows an advice must not be told the same again.
std::optional<std::vector<MemoryNeed>>
Fitter::planWith(const StepChange &change) {
  ScopedDiagnosticHandler quiet(module.getContext(),
                                [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> changed = input.module->clone();
  change.apply(*changed);
  fit = MemoryFit();
  LevelRunner silent = levels.withoutDumps();
  Fitter other(*changed, silent, libraries, reporter);
  other.isTrial = true;
  // What does not fit is known as well.
  (void)other.run(input.level);
  if (other.needs.empty())
    return std::nullopt;
  return std::move(other.needs);
}

LogicalResult Fitter::fail() {
  if (isTrial)
    return failure();
  reporter.attach(std::move(errorTable));
  Location place = findPlace();
  // What comes partitioned has no other plan.
  if (input.level == getLevels().front().name)
    error += adviseOnMemory(
        *input.module, *cluster, needs, errorDevice, donatableBytes,
        [&](const StepChange &change) { return planWith(change); });
  return emitError(place) << error;
}

LogicalResult Fitter::run(StringRef first) {
  summary.addInput(module);
  input = save(first);
  StringRef last = getLevels().back().name;
  if (failed(lower(first, last)))
    return failure();
  if (!cluster)
    return success();
  if (failed(findNeeds()) || failed(recompute()))
    return failure();
  std::optional<int64_t> device = findOverfull(needs, *cluster);
  std::string firstLack;
  if (device)
    describeError(*device);
  // What a plan says is not decided again.
  bool isGiven = module->hasAttr(kGivenPlanAttr);
  if (device && undecided.module && cluster->devices.size() > 1 && !isGiven) {
    firstLack = describeLack(needs, *cluster, *device);
    lack.clear();
    // Where nothing else can be decided, this lack is what is wrong.
    if (!plan(correct()) || !cutAgain())
      return fail();
    if (failed(lower(kKernelsLevel, last)) || failed(findNeeds()) ||
        failed(recompute()))
      return failure();
    device = findOverfull(needs, *cluster);
    if (device)
      describeError(*device);
  }
  if (device)
    return fail();
  if (std::string lack = describeHostLack(needs, *cluster); !lack.empty())
    return isTrial ? failure() : emitError(findPlace()) << "memory: " << lack;
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
  return success();
}

} // namespace

FailureOr<LoweredStep> lowerToFit(ModuleOp module, StringRef first,
                                  const LevelRunner &levels,
                                  const format::Libraries &libraries,
                                  Reporter &reporter) {
  Fitter fitter(module, levels, libraries, reporter);
  LogicalResult result = fitter.run(first);
  getScratchFinder(module) = nullptr;
  if (failed(result))
    return failure();
  return fitter.take();
}

} // namespace whale
