//===- Program.h - Load and run a compiled program --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROGRAM_H
#define WHALE_RUNTIME_PROGRAM_H

#include "whale/ProgramFormat/Program.h"
#include "whale/Runtime/Array.h"
#include "whale/Runtime/Job.h"
#include "whale/Runtime/Network.h"
#include "whale/Runtime/Profile.h"
#include "whale/Runtime/Stats.h"
#include "whale/Runtime/Step.h"
#include "whale/Runtime/Trace.h"
#include "whale/Runtime/Types.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace whale::runtime {

using format::Parameter;
using format::Role;

struct LoadOptions {
  /// Threads of each rank; 0 divides the machine's cores among the ranks.
  int64_t threadsPerRank = 0;
  /// If set, emulated links between the ranks: a transfer ends when both its
  /// real and its emulated time have passed (docs/runtime.md).
  Network network;
  /// For tests: if set, transfers run as late and in as unusual an order as
  /// their starts and waits allow; the seed determines the order
  /// (docs/runtime.md). Requires that `network` isn't set.
  std::optional<uint64_t> lateSeed;
  /// The processes that run the program together, one after the other with
  /// equal shares of the ranks; without it this one runs all ranks. Loading and
  /// submitting are collective then. Without `network`.
  std::shared_ptr<Job> job;
};

struct StepOptions {
  /// False leaves donated arguments intact, at the cost of a copy.
  bool donate = true;
  /// Whether StepCosts has a profile.
  bool isProfiled = false;
  /// If not empty, a factor for each rank, at least 1, by which its
  /// instructions take longer than its thread works; not applied to
  /// communication.
  std::vector<double> slowdowns;
  /// Requesting a stop, from any thread, ends the run with an Error before its
  /// next instruction. Needed for loops that never end.
  std::stop_token stop;
  /// If set, called on the calling thread while it waits. If it returns true
  /// (the user interrupts), the call throws Interrupted and steps end as
  /// described at Step::interrupt. A rank that is executing an instruction
  /// isn't waited for: it finishes the instruction, and the next step of the
  /// program waits for it.
  AskInterrupted interrupted;
};

/// Options of a blocking run; use at most one of `trace` and `interrupted`.
struct RunOptions : StepOptions {
  /// If not null, set to this run's costs.
  Stats *stats = nullptr;
  /// If not null, this run is appended.
  Trace *trace = nullptr;
  /// If not null, this run's times are added; all runs must be of one program.
  Profile *profile = nullptr;
};

/// The costs of a step, complete once it has ended successfully.
struct StepCosts {
  Stats stats;
  Profile profile;
};

/// A submitted step and its results.
struct Submission {
  std::shared_ptr<Step> step;
  std::vector<Array> results;
  std::shared_ptr<const StepCosts> costs;
};

/// A program in memory, with its ranks' threads and arenas. A handle: copies
/// share these. Its steps run one after the other, whichever threads submit
/// them. After a fork, the child creates separate threads and arenas when it
/// first runs the program.
class Program {
public:
  /// Loads and validates a program directory. Throws Error with the file and
  /// field that are invalid.
  static Program load(const std::filesystem::path &directory,
                      const LoadOptions &options = {});

  const std::string &name() const;
  size_t rankCount() const;
  /// The process of the job that runs a rank.
  int64_t processOf(size_t rank) const;
  const std::vector<Parameter> &arguments() const;
  const std::vector<Parameter> &results() const;

  /// Returns the compiler's readable summary ("plan" of the manifest) as JSON
  /// text.
  const std::string &plan() const;

  /// Submits a step. It runs after all steps that were submitted before and
  /// after those whose results it uses. Blocks only if several steps of the
  /// program are already queued.
  ///
  /// `arguments` has one array for each argument, with its shape and dtype and
  /// in any layout. An array in the argument's layout is used in place, others
  /// are converted. Borrowed memory is copied before this returns. Donated
  /// arguments are consumed (`Array::isDonated` is true afterwards).
  ///
  /// Throws Error for a wrong argument, including the result of a step that is
  /// known to have failed. If the step fails, reading a result throws the Error
  /// with the first rank and instruction that failed, after all ranks have
  /// stopped.
  Submission submit(std::span<const Array> arguments,
                    const StepOptions &options = {}) const;

  /// Submits a step, waits for it, and throws its Error.
  std::vector<Array> run(std::span<const Array> arguments,
                         const RunOptions &options = {}) const;

  /// Returns a readable report of a profile: how long each rank computed,
  /// communicated and waited, and the lines of the user's program that took
  /// longest, with the fraction of the roofline that they reached.
  std::string describe(const Profile &profile) const;

private:
  struct Engine;
  struct State;
  struct Work;
  explicit Program(std::shared_ptr<State> state);
  Submission submit(std::span<const Array> arguments,
                    const StepOptions &options, Trace *trace) const;
  std::shared_ptr<State> state;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROGRAM_H
