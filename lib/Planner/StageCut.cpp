//===- StageCut.cpp - Cutting a step into stages --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the cut that StageCut.h describes. If no stages share devices, a
// dynamic program finds the best one. If stages share devices, a device's time
// and memory are sums over stages that need not be neighbours. The dynamic
// program then assumes that each stage has its part of a device, and boundaries
// are moved as long as that improves the sums. Cost: stages times the square of
// the positions, of which there are at most some hundreds.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/StageCut.h"
#include "Fail.h"
#include "StageCutLoads.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

using namespace whale;

namespace {

using Cuts = std::vector<int64_t>;

/// Positions that are searched at a time, unless stages need more: the dynamic
/// program looks at all pairs of them for each stage, about 32768, so that its
/// time grows with their square. With 256 parts of about equal time, the first
/// cut is right to about 0.4% of the program's time; the positions around it
/// are searched afterwards. With fewer it would be coarser, and fewer positions
/// around each boundary would be looked at.
constexpr size_t kPositions = 256;

/// The score of a stage in the dynamic program: lower is better, compared
/// lexicographically.
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

/// Finds cuts at given positions of a program.
class Cutter {
public:
  Cutter(const CutProblem &problem, const CutLoads &loads,
         llvm::ArrayRef<int64_t> positions)
      : problem(problem), loads(loads), positions(positions),
        crossings(problem, positions) {}

  std::optional<Cuts> findBest();
  /// Moves boundaries of a cut as long as it improves. All of them must be
  /// among the positions.
  Cuts improve(llvm::ArrayRef<int64_t> cuts);
  std::vector<StageLoad> loadsOf(llvm::ArrayRef<int64_t> cuts);

private:
  using Indices = std::vector<size_t>;

  Indices indicesOf(llvm::ArrayRef<int64_t> cuts) const {
    Indices indices;
    for (int64_t cut : cuts)
      indices.push_back(llvm::lower_bound(positions, cut) - positions.begin());
    return indices;
  }
  Cuts cutsOf(const Indices &indices) const {
    Cuts cuts;
    for (size_t index : indices)
      cuts.push_back(positions[index]);
    return cuts;
  }
  bool counts(size_t first, size_t last) const {
    return loads.isEnough(positions[first], positions[last], problem.leastShare,
                          problem.stages.size());
  }
  StagePart partOf(size_t stage, size_t first, size_t last) const {
    return loads.partOf(stage, positions[first], positions[last],
                        crossings.bytesIn(first, last),
                        crossings.bytesOut(first, last));
  }
  std::vector<StagePart> partsOf(const Indices &cuts) const {
    std::vector<StagePart> parts;
    for (size_t stage = 0; stage + 1 < cuts.size(); ++stage)
      parts.push_back(partOf(stage, cuts[stage], cuts[stage + 1]));
    return parts;
  }
  std::optional<Score> aloneOf(size_t stage, size_t first, size_t last) const;
  bool tryMove(Indices &cuts, size_t first, size_t last, int64_t by);

  const CutProblem &problem;
  const CutLoads &loads;
  llvm::ArrayRef<int64_t> positions;
  Crossings crossings;
  /// The stages of the cut that is being improved.
  std::vector<StagePart> parts;
  CutScore score;
};

} // namespace

/// Returns the score of a stage that has its part of the devices that it
/// shares; nullopt if its state doesn't fit.
std::optional<Score> Cutter::aloneOf(size_t stage, size_t first,
                                     size_t last) const {
  StagePart part = partOf(stage, first, last);
  Score score;
  score.slowest = part.seconds * loads.sharersOf(stage);
  score.squares = score.slowest * score.slowest;
  for (auto [index, bytes] :
       llvm::zip_equal(loads.kindsOf(stage), part.bytes)) {
    const CutLoads::Kind &kind = loads.getKind(index);
    double memory = double(kind.device.memoryBytes);
    if (bytes.state > memory)
      return std::nullopt;
    score.lacks = std::max(score.lacks,
                           bytes.state + bytes.working - memory / kind.stages);
  }
  return score;
}

