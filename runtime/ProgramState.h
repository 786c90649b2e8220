//===- ProgramState.h - What a program is in memory -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State holds what was read of a program's directory, and is shared by all
// handles; Engine holds the executor and the queue of steps of this process,
// and is made anew in a forked child.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROGRAMSTATE_H
#define WHALE_RUNTIME_PROGRAMSTATE_H

#include "executor/Executor.h"
#include "executor/StepQueue.h"
#include "program/Kernels.h"
#include "whale/Runtime/Program.h"
#include "whale/System/Io.h"
#include "whale/System/Processors.h"

#include <atomic>
#include <chrono>
#include <mutex>

namespace whale::runtime {

/// What runs a program in one process.
struct Program::Engine {
  Engine(const BoundProgram &bound, std::span<const char> constants,
         const LoadOptions &options)
      : executor(bound, constants, options) {}

  /// Ends all processes, where there are others: they wait for this one.
  /// Returns their first error.
  std::string fail(const std::string &what) {
    const Ranks &ranks = executor.where();
    return ranks.job ? ranks.job->fail(what) : what;
  }

  /// Whether another layout of an array takes it from other processes.
  bool needsOthers(const Array &array) const;
  /// Arrays, each in the layout beside it, which may take them from other
  /// processes, in one exchange. What only the caller has is freed on the way.
  std::vector<Array>
  relayout(std::vector<Array> arrays,
           std::span<const std::shared_ptr<const Layout>> layouts);
  /// The first rank of this process without a shard that it should have.
  std::optional<int64_t>
  firstMissing(const Layout &layout,
               std::span<const std::shared_ptr<Buffer>> shards) const;

  /// Whether the caller of a step runs it himself, if nothing is before it.
  bool runsHere(const StepOptions &step, const Trace *trace) const {
    return executor.isShort() && !trace && step.slowdowns.empty();
  }

  /// The ranks of this process where there are others, else null.
  const std::vector<int64_t> *localRanks() const {
    const Ranks &ranks = executor.where();
    return ranks.job ? &ranks.local : nullptr;
  }

  Executor executor;
  /// Held while the executor is used.
  std::mutex mutex;
  pid_t process = system::processId();
  /// Of the last step that was left; for the queue's thread.
  std::chrono::steady_clock::time_point lastEnd = {};
  // Last: its thread stops before what it uses goes.
  StepQueue queue;
};

struct Program::State {
  static std::shared_ptr<State> load(const std::filesystem::path &directory,
                                     const LoadOptions &options);
  std::string read(const std::filesystem::path &directory,
                   const LoadOptions &given);
  void connect(const std::filesystem::path &directory,
               const std::string &checksum);

  // In the order of use: what is later refers to what is before.
  std::shared_ptr<KernelLibrary> kernels;
  std::unique_ptr<system::MappedFile> constants;
  std::unique_ptr<const BoundProgram> bound;
  std::vector<std::shared_ptr<const ArrayType>> resultTypes;
  /// Of arguments that the host has the whole of: in the program's own layout,
  /// where that is so.
  std::vector<std::shared_ptr<const ArrayType>> hostTypes;
  LoadOptions options;
  std::atomic<Engine *> engine = nullptr;

  ~State();
  Engine &getEngine();
  static void destroy(State *state);
};

/// Throws Error where a program cannot take these.
void checkArguments(const std::vector<Parameter> &parameters,
                    std::span<const Array> arguments);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROGRAMSTATE_H
