//===- StageCutLoads.h - Loads of the devices under a cut -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seconds and bytes of stages, and of devices, which may have several stages.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PLANNER_STAGECUTLOADS_H
#define WHALE_LIB_PLANNER_STAGECUTLOADS_H

#include "whale/Planner/StageCut.h"
#include "llvm/ADT/ArrayRef.h"
#include <map>

namespace whale {

/// Bytes between pairs of positions to cut at.
class Crossings {
public:
  Crossings(const CutProblem &problem, llvm::ArrayRef<int64_t> cuts);

  double bytesIn(size_t begin, size_t end) const {
    return in[begin * size + end];
  }
  double bytesOut(size_t begin, size_t end) const {
    return out[begin * size + end];
  }

private:
  void add(double bytes, int64_t producer, llvm::ArrayRef<int64_t> users);

  size_t size;
  std::vector<double> in, out;
};

/// The score of a cut: lower is better, compared lexicographically.
struct CutScore {
  /// By how much the fullest device exceeds its memory: with parameters and
  /// optimizer state alone, then with everything.
  double lacksState = 0, lacks = 0;
  /// Seconds of the slowest device.
  double slowest = 0;
  /// Sums of the squared seconds of devices, and of stages.
  double squares = 0, stageSquares = 0;

  /// Ignores differences as small as those of sums in another order.
  bool isLessThan(const CutScore &other) const;
};

/// The load of a stage on its devices.
struct StagePart {
  struct Bytes {
    double state, working;
  };
  /// Seconds of each device, including communication.
  double seconds = 0;
  /// Bytes of one device of each of the stage's kinds.
  llvm::SmallVector<Bytes, 2> bytes;
};

class CutLoads {
public:
  explicit CutLoads(const CutProblem &problem);

  /// Equal devices that have the same stages.
  struct Kind {
    CutDevice device;
    /// Number of devices, and of stages that they have.
    double count = 0, stages = 0;
  };

  /// Returns the load of the stage of units [begin, end), which sends and
  /// receives `bytesIn`.
  StagePart partOf(size_t stage, int64_t begin, int64_t end, double bytesIn,
                   double bytesOut) const;
  /// Seconds of the stage's computation alone.
  double computeSeconds(size_t stage, int64_t begin, int64_t end) const {
    return 1 / rateOf(stage, begin, end);
  }
  /// Returns the score of all stages together.
  CutScore scoreOf(llvm::ArrayRef<StagePart> parts) const;
  /// By how much the fullest device of a stage exceeds its memory; 0 if none
  /// does.
  double lackOf(size_t stage, llvm::ArrayRef<StagePart> parts) const;

  const Kind &getKind(size_t index) const { return kinds[index]; }
  unsigned kindOf(const CutDevice &device) const {
    return kindOfDevice.at(device.id);
  }
  /// The kinds of a stage's devices.
  llvm::ArrayRef<unsigned> kindsOf(size_t stage) const {
    return kindsOfStage[stage];
  }
  /// The largest number of stages that one of a stage's devices has.
  double sharersOf(size_t stage) const { return sharers[stage]; }
  bool hasSharedDevices() const { return isShared; }

  double flopsOf(int64_t begin, int64_t end) const {
    return flops[end] - flops[begin];
  }
  double stateOf(int64_t begin, int64_t end) const {
    return state[end] - state[begin];
  }
  /// The number of units that count before a unit.
  int64_t countBefore(int64_t unit) const { return counts[unit]; }
  /// Whether units have enough to do for one of `stages` stages: a part of
  /// `share` of an even cut's fused seconds and FLOPs.
  bool isEnough(int64_t begin, int64_t end, double share, size_t stages) const {
    auto has = [&](llvm::ArrayRef<double> sums) {
      return sums[end] - sums[begin] >= share * sums.back() / double(stages);
    };
    return counts[end] > counts[begin] && has(fused) && has(flops);
  }
  /// Seconds of all units before a unit, on a device of the first class.
  double secondsBefore(int64_t unit) const { return seconds[0][unit]; }
  /// The fraction of the units' work that all devices of a stage do in a
  /// second.
  double rateOf(size_t stage, int64_t begin, int64_t end) const;

private:
  /// The load of a device of a kind in all its stages.
  struct Sum {
    double seconds = 0, state = 0, working = 0;
    double bytes() const { return state + working; }
  };
  std::vector<Sum> sumsOf(llvm::ArrayRef<StagePart> parts) const;
  double rateOf(const CutDevice &device, int64_t begin, int64_t end) const;
  void findKinds();

  const CutProblem &problem;
  /// Prefix sums: over the units before each unit.
  std::vector<std::vector<double>> seconds;
  std::vector<double> fused = {0}, flops = {0}, state = {0}, gradient = {0},
                      activation = {0};
  std::vector<int64_t> counts = {0};

  std::vector<Kind> kinds;
  std::map<int64_t, unsigned> kindOfDevice;
  std::vector<llvm::SmallVector<unsigned, 2>> kindsOfStage;
  std::vector<double> sharers;
  bool isShared = false;
};

} // namespace whale

#endif // WHALE_LIB_PLANNER_STAGECUTLOADS_H
