//===- ProgramModel.h - A program in the model of a step --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a program, and the cluster that it runs on. Out: when which rank does
// what in a step. Each instruction is priced as an operation of the cost model
// and each channel as its exchanges, which share links with others that go on
// at once; the queues of ranks follow one another by the rules of the executor
// (QueueModel.h).
//
// Ranks that are alike are simulated once: those of one class and one kind of
// device whose groups in each channel consist of ranks that are alike. The
// result is that of simulating each. A collective inside a loop or a branch is
// over before its rank goes on, as often as the loop is known to turn; it
// follows what the loop computes. Of a branch the longest way is taken, and a
// loop of unknown length turns once: both are listed as assumptions.
//
// Costs O(ranks x channels of their class) look-ups for each round of finding
// what is alike, of which there are as many as stages at most; then the
// instructions of each kind of rank once. Uses neither LLVM nor MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_PROGRAMMODEL_H
#define WHALE_STEP_PROGRAMMODEL_H

#include "whale/ProgramFormat/Program.h"
#include "whale/Step/CostModel.h"
#include "whale/Step/QueueModel.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace whale {

using KernelSignatures = std::map<std::string, format::KernelSignature>;

/// The work of an instruction of a body; nullopt of one that holds or runs
/// others, and of starts and waits. Without `signatures` the last buffer of a
/// kernel is its result.
std::optional<OpCost> workOf(const format::Instruction &instruction,
                             const format::Body &body,
                             const KernelSignatures *signatures);
inline std::optional<OpCost> workOf(const format::Instruction &instruction,
                                    const format::Body &body,
                                    const format::Program &program) {
  return workOf(instruction, body,
                program.kernelSignatures ? &*program.kernelSignatures
                                         : nullptr);
}

/// The exchanges of a channel, one for each group, in their order. None where
/// ranks exchange nothing.
std::vector<Exchange> exchangesOf(const format::Collective &channel);

/// Bytes that all devices of an exchange send together, as Whale's transports
/// do: an all-reduce sends each part to its owner and the sum back.
double sentBytes(const Exchange &exchange);

/// Bytes of a rank's memory, by what is in it.
struct RankBytes {
  int64_t arguments = 0;
  /// Results that take no argument's memory.
  int64_t results = 0;
  int64_t constants = 0;
  int64_t arena = 0;
  /// For libraries of a GPU.
  int64_t workspace = 0;
  /// Of arguments and results in the memory of the host, which are none of the
  /// above.
  int64_t host = 0;

  int64_t total() const {
    return arguments + results + constants + arena + workspace;
  }
};
RankBytes bytesOf(const format::Program &program, int64_t rank);

/// A transfer that a rank takes part in.
struct ModelledPart {
  /// The same number for all that take part in it.
  size_t transfer = 0;
  int64_t channel = 0;
  /// How often a step exchanges it: inside loops.
  double runs = 1;
};

/// Ranks that do the same at the same times.
struct ModelledRanks {
  /// Ascending.
  std::vector<int64_t> ranks;
  RankTimes times;
  std::vector<QueueItem> items;
  /// By item; null of starts and waits.
  std::vector<const format::Instruction *> instructions;
  /// By part of the queue, as `times.parts`.
  std::vector<ModelledPart> parts;
  /// Seconds of a step. A rank communicates while it waits for a transfer that
  /// goes on; while it waits for others it is idle.
  double computeSeconds = 0, communicationSeconds = 0, idleSeconds = 0;

  /// Of a wait, by item: for how long the transfer goes on meanwhile.
  double communicationIn(size_t item) const;
};

/// What a step exchanges in one use of a channel.
struct ModelledExchange {
  double runs = 1;
  /// Bytes that all ranks send together.
  double sentBytes = 0;
  /// Of all its runs, each alone.
  double secondsAlone = 0;
  /// The algorithm, where the rule of collectives chooses one.
  std::string_view choice;
};

struct ModelledStep {
  double seconds = 0;
  /// By their first ranks.
  std::vector<ModelledRanks> ranks;
  /// By channel, for each of its uses.
  std::vector<std::pair<int64_t, ModelledExchange>> exchanges;
  /// Bytes that all ranks send together.
  double sentBytes = 0;
  /// What the program doesn't say and the model has taken for granted, in
  /// words.
  std::set<std::string> assumptions;
};

/// Returns a step of a program on a cluster, whose devices are the program's
/// ranks. Throws system::Error where the cluster has another number of devices,
/// or ranks wait for one another in a circle. `joinsAlike`: whether ranks that
/// are alike are simulated once.
ModelledStep modelStep(const format::Program &program, const Cluster &cluster,
                       CollectiveRule rule = CollectiveRule::Own,
                       bool joinsAlike = true);

} // namespace whale

#endif // WHALE_STEP_PROGRAMMODEL_H
