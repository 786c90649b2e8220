//===- FitReport.cpp - What options save and cost -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a step, what its plan needs, and a way to plan it with changes. Out: what
// each change needs. Single options are planned beside one another; of these
// the search for a combination that fits (FitSearch.h) knows the outcomes.
//
//===----------------------------------------------------------------------===//

#include "FitReport.h"

#include "whale/Dialect/Whale/IR/Config.h"

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

using namespace mlir;

namespace whale {
namespace {

/// Besides single options, how many combinations are tried for a step that does
/// not fit.
constexpr size_t mostCombinations = 5;
/// Of levels of one option the first ones are planned.
constexpr unsigned mostLevels = 2;
/// Each plan takes memory.
constexpr unsigned mostThreads = 4;

/// What is planned: a change, and what devices are to have left over.
struct Wish {
  StepChange change;
  int64_t spareBytes = 0;
  /// Whether results are rounded otherwise.
  bool rounds = false;
  /// The wish that has the same plan.
  std::optional<size_t> sameAs = std::nullopt;
};

class FitPricer {
public:
  FitPricer(ModuleOp input, const Cluster &cluster, const FittedStep &step,
            const PlanApart &plan, llvm::function_ref<void(const Json &)> say)
      : input(input), cluster(cluster), step(step), plan(plan), say(say),
        options(input, cluster, step.planned, /*kept=*/false),
        fits(findOutcome(step.planned, cluster).fits()) {}

  void run();

private:
  void sayPlan(const Wish &wish, const PlannedStep &planned);
  void addSingles();
  void addOthers();
  void planAll();
  void findCombination();
  void addCombination();