/// Finds the best cut by dynamic programming over stages and positions; nullopt
/// if no cut gives every stage a unit that counts and memory for its state.
std::optional<Cuts> Cutter::findBest() {
  size_t count = problem.stages.size();
  std::vector<std::optional<Score>> before(positions.size());
  std::vector<Indices> from(count, Indices(positions.size(), 0));
  before[0] = Score();
  for (size_t stage = 0; stage < count; ++stage) {
    std::vector<std::optional<Score>> best(positions.size());
    double sharers = loads.sharersOf(stage);
    for (size_t end = 1; end < positions.size(); ++end)
      for (size_t begin = end; begin-- > 0;) {
        // A longer stage only takes longer.
        if (best[end] && best[end]->lacks == 0 &&
            sharers * loads.computeSeconds(stage, positions[begin],
                                           positions[end]) >
                best[end]->slowest)
          break;
        if (!before[begin] || !counts(begin, end))
          continue;
        std::optional<Score> alone = aloneOf(stage, begin, end);
        if (!alone)
          continue;
        Score score = before[begin]->then(*alone);
        if (best[end] && *best[end] < score)
          continue;
        best[end] = score;
        from[stage][end] = begin;
      }
    before = std::move(best);
  }
  if (!before.back())
    return std::nullopt;
  Indices result(count + 1);
  result[count] = positions.size() - 1;
  for (size_t stage = count; stage-- > 0;)
    result[stage] = from[stage][result[stage + 1]];
  return cutsOf(result);
}

/// Moves the boundaries from `first` to `last` by `by` positions, if that
/// improves the cut.
bool Cutter::tryMove(Indices &cuts, size_t first, size_t last, int64_t by) {
  auto moved = [&](size_t boundary) {
    bool isMoved = boundary >= first && boundary <= last;
    return int64_t(cuts[boundary]) + (isMoved ? by : 0);
  };
  for (size_t stage = first - 1; stage <= last; ++stage)
    if (moved(stage + 1) >= int64_t(positions.size()) ||
        moved(stage) >= moved(stage + 1) ||
        !counts(moved(stage), moved(stage + 1)))
      return false;
  llvm::SmallVector<StagePart> others;
  for (size_t stage = first - 1; stage <= last; ++stage)
    others.push_back(partOf(stage, moved(stage), moved(stage + 1)));
  auto swap = [&] {
    for (auto [offset, other] : llvm::enumerate(others))
      std::swap(parts[first - 1 + offset], other);
  };
  swap();
  CutScore now = loads.scoreOf(parts);
  if (!now.isLessThan(score)) {
    swap();
    return false;
  }
  score = now;
  for (size_t boundary = first; boundary <= last; ++boundary)
    cuts[boundary] += by;
  return true;
}

Cuts Cutter::improve(llvm::ArrayRef<int64_t> start) {
  Indices cuts = indicesOf(start);
  parts = partsOf(cuts);
  score = loads.scoreOf(parts);
  size_t boundaries = cuts.size() - 2;
  // Moving several boundaries together moves load between stages that aren't
  // neighbours. This bounds the runs of boundaries that are tried in a round,
  // as a try takes time linear in the stages. Up to 32 boundaries it lets all
  // runs be tried, since 32 * 32 = 1024; of more, those of a limited length.
  constexpr size_t kMoves = 1024;
  size_t most =
      loads.hasSharedDevices() ? kMoves / std::max<size_t>(boundaries, 1) : 0;
  for (bool isBetter = true; isBetter;) {
    isBetter = false;
    for (size_t first = 1; first <= boundaries; ++first)
      for (size_t last = first; last <= std::min(first + most, boundaries);
           ++last)
        for (int64_t by = positions.size() / 2; by > 0; by /= 2)
          isBetter |=
              tryMove(cuts, first, last, by) || tryMove(cuts, first, last, -by);
  }
  return cutsOf(cuts);
}

