//===- Simulate.h - What a step takes on a cluster --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times the program that ranks execute over a cluster that need not be there.
// Uses neither LLVM nor MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SIM_SIMULATE_H
#define WHALE_SIM_SIMULATE_H

#include "whale/Cluster/Cluster.h"
#include "whale/Step/ProgramModel.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace whale::sim {

/// A program as it was read, with the cluster that it was compiled for.
struct LoadedProgram {
  std::string path;
  format::Program program;
  Cluster cluster;
  /// Of a mini-batch, where the step has one.
  std::optional<int64_t> samples;
  /// By rank, where the compiler says: with what libraries need.
  std::map<int64_t, int64_t> peakBytes;
};

/// Reads a program directory. Throws system::Error.
LoadedProgram load(const std::string &path);

/// The transfers of a kind, in a step.
struct CollectiveTimes {
  double count = 0;
  /// That all ranks send together.
  double bytes = 0;
  /// For which a rank waits, in the mean over all ranks.
  double exposedSeconds = 0;
  /// How many of them go by each algorithm, where the rule chooses one.
  std::map<std::string, double> choices;
};

/// A part of the critical path: what is computed for a line of the user's
/// program, or a kind of collective.
struct PathShare {
  std::string what;
  double seconds = 0;
};

/// What each of these ranks, which do the same, does of a TaskGraph.
struct RankShare {
  std::vector<int64_t> ranks;
  double flops = 0, bytes = 0;
  /// Of the whole: of its FLOPs, or of its bytes if it has none.
  double share = 0;
};

/// What a step does for a TaskGraph.
struct TaskGraphUse {
  std::string name;
  std::vector<RankShare> shares;
  /// Of all ranks.
  double flops = 0, bytes = 0;
  /// Of the rank that computes longest for it, without what delays it.
  double computeSeconds = 0;
  /// That all ranks send together for it.
  double sentBytes = 0;
  /// For which a rank waits for its transfers, at most.
  double exposedSeconds = 0;
};

/// What the cluster could have, and the seconds that a step would take then.
struct Change {
  std::string what;
  double seconds = 0;
};

/// A step of a program on a cluster.
struct Simulation {
  const LoadedProgram *program = nullptr;
  Cluster cluster;
  CollectiveRule rule = CollectiveRule::Own;
  ModelledStep step;
  /// By rank.
  std::vector<int64_t> peakBytes;
  /// Of which the peak is above what their devices have.
  std::vector<int64_t> outOfMemory;
  std::map<std::string, CollectiveTimes> collectives;
  /// The largest first.
  std::vector<PathShare> criticalPath;
  std::vector<TaskGraphUse> taskGraphs;
  /// What findChanges says, where that was asked for.
  std::vector<Change> changes;
  /// The part of the time of all ranks in which they neither compute nor
  /// communicate.
  double bubble = 0;
  /// Joules, where the power of all kinds is known: of what computes.
  std::optional<double> energy;

  std::optional<double> samplesPerSecond() const;
};

/// What a rank needs from a time on, until the next point.
struct MemoryPoint {
  double seconds = 0;
  int64_t bytes = 0;
};

/// What each of these ranks, which do the same, needs over the time of a step:
/// with all that is there from begin to end, of its arena what is in use.
std::vector<MemoryPoint> memoryOverTime(const Simulation &simulation,
                                        const ModelledRanks &ranks);

/// The three changes that would help most, each simulated by itself.
std::vector<Change> findChanges(const Simulation &simulation);

/// By TaskGraph of the program; none that nothing is done for.
std::vector<TaskGraphUse> describeTaskGraphs(const Simulation &simulation);

/// Throws system::Error where the program does not fit the cluster.
Simulation simulate(const LoadedProgram &program, const Cluster &cluster,
                    CollectiveRule rule = CollectiveRule::Own);

/// One JSON object (docs/simulator.md).
std::string toJson(const Simulation &simulation);
/// The same for people: a row for all ranks that do the same.
std::string toText(const Simulation &simulation);
/// A row for each of them, the fastest first; those that lack memory last.
std::string compare(const std::vector<Simulation> &simulations,
                    const std::vector<std::string> &clusterNames);
/// One page of HTML: the first one's timeline, memory, critical path and what
/// would help it; all of them in a table.
std::string toPage(const std::vector<Simulation> &simulations,
                   const std::vector<std::string> &clusterNames);
/// Chrome trace-event JSON, with a process for ranks that do the same.
std::string toTrace(const Simulation &simulation);

} // namespace whale::sim

#endif // WHALE_SIM_SIMULATE_H
