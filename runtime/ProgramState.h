//===- ProgramState.h - What a program is in memory -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State holds what was read of a program's directory, and is shared by all
// handles; Engine holds the executor, and is made anew in a forked child, and
// for steps that a step of the same ranks calls.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROGRAMSTATE_H
#define WHALE_RUNTIME_PROGRAMSTATE_H

#include "executor/Executor.h"
#include "program/Kernels.h"
#include "whale/Runtime/Program.h"
#include "whale/System/Io.h"
#include "whale/System/Processors.h"

#include <atomic>
#include <list>

namespace whale::runtime {

/// What runs a program in one process.
struct Program::Engine {
  Engine(std::shared_ptr<Ranks> ranks, const BoundProgram &bound,
         std::span<const char> constants)
      : executor(std::move(ranks), bound, constants) {}

  Ranks &ranks() const { return executor.ranks(); }

  /// How an array, whose step has ended, gets another layout: nothing where the
  /// process has all that it needs.
  std::optional<Ranks::ExchangeWay> wayOf(const Array &array,
                                          Wanted wanted) const;
  /// Arrays, each as the type beside it: those that go one way in one exchange.
  /// What only the caller has is freed on the way.
  std::vector<Array>
  relayout(std::vector<ArrayContents> arrays,
           std::span<const std::shared_ptr<const ArrayType>> types,
           std::span<const std::optional<Ranks::ExchangeWay>> ways);
  /// The first rank of this process without a shard that it should have.
  std::optional<int64_t>
  firstMissing(const Layout &layout,
               std::span<const std::shared_ptr<Buffer>> shards) const;

  /// Whether the caller of a step runs it himself, if nothing is before it.
  bool runsHere(const StepOptions &step, const Trace *trace) const {
    return executor.isShort() && !trace && step.slowdowns.empty();
  }

  /// Which process has what of the program's arrays; null where there is one.
  std::shared_ptr<const RankMap> arrayRanks() const {
    return ranks().job() ? ranks().options.map : nullptr;
  }

  Executor executor;
  const pid_t process = system::processId();
};

/// What follows of the arguments that arrays are moved to and of their types,
/// whatever they hold: found once for each list of these.
struct Program::MoveTable {
  std::vector<size_t> arguments;
  std::vector<std::shared_ptr<const ArrayType>> from;

  enum class Way : uint8_t {
    /// It has the layout.
    None,
    /// The process has all that it needs; perhaps in files.
    Here,
    /// Between ranks.
    Exchange
  };
  std::vector<Way> ways;
  /// Of what all processes must find alike.
  std::string checksum;
};

struct Program::State {
  static std::shared_ptr<State> load(const std::filesystem::path &directory,
                                     const LoadOptions &options,
                                     const AskInterrupted &interrupted);
  std::string read(const std::filesystem::path &directory,
                   const LoadOptions &given);
  void connect(const std::filesystem::path &directory,
               const std::string &checksum, const AskInterrupted &interrupted);

  // In the order of use: what is later refers to what is before.
  std::shared_ptr<KernelLibrary> kernels;
  std::unique_ptr<system::MappedFile> constants;
  std::unique_ptr<const BoundProgram> bound;
  std::vector<std::shared_ptr<const ArrayType>> argumentTypes, resultTypes;
  /// Of arguments that the host has the whole of: in the program's own layout,
  /// where that is so.
  std::vector<std::shared_ptr<const ArrayType>> hostTypes;
  LoadOptions options;
  std::vector<LoadNote> notes;

  ~State();
  /// That for steps which the calling thread hands over.
  Engine &getEngine(const AskInterrupted &interrupted = nullptr);
  static void destroy(State *state);

  /// That of a move; of the last ones used.
  std::shared_ptr<const MoveTable> moveTable(std::span<const Array> arrays,
                                             std::span<const size_t> arguments);

private:
  bool tryDelete(bool mayWait);
  static Engine *ofThisProcess(Engine *kept);
  Engine &makeEngine(std::atomic<Engine *> &place,
                     const std::shared_ptr<Ranks> &ranks,
                     const AskInterrupted &interrupted);

  /// That of the program, and that for steps that a step of its ranks calls.
  std::atomic<Engine *> engine = nullptr, innerEngine = nullptr;

  std::mutex moveMutex;
  /// The last one first.
  std::list<std::shared_ptr<const MoveTable>> moveTables;
};

/// Throws Error where a program cannot take it. `checked`: the step of the last
/// array; most come of one.
void checkArgument(const Parameter &parameter, const Array &array,
                   std::shared_ptr<Step> &checked);
/// Throws Error where a program cannot take these.
void checkArguments(const std::vector<Parameter> &parameters,
                    std::span<const Array> arguments);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROGRAMSTATE_H