std::vector<StageLoad> Cutter::loadsOf(llvm::ArrayRef<int64_t> cuts) {
  Indices indices = indicesOf(cuts);
  std::vector<StagePart> parts = partsOf(indices);
  std::vector<StageLoad> result;
  for (auto [stage, part] : llvm::enumerate(parts)) {
    StageLoad &load = result.emplace_back();
    load.begin = cuts[stage];
    load.end = cuts[stage + 1];
    load.flops = loads.flopsOf(load.begin, load.end);
    load.bytesIn = crossings.bytesIn(indices[stage], indices[stage + 1]);
    load.stateBytes = std::llround(loads.stateOf(load.begin, load.end));
    load.seconds = part.seconds;
    load.lacksBytes = std::ceil(loads.lackOf(stage, parts));
  }
  return result;
}

/// Returns the bytes that cross each position between two units.
static std::vector<double> bytesOver(const CutProblem &problem) {
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

/// Returns the positions to search, in order: between any two consecutive units
/// that count, the position that the fewest bytes cross. If these are too many,
/// the best one in each of several equal parts of the program's time.
static std::vector<int64_t> cutPositions(const CutProblem &problem,
                                         const CutLoads &loads) {
  std::vector<double> over = bytesOver(problem);
  std::vector<int64_t> between;
  int64_t units = problem.units.size();
  for (int64_t i = 1; i < units; ++i) {
    int64_t count = loads.countBefore(i);
    if (count == 0 || count == loads.countBefore(units))
      continue;
    if (between.empty() || count != loads.countBefore(between.back()))
      between.push_back(i);
    else if (over[i] < over[between.back()])
      between.back() = i;
  }
  size_t positions = std::max(kPositions, 2 * problem.stages.size());
  std::set<int64_t> chosen = {0, units};
  if (between.size() <= positions) {
    chosen.insert(between.begin(), between.end());
  } else {
    double total = loads.secondsBefore(units);
    for (size_t i = 0, part = 0; i < between.size(); ++part) {
      double limit = total * double(part + 1) / double(positions);
      int64_t best = between[i];
      // By time; by index if no unit takes time.
      size_t least = (part + 1) * between.size() / positions / 2;
      for (; i < between.size() && (loads.secondsBefore(between[i]) <= limit ||
                                    i < least || part + 1 == positions);
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

/// Returns the boundaries of a cut and the units around them.
static std::vector<int64_t> positionsAround(llvm::ArrayRef<int64_t> cuts) {
  int64_t reach =
      std::max<int64_t>(int64_t(kPositions) / int64_t(cuts.size()) / 2, 1);
  std::set<int64_t> chosen;
  for (int64_t cut : cuts)
    for (int64_t position = cut - reach; position <= cut + reach; ++position)
      if (position >= 0 && position <= cuts.back())
        chosen.insert(position);
  return {chosen.begin(), chosen.end()};
}

std::vector<StageLoad> whale::loadsOfCut(const CutProblem &problem,
                                         llvm::ArrayRef<int64_t> begins) {
  CutLoads loads(problem);
  std::vector<int64_t> cuts(begins);
  cuts.push_back(problem.units.size());
  return Cutter(problem, loads, cuts).loadsOf(cuts);
}

std::vector<int64_t> whale::proportionalCut(const CutProblem &problem) {
  CutLoads loads(problem);
  int64_t units = problem.units.size(), count = problem.stages.size();
  std::vector<double> capacity = {0};
  for (int64_t stage = 0; stage < count; ++stage)
    capacity.push_back(capacity.back() + loads.rateOf(stage, 0, units));
  std::vector<int64_t> cuts = {0};
  for (int64_t stage = 1; stage < count; ++stage) {
    double wanted = loads.flopsOf(0, units) * capacity[stage] / capacity.back();
    // This stage and each later one need a counted unit.
    auto allowed = [&](int64_t cut) {
      return loads.countBefore(cut) > loads.countBefore(cuts.back()) &&
             loads.countBefore(units) - loads.countBefore(cut) >= count - stage;
    };
    auto missed = [&](int64_t cut) {
      return std::abs(loads.flopsOf(0, cut) - wanted);
    };
    std::optional<int64_t> best;
    for (int64_t cut = cuts.back() + 1; cut < units; ++cut)
      if (allowed(cut) && (!best || missed(cut) < missed(*best)))
        best = cut;
    assert(best && "fewer units that count than stages");
    cuts.push_back(*best);
  }
  cuts.push_back(units);
  return cuts;
}

llvm::Expected<std::vector<StageLoad>>
whale::cutStages(const CutProblem &problem) {
  CutLoads loads(problem);
  int64_t units = problem.units.size(), count = problem.stages.size();
  if (count < 1)
    return fail("a step is cut into at least 1 task graph");
  if (loads.countBefore(units) < count)
    return fail("can't cut " + llvm::Twine(loads.countBefore(units)) +
                " forward operations with FLOPs into " + llvm::Twine(count) +
                " task graphs");
  std::vector<int64_t> positions = cutPositions(problem, loads);
  Cutter cutter(problem, loads, positions);
  std::optional<Cuts> best = cutter.findBest();
  if (!best && problem.leastShare > 0)
    return fail("no cut into " + llvm::Twine(count) +
                " task graphs gives each of them enough to do");
  if (!best) {
    int64_t memory = 0;
    for (const CutStage &stage : problem.stages)
      for (const CutDevice &device : stage.devices)
        memory = std::max(memory, device.memoryBytes);
    return fail("parameters and optimizer state of " +
                llvm::Twine(std::llround(loads.stateOf(0, units))) +
                " bytes don't fit " + llvm::Twine(count) +
                " task graphs, however they are cut: no device has more than " +
                llvm::Twine(memory) +
                " bytes; more task graphs, or a default strategy 'split', "
                "need less on each device");
  }
  Cuts cuts = cutter.improve(*best);
  while (true) {
    positions = positionsAround(cuts);
    Cutter around(problem, loads, positions);
    Cuts better = around.improve(cuts);
    if (better == cuts)
      return around.loadsOf(cuts);
    cuts = std::move(better);
  }
}

int64_t whale::mostStagesOf(const CutProblem &problem, double share) {
  CutLoads loads(problem);
  int64_t units = problem.units.size();
  for (size_t count = problem.stages.size(); count > 1; --count) {
    int64_t begin = 0;
    size_t made = 0;
    for (int64_t end = 1; end <= units; ++end)
      if (loads.isEnough(begin, end, share, count)) {
        begin = end;
        ++made;
      }
    if (made >= count)
      return count;
  }
  return 1;
}

std::vector<CutNeed> whale::needsOf(const CutProblem &problem,
                                    llvm::ArrayRef<StageLoad> stages) {
  CutLoads loads(problem);
  std::map<int64_t, CutNeed> needs;
  for (auto [stage, load] : llvm::enumerate(stages)) {
    StagePart part = loads.partOf(stage, load.begin, load.end, 0, 0);
    llvm::ArrayRef<unsigned> kinds = loads.kindsOf(stage);
    for (const CutDevice &device : problem.stages[stage].devices) {
      const StagePart::Bytes &bytes =
          part.bytes[llvm::find(kinds, loads.kindOf(device)) - kinds.begin()];
      CutNeed &need = needs[device.id];
      need.device = device.id;
      need.stateBytes += bytes.state;
      need.workingBytes += bytes.working;
    }
  }
  auto range = llvm::make_second_range(needs);
  return {range.begin(), range.end()};
}
