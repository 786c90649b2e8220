//===- StageCutLoads.cpp - Loads of the devices under a cut ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seconds, bytes and scores of stages and devices under a cut. In: the units,
// values and stages of a problem. Sums over prefixes of the program make the
// load of a stage a difference of two of them. Cost: linear in the units to
// prepare, and quadratic in the positions for the crossings.
//
//===----------------------------------------------------------------------===//

#include "StageCutLoads.h"
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

using namespace whale;

//===----------------------------------------------------------------------===//
// Crossings
//===----------------------------------------------------------------------===//

Crossings::Crossings(const CutProblem &problem, llvm::ArrayRef<int64_t> cuts)
    : size(cuts.size()), in(size * size), out(size * size) {
  // The piece between two neighbouring cuts that each unit is in.
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
  // Each entry so far is the increment for one more piece: sum them up.
  for (size_t begin = 0; begin < size; ++begin)
    for (size_t end = begin + 1; end < size; ++end) {
      in[begin * size + end] += in[begin * size + end - 1];
      out[begin * size + end] += out[begin * size + end - 1];
    }
}

void Crossings::add(double bytes, int64_t producer,
                    llvm::ArrayRef<int64_t> users) {
  if (users.empty() || users.back() == producer)
    return;
  // A stage that begins after the producer receives the value for its first
  // user.
  auto user = users.begin();
  for (int64_t begin = producer + 1; begin <= users.back(); ++begin) {
    while (*user < begin)
      ++user;
    in[begin * size + *user + 1] += bytes;
  }
  // A stage with the producer sends the value unless it also has all users.
  for (int64_t begin = 0; begin <= producer; ++begin) {
    out[begin * size + producer + 1] += bytes;
    out[begin * size + users.back() + 1] -= bytes;
  }
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

bool CutScore::isLessThan(const CutScore &other) const {
  for (double CutScore::*part :
       {&CutScore::lacksState, &CutScore::lacks, &CutScore::slowest,
        &CutScore::squares, &CutScore::stageSquares}) {
    double own = this->*part, its = other.*part;
    if (std::abs(own - its) > 1e-9 * std::max(own, its))
      return own < its;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

CutLoads::CutLoads(const CutProblem &problem) : problem(problem) {
  size_t classes = 0;
  for (const CutUnit &unit : problem.units)
    classes = std::max(classes, unit.seconds.size());
  seconds.assign(classes, {0});
  for (const CutUnit &unit : problem.units) {
    for (size_t c = 0; c < classes; ++c)
      seconds[c].push_back(seconds[c].back() +
                           (c < unit.seconds.size() ? unit.seconds[c] : 0));
    fused.push_back(fused.back() + unit.fusedSeconds);
    flops.push_back(flops.back() + unit.flops);
    counts.push_back(counts.back() + unit.counts);
    state.push_back(state.back() + double(unit.stateBytes));
    gradient.push_back(gradient.back() + double(unit.gradientBytes));
    activation.push_back(activation.back() + double(unit.activationBytes));
  }
  findKinds();
}

void CutLoads::findKinds() {
  std::map<int64_t, std::vector<unsigned>> stagesOf;
  for (auto [stage, devices] : llvm::enumerate(problem.stages))
    for (const CutDevice &device : devices.devices)
      stagesOf[device.id].push_back(stage);
  std::map<
      std::tuple<unsigned, int64_t, double, int64_t, std::vector<unsigned>>,
      unsigned>
      known;
  kindsOfStage.resize(problem.stages.size());
  sharers.assign(problem.stages.size(), 1);
  for (auto [stage, devices] : llvm::enumerate(problem.stages))
    for (const CutDevice &device : devices.devices) {
      const std::vector<unsigned> &stages = stagesOf[device.id];
      auto [kind, isNewKind] =
          known.try_emplace({device.speedClass, device.memoryBytes,
                             device.memoryScale, device.scratchBytes, stages},
                            unsigned(kinds.size()));
      if (isNewKind)
        kinds.push_back({device, 0, double(stages.size())});
      if (kindOfDevice.try_emplace(device.id, kind->second).second)
        ++kinds[kind->second].count;
      if (!llvm::is_contained(kindsOfStage[stage], kind->second))
        kindsOfStage[stage].push_back(kind->second);
      sharers[stage] = std::max(sharers[stage], double(stages.size()));
      isShared |= stages.size() > 1;
    }
}

double CutLoads::rateOf(const CutDevice &device, int64_t begin,
                        int64_t end) const {
  double all =
      seconds[device.speedClass][end] - seconds[device.speedClass][begin];
  return 1 / std::max(all, 1e-30);
}

double CutLoads::rateOf(size_t stage, int64_t begin, int64_t end) const {
  double sum = 0;
  for (unsigned kind : kindsOfStage[stage])
    sum += kinds[kind].count * rateOf(kinds[kind].device, begin, end);
  return sum;
}

StagePart CutLoads::partOf(size_t index, int64_t begin, int64_t end,
                           double bytesIn, double bytesOut) const {
  const CutStage &stage = problem.stages[index];
  double rate = rateOf(index, begin, end);
  StagePart part;
  part.seconds = 1 / rate;
  auto send = [&](const CutStage &over, double bytes) {
    if (bytes > 0)
      part.seconds += 2 * double(problem.microBatches) * over.latency +
                      bytes * over.secondsPerByte;
  };
  send(stage, bytesIn);
  if (index + 1 < problem.stages.size())
    send(problem.stages[index + 1], bytesOut);

  // 1F1B keeps this many micro-batches.
  int64_t later = problem.stages.size() - index;
  double kept = double(std::min(later, problem.microBatches)) /
                double(problem.microBatches);
  for (unsigned kind : kindsOfStage[index]) {
    const CutDevice &device = kinds[kind].device;
    double share = rateOf(device, begin, end) / rate;
    double whole = stage.sharesState ? share : 1;
    part.bytes.push_back(
        {stateOf(begin, end) * whole,
         ((gradient[end] - gradient[begin]) * whole +
          (activation[end] - activation[begin]) * kept * share) *
                 device.memoryScale +
             double(device.scratchBytes) / kinds[kind].stages});
  }
  return part;
}

std::vector<CutLoads::Sum>
CutLoads::sumsOf(llvm::ArrayRef<StagePart> parts) const {
  std::vector<Sum> sums(kinds.size());
  for (auto [part, stage] : llvm::zip_equal(parts, kindsOfStage))
    for (auto [kind, bytes] : llvm::zip_equal(stage, part.bytes)) {
      sums[kind].seconds += part.seconds;
      sums[kind].state += bytes.state;
      sums[kind].working += bytes.working;
    }
  return sums;
}

double CutLoads::lackOf(size_t stage, llvm::ArrayRef<StagePart> parts) const {
  std::vector<Sum> sums = sumsOf(parts);
  double lack = 0;
  for (unsigned kind : kindsOfStage[stage])
    lack = std::max(lack, sums[kind].bytes() -
                              double(kinds[kind].device.memoryBytes));
  return lack;
}

CutScore CutLoads::scoreOf(llvm::ArrayRef<StagePart> parts) const {
  CutScore score;
  for (const StagePart &part : parts)
    score.stageSquares += part.seconds * part.seconds;
  for (auto [kind, sum] : llvm::zip_equal(kinds, sumsOf(parts))) {
    double memory = double(kind.device.memoryBytes);
    score.lacksState = std::max(score.lacksState, sum.state - memory);
    score.lacks = std::max(score.lacks, sum.bytes() - memory);
    score.slowest = std::max(score.slowest, sum.seconds);
    score.squares += kind.count * sum.seconds * sum.seconds;
  }
  return score;
}
