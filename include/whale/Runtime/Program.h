//===- Program.h - Load and run a compiled program --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a program directory that the compiler has written, and arrays for its
// arguments. Out: arrays of its results, and what each step has cost.
//
// A step is handed over and runs on the ranks' threads while the caller goes
// on; who reads one of its results waits for it. Where several processes run
// the program, each has a share of the ranks, and loading, submitting and
// gathering are collective.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROGRAM_H
#define WHALE_RUNTIME_PROGRAM_H

#include "whale/ProgramFormat/Program.h"
#include "whale/Runtime/Array.h"
#include "whale/Runtime/Job.h"
#include "whale/Runtime/Network.h"
#include "whale/Runtime/Profile.h"
#include "whale/Runtime/Python.h"
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

/// "arg3 (params['w'])".
std::string describe(const Parameter &parameter);

/// What moves data between ranks: memory of one process, messages between
/// processes, or NCCL between GPUs.
enum class TransportKind { Local, Ucx, Mpi, Nccl };

struct LoadOptions {
  /// Threads of each rank; 0 shares the machine's cores out among the ranks.
  int64_t threadsPerRank = 0;
  /// If set, the links between the ranks as they are emulated: a transfer is
  /// done when its time on them has passed, too (docs/runtime.md).
  Network network;
  /// What errors call the network.
  std::string networkName = "the network";
  /// For tests: if set, transfers go on as late, and in as odd an order, as
  /// their starts and waits allow, in an order that the seed decides
  /// (docs/runtime.md). Without `network`, and for ranks of one process.
  std::optional<uint64_t> lateSeed;
  /// The processes that run the program together; without it this one runs all
  /// ranks. Loading and submitting are collective then.
  std::shared_ptr<Job> job;
  /// Which process of the job runs each rank; by default they are dealt out in
  /// consecutive runs, as even as can be. Every process has some.
  std::shared_ptr<const RankMap> ranks = nullptr;
  /// Programs for equal ranks share these: threads, connections, and memory as
  /// large as the largest program needs, so that their steps follow one
  /// another. If set, this one has its own. So has each with a `network` or
  /// `lateSeed`.
  bool hasOwnRanks = false;
  /// By default Local for one process, else Ucx; Nccl besides for ranks that
  /// are on GPUs of their own. With Nccl it is an Error where that cannot carry
  /// all.
  std::optional<TransportKind> transport;
  /// Makes the calls of the step into Python; without it they are an Error.
  PythonFunction python;
};

struct StepOptions {
  /// False leaves donated arguments intact, for the price of a copy.
  bool donate = true;
  /// Whether StepCosts has a profile.
  bool isProfiled = false;
  /// Whether each operation must be in it: a run that a device repeats as a
  /// whole has none.
  bool profilesOperations = false;
  /// If not empty, how many times longer than its thread works each rank takes
  /// for its instructions, communication apart: at least 1, one for each rank.
  std::vector<double> slowdowns;
  /// Requesting a stop, from any thread, ends the run with an Error before its
  /// next instruction (a loop that never ends).
  std::stop_token stop;
  /// If set, called on the calling thread while it waits; true ends the call
  /// with Interrupted, and steps as Step::interrupt says (a user who
  /// interrupts). Nobody waits for a rank that is in the middle of an
  /// instruction: it finishes that by itself, and the next step of the program
  /// waits for it.
  AskInterrupted interrupted;
};

/// Without both a `trace` and `interrupted`.
struct RunOptions : StepOptions {
  /// Filled with this run's costs, if given.
  Stats *stats = nullptr;
  /// This run is appended to it, if given.
  Trace *trace = nullptr;
  /// This run's times are added to it, if given; of one program always.
  Profile *profile = nullptr;
};

/// What a user may want to know of how a program was loaded, of all processes
/// in the first one: how data is exchanged, what is not as it was compiled.
struct LoadNote {
  /// Whether it costs time in each step that another machine would not take.
  bool isWarning = false;
  std::string text;
};

/// What a step cost, complete once it has ended well.
struct StepCosts {
  Stats stats;
  Profile profile;
};

/// A step that was handed over, and what it gives.
struct Submission {
  std::shared_ptr<Step> step;
  std::vector<Array> results;
  std::shared_ptr<const StepCosts> costs;
};

