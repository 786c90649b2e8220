//===- StageCut.cpp - Where to cut a step into stages ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/StageCut.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

using namespace whale;

static llvm::Error fail(const llvm::Twine &what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), what);
}

namespace {

/// Sums over the units before each unit.
class Sums {
public:
  explicit Sums(const CutProblem &problem) {
    size_t classes = 0;
    for (const CutUnit &unit : problem.units)
      classes = std::max(classes, unit.seconds.size());
    seconds.assign(classes, {0});
    for (const CutUnit &unit : problem.units) {
      for (size_t c = 0; c < classes; ++c)
        seconds[c].push_back(seconds[c].back() +
                             (c < unit.seconds.size() ? unit.seconds[c] : 0));
      flops.push_back(flops.back() + unit.flops);
      counts.push_back(counts.back() + unit.counts);
      state.push_back(state.back() + double(unit.stateBytes));
      gradient.push_back(gradient.back() + double(unit.gradientBytes));
      activation.push_back(activation.back() + double(unit.activationBytes));
    }
  }

  /// The part of a stage's work on units [begin, end) that its i-th device
  /// does in a second.
  double rate(const CutDevice &device, int64_t begin, int64_t end) const {
    double all =
        seconds[device.speedClass][end] - seconds[device.speedClass][begin];
    return 1 / std::max(all, 1e-30);
  }
  double rate(const CutStage &stage, int64_t begin, int64_t end) const {
    double sum = 0;
    for (const CutDevice &device : stage.devices)
      sum += rate(device, begin, end);
    return sum;
  }

  std::vector<std::vector<double>> seconds;
  std::vector<double> flops = {0}, state = {0}, gradient = {0},
                      activation = {0};
  std::vector<int64_t> counts = {0};
};

/// Bytes between pairs of places to cut at.
class Crossings {
public:
  Crossings(const CutProblem &problem, llvm::ArrayRef<int64_t> cuts)
      : size(cuts.size()), in(size * size), out(size * size) {
    // The piece between two neighbouring cuts that a unit is in.
    std::vector<int64_t> pieceOf(problem.units.size());
    for (size_t p = 0; p + 1 < size; ++p)
      std::fill(pieceOf.begin() + cuts[p], pieceOf.begin() + cuts[p + 1], p);
    for (const CutValue &value : problem.values) {
      llvm::SmallVector<int64_t> users;
      for (int64_t user : value.users)
        if (users.empty() || users.back() != pieceOf[user])
          users.push_back(pieceOf[user]);
      add(value.bytes, pieceOf[value.producer], users);
    }
    // From what one more piece adds to the sums over several.
    for (size_t begin = 0; begin < size; ++begin)
      for (size_t end = begin + 1; end < size; ++end) {
        in[begin * size + end] += in[begin * size + end - 1];
        out[begin * size + end] += out[begin * size + end - 1];
      }
  }

  double bytesIn(size_t begin, size_t end) const {
    return in[begin * size + end];
  }
  double bytesOut(size_t begin, size_t end) const {
    return out[begin * size + end];
  }

private:
  void add(double bytes, int64_t producer, llvm::ArrayRef<int64_t> users) {
    if (users.empty() || users.back() == producer)
      return;
    // A stage that begins after the producer receives it for its first user.
    auto user = users.begin();
    for (int64_t begin = producer + 1; begin <= users.back(); ++begin) {
      while (*user < begin)
        ++user;
      in[begin * size + *user + 1] += bytes;
    }
    // A stage with the producer sends it unless it holds all users too.
    for (int64_t begin = 0; begin <= producer; ++begin) {
      out[begin * size + producer + 1] += bytes;
      out[begin * size + users.back() + 1] -= bytes;
    }
  }

  size_t size;
  std::vector<double> in, out;
};

/// What one stage is worth, the least first.
struct Score {
  double lacks = 0, slowest = 0, squares = 0;

  Score then(const Score &stage) const {
    return {std::max(lacks, stage.lacks), std::max(slowest, stage.slowest),
            squares + stage.squares};
  }
  bool operator<(const Score &other) const {
    return std::tie(lacks, slowest, squares) <
           std::tie(other.lacks, other.slowest, other.squares);
  }
};

class Cutter {
public:
  Cutter(const CutProblem &problem, const Sums &sums,
         llvm::ArrayRef<int64_t> cuts)
      : problem(problem), sums(sums), cuts(cuts), crossings(problem, cuts) {}

