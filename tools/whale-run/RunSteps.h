//===- RunSteps.h - The steps of a run, and what they cost ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TOOLS_WHALERUN_RUNSTEPS_H
#define WHALE_TOOLS_WHALERUN_RUNSTEPS_H

#include "Checkpoints.h"
#include "Inputs.h"
#include "Options.h"
#include "whale/Runtime/Job.h"
#include "whale/Runtime/Program.h"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace whale::runtime {

/// Costs: of the last step, and the profile of all.
/// A program, and the step that it begins with.
struct Stage {
  Stage(int64_t first, Program program)
      : first(first), program(std::move(program)) {}
  Stage(const Stage &) = delete;
  Stage &operator=(const Stage &) = delete;

  const int64_t first;
  const Program program;
  /// Refer to the program.
  std::optional<Inputs> inputs;
};

/// By their first steps, from 0 on.
using Stages = std::deque<Stage>;

/// Throws Error unless both take the same arguments, fed by the same results.
void checkSwitch(const Program &before, const Program &after,
                 const std::string &name);

struct Measured {
  Stats stats;
  Trace trace;
  Profile profile;
};

/// With several steps, each piece of state must have a next value. Throws
/// Error.
void checkFeedback(const Program &program, const Options &options);

/// Runs all steps; the results of the last one. While a step runs, the next one
/// is handed over, with its part of the batch read and laid out. Throws Error.
std::vector<Array> runSteps(const Stages &stages, const Options &options,
                            RunOptions runOptions, Checkpoints &checkpoints,
                            Measured &measured);

/// The ranks that a process runs.
std::vector<size_t> ranksOf(const Program &program, int64_t process);

/// The first process gets what the others have computed and measured.
void gather(const Program &program, Job &job, Measured &measured,
            std::string &trace, std::vector<Array> &results);

} // namespace whale::runtime

#endif // WHALE_TOOLS_WHALERUN_RUNSTEPS_H
