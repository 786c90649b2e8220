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

#include <string>
#include <vector>

namespace whale::runtime {

/// Costs: of the last step, and the profile of all.
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
std::vector<Array> runSteps(const Program &program, const Inputs &inputs,
                            const Options &options, RunOptions runOptions,
                            Checkpoints &checkpoints, Measured &measured);

/// The ranks that a process runs.
std::vector<size_t> ranksOf(const Program &program, int64_t process);

/// The first process gets what the others have computed and measured.
void gather(const Program &program, Job &job, Measured &measured,
            std::string &trace, std::vector<Array> &results);

} // namespace whale::runtime

#endif // WHALE_TOOLS_WHALERUN_RUNSTEPS_H