  ModuleOp input;
  const Cluster &cluster;
  const FittedStep &step;
  const PlanApart &plan;
  llvm::function_ref<void(const Json &)> say;
  FitOptions options;
  bool fits;
  std::vector<Wish> wishes;
  /// Of combinations of `options`, the wish that each is.
  std::map<FitCombination, size_t> numbers;
  /// By wish.
  std::vector<PlannedStep> planned;
};

} // namespace

//===----------------------------------------------------------------------===//
// What is said
//===----------------------------------------------------------------------===//

static Json describeNeeds(const PlannedStep &planned, const Cluster &cluster) {
  int64_t device = findFullest(planned.needs, cluster);
  const DeviceKind &kind = cluster.kindOf(device);
  Json ranks = Json::array();
  for (auto [other, need] : llvm::enumerate(planned.needs))
    if (need.bytes == planned.needs[device].bytes &&
        cluster.devices[other].kind == cluster.devices[device].kind)
      ranks.push_back(int64_t(other));
  return {{"fits", findOutcome(planned, cluster).fits()},
          {"ranks", std::move(ranks)},
          {"kind", kind.name},
          {"memory_bytes", kind.memoryBytes},
          {"peak_memory_bytes", planned.needs[device].bytes},
          {"step_time_s", planned.seconds}};
}

Json describeFit(ModuleOp input, const Cluster &cluster,
                 const FittedStep &step) {
  Json json = describeNeeds(step.planned, cluster);
  Json held = Json::array();
  for (const MemoryRow &row : step.held)
    held.push_back({{"what", row.what},
                    {"bytes", row.bytes},
                    {"values", std::max<int64_t>(1, row.values)}});
  json["held"] = std::move(held);
  if (int64_t samples = countSamples(input)) {
    json["samples"] = samples;
    if (std::optional<int64_t> count = Config(input).getNumMicroBatches())
      json["micro_batches"] = *count;
    if (int64_t most = estimateLargestBatch(step, cluster))
      json["largest_batch"] = most;
  }
  return json;
}

void FitPricer::sayPlan(const Wish &wish, const PlannedStep &planned) {
  Json settings = Json::object();
  for (const Plan::Option &option : wish.change.options)
    settings[option.key] = toJson(option.value);
  Json json = {{"options", std::move(settings)}};
  if (wish.rounds)
    json["rounds"] = true;
  if (planned.needs.size() == step.planned.needs.size())
    json.update(describeNeeds(planned, cluster));
  else
    json["error"] = planned.error.empty() ? "has no plan" : planned.error;
  say(json);
}

//===----------------------------------------------------------------------===//
// What is planned
//===----------------------------------------------------------------------===//

/// Recomputation saves what is lacking. Where nothing is, it is priced by half
/// of what could be saved.
static int64_t findSpare(const PlannedStep &planned, const Cluster &cluster,
                         const FitOption &option) {
  int64_t device = findFullest(planned.needs, cluster);
  int64_t room =
      cluster.kindOf(device).memoryBytes - planned.needs[device].bytes;
  return room + option.levels.front().savedBytes / 2;
}

void FitPricer::addSingles() {
  ArrayRef<FitOption> expected = options.getExpected();
  for (auto [number, option] : llvm::enumerate(expected)) {
    unsigned count = unsigned(option.levels.size());
    for (unsigned level = 1; level <= count; ++level) {
      // Of three levels of ZeRO, each is another one.
      if (count > 3 && level > mostLevels)
        break;
      FitCombination levels(expected.size(), 0);
      levels[number] = level;
      numbers[levels] = wishes.size();
      int64_t spare = option.savesWhatLacks && fits
                          ? findSpare(step.planned, cluster, option)
                          : 0;
      wishes.push_back({options.combine(levels), spare});
    }
  }
  // Without micro-batches there are no sums of gradients to share out.
  if (Config(input).getNumMicroBatches().value_or(1) > 1)
    return;
  auto isZero = [](const Wish &wish, StringRef level) {
    const Plan::Option &only = wish.change.options.front();
    return only.key == Config::kZeroLevel &&
           only.value == Plan::Option::Value(level.str());
  };
  for (Wish &wish : wishes)
    if (auto state = llvm::find_if(
            wishes, [&](const Wish &other) { return isZero(other, "v0"); });
        state != wishes.end() && isZero(wish, "v1"))
      wish.sameAs = state - wishes.begin();
}

/// Options that say how else a step is computed, exchanged and updated.
void FitPricer::addOthers() {
  Config config(input);
  auto add = [&](StringRef key, Plan::Option::Value value, bool rounds) {
    if (!config.isGiven(key))
      wishes.push_back({{{{key.str(), std::move(value)}}, false}, 0, rounds});
  };
  add(Config::kApplyGroups, int64_t(4), false);
  if (cluster.devices.size() > 1) {
    add(Config::kBucketBytes, int64_t(0), false);
    if (!config.isGiven(Config::kF16Wire))
      add(Config::kBF16Wire, true, true);
  }
  add(Config::kAmpLevel, std::string("bf16"), true);
}

/// Plans all wishes, several at a time, and says of each what it has come to,
/// in their order.
void FitPricer::planAll() {
  planned.resize(wishes.size());
  std::vector<bool> isDone(wishes.size(), false);
  // Several options take longest: they are not to be what all wait for.
  std::vector<size_t> order(wishes.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return wishes[a].change.options.size() > wishes[b].change.options.size();
  });
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::condition_variable done;
  auto work = [&] {
    for (size_t place; (place = next++) < wishes.size();) {
      size_t number = order[place];
      PlannedStep found;
      if (!wishes[number].sameAs)
        found = plan(wishes[number].change, wishes[number].spareBytes);
      std::lock_guard<std::mutex> lock(mutex);
      planned[number] = std::move(found);
      isDone[number] = true;
      done.notify_all();
    }
  };
  std::vector<std::thread> threads;
  unsigned count =
      std::clamp(std::thread::hardware_concurrency(), 1u, mostThreads);
  for (unsigned i = 0; i < count && i < wishes.size(); ++i)
    threads.emplace_back(work);
  for (size_t number = 0; number < wishes.size(); ++number) {
    std::unique_lock<std::mutex> lock(mutex);
    done.wait(lock, [&] { return isDone[number]; });
    lock.unlock();
    if (std::optional<size_t> other = wishes[number].sameAs)
      planned[number] = planned[*other];
    sayPlan(wishes[number], planned[number]);
  }
  for (std::thread &thread : threads)
    thread.join();
}