  /// The best cuts, by dynamic programming over stages and places; none if no
  /// cut gives every stage a unit that counts and room for its state.
  std::optional<std::vector<size_t>> run() {
    size_t places = cuts.size(), count = problem.stages.size();
    std::vector<std::optional<Score>> before(places);
    std::vector<std::vector<size_t>> from(count,
                                          std::vector<size_t>(places, 0));
    before[0] = Score();
    for (size_t stage = 0; stage < count; ++stage) {
      std::vector<std::optional<Score>> best(places);
      for (size_t end = 1; end < places; ++end)
        for (size_t begin = end; begin-- > 0;) {
          // Longer stages only take longer.
          if (best[end] && best[end]->lacks == 0 &&
              secondsOf(stage, begin, end) > best[end]->slowest)
            break;
          if (!before[begin] || !isStage(stage, begin, end))
            continue;
          Score score = before[begin]->then(scoreOf(stage, begin, end));
          if (best[end] && *best[end] < score)
            continue;
          best[end] = score;
          from[stage][end] = begin;
        }
      before = std::move(best);
    }
    if (!before.back())
      return std::nullopt;
    std::vector<size_t> result(count + 1);
    result[count] = places - 1;
    for (size_t stage = count; stage-- > 0;)
      result[stage] = from[stage][result[stage + 1]];
    return result;
  }

  StageLoad loadOf(size_t stage, size_t begin, size_t end) const {
    StageLoad load;
    load.begin = cuts[begin];
    load.end = cuts[end];
    load.flops = sums.flops[load.end] - sums.flops[load.begin];
    load.bytesIn = crossings.bytesIn(begin, end);
    load.stateBytes =
        std::llround(sums.state[load.end] - sums.state[load.begin]);
    Score score = scoreOf(stage, begin, end);
    load.seconds = score.slowest;
    load.lacksBytes = std::ceil(score.lacks);
    return load;
  }

private:
  /// Of the stage's computation alone.
  double secondsOf(size_t stage, size_t begin, size_t end) const {
    return 1 / sums.rate(problem.stages[stage], cuts[begin], cuts[end]);
  }

  /// Bytes of state that a device of the stage holds.
  double stateOf(size_t stage, const CutDevice &device, int64_t begin,
                 int64_t end, double rate) const {
    double bytes = sums.state[end] - sums.state[begin];
    return problem.stages[stage].sharesState
               ? bytes * sums.rate(device, begin, end) / rate
               : bytes;
  }

  bool isStage(size_t stage, size_t first, size_t last) const {
    int64_t begin = cuts[first], end = cuts[last];
    if (sums.counts[end] == sums.counts[begin])
      return false;
    double rate = sums.rate(problem.stages[stage], begin, end);
    return llvm::all_of(problem.stages[stage].devices,
                        [&](const CutDevice &device) {
                          return stateOf(stage, device, begin, end, rate) <=
                                 double(device.memoryBytes);
                        });
  }

  Score scoreOf(size_t stage, size_t first, size_t last) const {
    const CutStage &devices = problem.stages[stage];
    int64_t begin = cuts[first], end = cuts[last];
    double rate = sums.rate(devices, begin, end);
    Score score;
    score.slowest = 1 / rate;
    auto send = [&](const CutStage &over, double bytes) {
      if (bytes > 0)
        score.slowest += 2 * double(problem.microBatches) * over.latency +
                         bytes * over.secondsPerByte;
    };
    send(devices, crossings.bytesIn(first, last));
    if (stage + 1 < problem.stages.size())
      send(problem.stages[stage + 1], crossings.bytesOut(first, last));
    score.squares = score.slowest * score.slowest;

    // As many micro-batches as 1F1B keeps.
    int64_t later = problem.stages.size() - stage;
    double kept = double(std::min(later, problem.microBatches)) /
                  double(problem.microBatches);
    double activation = sums.activation[end] - sums.activation[begin];
    double gradient = sums.gradient[end] - sums.gradient[begin];
    for (const CutDevice &device : devices.devices) {
      double share = sums.rate(device, begin, end) / rate;
      double needs = stateOf(stage, device, begin, end, rate) +
                     gradient * (devices.sharesState ? share : 1) +
                     activation * kept * share;
      score.lacks = std::max(score.lacks, needs - double(device.memoryBytes));
    }
    return score;
  }

