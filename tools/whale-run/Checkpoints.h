//===- Checkpoints.h - Saves and resumes a run ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state of a run is what results feed: the arguments of the next step, by
// their names in the program. How many steps were done says which batch of
// --data comes next.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TOOLS_WHALERUN_CHECKPOINTS_H
#define WHALE_TOOLS_WHALERUN_CHECKPOINTS_H

#include "Options.h"
#include "whale/Runtime/Checkpoint.h"
#include "whale/Runtime/Program.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace whale::runtime {

/// SIGTERM has come, and the state is saved.
class Terminated : public std::exception {};

class Checkpoints {
public:
  /// Does nothing without --checkpoint-dir.
  Checkpoints(const Options &options, std::shared_ptr<Job> job);

  /// With --resume: fills the arguments that results feed, and returns the
  /// number of steps that were done; 0 where there is no checkpoint, which is
  /// said.
  int64_t resume(std::vector<Array> &arguments,
                 const std::function<Program(int64_t step)> &programOf);

  /// After `steps` steps, of which these are the results of the last one.
  /// Throws Terminated.
  void saveIfDue(const Program &program, int64_t steps,
                 const std::vector<Array> &results);

  /// The same of the last step, once its results are written: until then a run
  /// that is started again has something to do. SIGTERM comes too late.
  void saveLast(const Program &program, int64_t steps,
                const std::vector<Array> &results);

  /// Returns when all that was saved is complete.
  void wait();

  /// See Checkpointer.
  int64_t stagingBytes() const {
    return checkpointer ? checkpointer->stagingBytes() : 0;
  }

private:
  void save(const Program &program, int64_t steps,
            const std::vector<Array> &results);

  const Options &options;
  std::shared_ptr<Job> job;
  std::optional<Checkpointer> checkpointer;
};

} // namespace whale::runtime

#endif // WHALE_TOOLS_WHALERUN_CHECKPOINTS_H