/// Looks for a combination that lets the step fit in the least time.
void FitPricer::findCombination() {
  size_t most = wishes.size() + mostCombinations;
  size_t tries = 0;
  searchFit(options.getExpected(), findOutcome(step.planned, cluster), most,
            [&](const FitCombination &levels) -> std::optional<FitOutcome> {
              auto [it, isNew] = numbers.try_emplace(levels, wishes.size());
              if (isNew) {
                if (++tries > mostCombinations)
                  return std::nullopt;
                wishes.push_back({options.combine(levels)});
                planned.push_back(plan(wishes.back().change, 0));
                sayPlan(wishes.back(), planned.back());
              }
              const PlannedStep &found = planned[it->second];
              if (!found.hasPlan())
                return std::nullopt;
              return findOutcome(found, cluster);
            });
}

/// Of a step that fits, what all options save together.
void FitPricer::addCombination() {
  ArrayRef<FitOption> expected = options.getExpected();
  if (expected.size() < 2)
    return;
  Wish all;
  FitCombination levels(expected.size(), 0);
  for (auto [number, option] : llvm::enumerate(expected)) {
    unsigned level = unsigned(option.levels.size());
    levels[number] = level > 3 ? mostLevels : level;
    if (option.savesWhatLacks)
      all.spareBytes = findSpare(step.planned, cluster, option);
  }
  all.change = options.combine(levels);
  wishes.push_back(std::move(all));
}

void FitPricer::run() {
  addSingles();
  addOthers();
  if (fits)
    addCombination();
  planAll();
  if (!fits)
    findCombination();
}

void priceOptions(ModuleOp input, const Cluster &cluster,
                  const FittedStep &step, const PlanApart &plan,
                  llvm::function_ref<void(const Json &)> say) {
  FitPricer(input, cluster, step, plan, say).run();
}

//===----------------------------------------------------------------------===//
// The largest batch
//===----------------------------------------------------------------------===//

/// How many times as many samples as it has a device has memory for.
static double findTimes(ArrayRef<MemoryFit::Estimate::Line> lines,
                        double memory, double scale) {
  double most = std::numeric_limits<double>::infinity();
  for (const MemoryFit::Estimate::Line &line : lines) {
    double room = memory / scale - line.fixed;
    if (line.bytes > 0)
      most = std::min(most, room / line.bytes);
    else if (room < 0)
      return 0;
  }
  return std::max(most, 0.0);
}

/// How many samples the devices of a group have memory for.
static double findRoom(const MemoryFit::Estimate::Group &group,
                       ArrayRef<double> times) {
  double all = 0, taken = 0;
  double least = std::numeric_limits<double>::infinity();
  for (auto [device, samples] : llvm::zip_equal(group.devices, group.samples)) {
    taken += double(samples);
    all += double(samples) * times[device];
    least = std::min(least, times[device]);
  }
  return group.isTogether ? taken * least : all;
}

int64_t estimateLargestBatch(const FittedStep &step, const Cluster &cluster) {
  const MemoryFit::Estimate &expected = step.expected;
  if (expected.bySamples.size() != step.planned.needs.size() ||
      expected.meshes.empty())
    return 0;
  std::vector<double> times;
  for (auto [device, lines] : llvm::enumerate(expected.bySamples)) {
    // What buffers have turned out to need, for what was expected.
    double scale = double(step.planned.needs[device].bytes) /
                   std::max(1.0, double(expected.bytes[device]));
    times.push_back(findTimes(
        lines, double(cluster.kindOf(int64_t(device)).memoryBytes), scale));
  }
  size_t groups = expected.meshes.front().size();
  bool arePipelines = llvm::all_of(
      expected.meshes, [&](const auto &mesh) { return mesh.size() == groups; });
  double most = std::numeric_limits<double>::infinity();
  std::vector<double> byGroup(groups, most);
  for (const auto &mesh : expected.meshes) {
    double all = 0;
    for (auto [number, group] : llvm::enumerate(mesh)) {
      double room = findRoom(group, times);
      all += room;
      if (arePipelines)
        byGroup[number] = std::min(byGroup[number], room);
    }
    // A mesh that takes no samples says nothing.
    if (all > 0)
      most = std::min(most, all);
  }
  if (arePipelines)
    most = std::min(most, std::accumulate(byGroup.begin(), byGroup.end(), 0.0));
  return std::isfinite(most) && most < 1e12 ? int64_t(most) : 0;
}

} // namespace whale