  const CutProblem &problem;
  const Sums &sums;
  llvm::ArrayRef<int64_t> cuts;
  Crossings crossings;
};

/// Bytes over each place between two units.
std::vector<double> bytesOver(const CutProblem &problem) {
  std::vector<double> bytes(problem.units.size() + 1, 0);
  for (const CutValue &value : problem.values)
    if (!value.users.empty()) {
      bytes[value.producer + 1] += value.bytes;
      bytes[value.users.back() + 1] -= value.bytes;
    }
  for (size_t i = 1; i < bytes.size(); ++i)
    bytes[i] += bytes[i - 1];
  return bytes;
}

/// Places worth a look, in order: between each two units that count the one
/// with the fewest bytes over it; where these are too many, the best in each of
/// so many equal parts of the program's time.
std::vector<int64_t> placesToCut(const CutProblem &problem, const Sums &sums) {
  constexpr size_t kPlaces = 256;
  std::vector<double> over = bytesOver(problem);
  std::vector<int64_t> between;
  for (int64_t i = 1; i < int64_t(problem.units.size()); ++i) {
    bool isNew =
        between.empty() || sums.counts[i] != sums.counts[between.back()];
    if (sums.counts[i] == 0 || sums.counts[i] == sums.counts.back())
      continue;
    if (isNew)
      between.push_back(i);
    else if (over[i] < over[between.back()])
      between.back() = i;
  }
  size_t places = std::max(kPlaces, 2 * problem.stages.size());
  std::set<int64_t> chosen = {0, int64_t(problem.units.size())};
  if (between.size() <= places) {
    chosen.insert(between.begin(), between.end());
  } else {
    double total = sums.seconds[0].back();
    for (size_t i = 0, part = 0; i < between.size(); ++part) {
      double limit = total * double(part + 1) / double(places);
      int64_t best = between[i];
      // By time; by number where nothing takes any.
      size_t least = (part + 1) * between.size() / places / 2;
      for (; i < between.size() && (sums.seconds[0][between[i]] <= limit ||
                                    i < least || part + 1 == places);
           ++i)
        if (over[between[i]] < over[best])
          best = between[i];
      chosen.insert(best);
    }
    for (int64_t cut : proportionalCut(problem))
      chosen.insert(cut);
  }
  return {chosen.begin(), chosen.end()};
}

} // namespace

std::vector<int64_t> whale::proportionalCut(const CutProblem &problem) {
  Sums sums(problem);
  int64_t units = problem.units.size(), count = problem.stages.size();
  std::vector<double> capacity = {0};
  for (const CutStage &stage : problem.stages)
    capacity.push_back(capacity.back() + sums.rate(stage, 0, units));
  std::vector<int64_t> cuts = {0};
  for (int64_t stage = 1; stage < count; ++stage) {
    double wanted = sums.flops.back() * capacity[stage] / capacity.back();
    // This stage and those after it need a counted unit each.
    auto allowed = [&](int64_t cut) {
      return sums.counts[cut] > sums.counts[cuts.back()] &&
             sums.counts[units] - sums.counts[cut] >= count - stage;
    };
    std::optional<int64_t> best;
    for (int64_t cut = cuts.back() + 1; cut < units; ++cut)
      if (allowed(cut) && (!best || std::abs(sums.flops[cut] - wanted) <
                                        std::abs(sums.flops[*best] - wanted)))
        best = cut;
    assert(best && "fewer units that count than stages");
    cuts.push_back(*best);
  }
  cuts.push_back(units);
  return cuts;
}

llvm::Expected<std::vector<StageLoad>>
whale::cutStages(const CutProblem &problem) {
  Sums sums(problem);
  int64_t count = problem.stages.size();
  if (count < 1)
    return fail("a step is cut into at least 1 task graph");
  if (sums.counts.back() < count)
    return fail("can't cut " + llvm::Twine(sums.counts.back()) +
                " forward operations with FLOPs into " + llvm::Twine(count) +
                " task graphs");
  std::vector<int64_t> places = placesToCut(problem, sums);
  Cutter cutter(problem, sums, places);
  std::optional<std::vector<size_t>> best = cutter.run();
  if (!best) {
    int64_t memory = 0;
    for (const CutStage &stage : problem.stages)
      for (const CutDevice &device : stage.devices)
        memory = std::max(memory, device.memoryBytes);
    return fail("parameters and optimizer state of " +
                llvm::Twine(int64_t(sums.state.back())) + " bytes don't fit " +
                llvm::Twine(count) +
                " task graphs, however they are cut: no device has more than " +
                llvm::Twine(memory) +
                " bytes; more task graphs, or a default strategy 'split', "
                "need less on each device");
  }
  std::vector<StageLoad> loads;
  for (int64_t stage = 0; stage < count; ++stage)
    loads.push_back(cutter.loadOf(stage, (*best)[stage], (*best)[stage + 1]));
  return loads;
}