/// A program in memory, and its ranks. A handle: copies share them. Its steps
/// and those of other programs with these ranks (LoadOptions) follow one
/// another, in the order in which they were submitted, from whichever threads;
/// where there are several processes, it is the same in all. In a function that
/// a step calls, others have ranks of their own. A process that is forked has
/// ranks of its own when it first runs the program.
class Program {
public:
  /// Reads and validates a program directory. A process of a job that has no
  /// such directory gets the program from the first one. On GPUs it waits for
  /// the steps that these ranks have. Throws Error naming the file and field at
  /// fault, or Interrupted.
  static Program load(const std::filesystem::path &directory,
                      const LoadOptions &options = {},
                      const AskInterrupted &interrupted = nullptr);

  const std::string &name() const;
  size_t rankCount() const;
  /// The process of the job that runs a rank.
  int64_t processOf(size_t rank) const;
  const std::vector<Parameter> &arguments() const;
  const std::vector<Parameter> &results() const;

  /// The bytes of the whole of an argument.
  int64_t argumentBytes(size_t argument) const;
  /// An argument with these bytes of the host, as Array::fromHost.
  Array copyArgument(size_t argument, const void *data) const;

  /// What there is to say of how it was loaded.
  const std::vector<LoadNote> &notes() const;

  /// The compiler's readable summary ("plan" of the manifest), as JSON text.
  const std::string &plan() const;

  /// Hands a step over, to run after those that were handed over before and
  /// those whose results it takes; waits only where several steps of these
  /// ranks are waiting already. One array for each argument, of its shape and
  /// dtype and in any layout: one in the argument's layout is used in place,
  /// another is laid out anew. What the arguments borrow is copied before this
  /// returns. Donated arguments are taken over (`Array::isDonated` afterwards).
  /// Throws Error for a wrong argument, also for the result of a step that is
  /// known to have failed. Where the step fails, whatever reads a result throws
  /// the Error with the first rank and instruction that did, after all ranks
  /// have stopped.
  Submission submit(std::span<const Array> arguments,
                    const StepOptions &options = {}) const;

  /// Hands a step over, waits for it, and throws its Error.
  std::vector<Array> run(std::span<const Array> arguments,
                         const RunOptions &options = {}) const;

  /// Brings arrays to where these arguments of the program want them, in one
  /// exchange; the arrays are taken over. Collective: first all processes check
  /// what they were given and that there is memory, and agree on it; where one
  /// cannot, all throw its Error, and every array is as before.
  std::vector<Array> move(std::span<const Array> arrays,
                          std::span<const size_t> arguments,
                          const AskInterrupted &interrupted = nullptr) const;

  /// The whole of an array of this program: in the first process, where the
  /// others get an empty handle, or in all. Collective; after all steps that
  /// were submitted before.
  Array gather(const Array &array, bool everywhere = false,
               const AskInterrupted &interrupted = nullptr) const;

  /// Compares the shards that ranks hold of the same part of a result, in all
  /// processes. Collective; throws one Error in all, which names the result and
  /// two ranks, where they differ by a bit.
  void checkReplicas(std::span<const Array> results) const;

  /// An argument for this program, of which `array`, in one piece, needs to
  /// have only the elements that ranks of this process hold. Copies them.
  /// Throws Error for a wrong shape or dtype.
  Array place(size_t argument, const Array &array) const;

  /// Where the time of a step went, for people: what each rank computed, sent
  /// and waited, and the lines of the user's program that took longest, with
  /// the share of the roofline that they reached.
  std::string describe(const Profile &profile) const;

  /// Takes part in a `move` for which this process lacks arrays: it throws an
  /// Error that says why in all others.
  void refuseMove(const std::string &why) const;

private:
  struct Engine;
  struct MoveTable;
  struct Moves;
  struct State;
  struct Work;
  explicit Program(std::shared_ptr<State> state);
  Submission submit(std::span<const Array> arguments,
                    const StepOptions &options, Trace *trace) const;
  /// Who wants arrays in another layout.
  enum class Wanted : uint8_t { ByRanks, ByHost };
  std::string describeMove(std::span<const Array> arrays,
                           std::span<const size_t> arguments) const;
  std::vector<Array> moveInTurn(Moves moves,
                                const AskInterrupted &interrupted) const;
  std::shared_ptr<State> state;
};

/// Validates a program directory as Program::load does, apart from kernels and
/// constants, of which a program that is planned only has none. Throws Error
/// naming the file and field at fault.
void checkPlan(const std::filesystem::path &directory);

/// The same. Returns the program's tables at length (format::readTables).
std::string readTables(const std::filesystem::path &directory);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROGRAM_H
