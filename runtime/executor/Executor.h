//===- Executor.h - Runs a program on its ranks -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a program and, for each step, the shards of its arguments and buffers for
// its results. Out: the results, with statistics and a profile of the step.
//
// A rank's memory, thread and connections are those of its Ranks, which several
// programs may have; constants are allocated once, and once more after another
// program has needed their memory in between. A step binds arguments and
// results to the buffers that instructions name. A rank whose instructions
// are the same in each run, without other ranks, is recorded by its device and
// repeated. The first error, of any rank or process, stops all ranks, and is
// thrown when they have stopped.
//
// Cost: memory for a rank's constants and buffer table. A step is linear
// in the buffers of each rank's class and in the instructions that it executes,
// a recorded part counting as one; it wakes a thread for each rank, but for the
// one of a brief step.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_EXECUTOR_H
#define WHALE_RUNTIME_EXECUTOR_EXECUTOR_H

#include "executor/Connections.h"
#include "executor/SlowRank.h"
#include "executor/StepSize.h"

namespace whale::runtime {

/// The shards of the arguments or the results: by parameter, then by rank.
using Bindings = std::vector<std::vector<std::shared_ptr<Buffer>>>;

/// How a run may overlap with those before and behind it, where a device takes
/// a run behind another one.
struct Overlap {
  /// Lets the run before come to its end, which gives memory back.
  std::function<void()> settle;
  /// Set where `run` returns before the device is done: says whether it is, or
  /// throws the Error that has ended the run. From any thread, while the
  /// executor lives.
  std::function<bool()> isOver;
};

/// Walks each local rank's instructions on a thread of its own; those of the
/// only one of a process among several, and those of a brief step of the only
/// rank, on the thread that calls `run`.
class Executor {
public:
  /// `program` and `constants` outlive the executor; nobody uses the ranks
  /// meanwhile. Collective where there are several processes.
  Executor(std::shared_ptr<Ranks> ranks, const BoundProgram &program,
           std::span<const char> constants);
  ~Executor();
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  Ranks &ranks() const { return *shared; }
  const std::shared_ptr<Ranks> &sharedRanks() const { return shared; }
  /// See Program::notes.
  const std::vector<LoadNote> &notes() const { return connections.notes(); }

  /// Executes once and returns `results`. Throws Error with the first rank and
  /// instruction that failed, after all ranks have stopped; or Interrupted,
  /// when a rank may still be in an instruction. With `overlap` it may be left
  /// to its device: nobody but the next run may use the results before it is
  /// over, and statistics lack its times.
  Bindings run(Bindings arguments, Bindings results, const RunOptions &options,
               std::shared_ptr<Overlap> overlap = nullptr);
  /// Whether a rank is still in an instruction of an interrupted run.
  bool isBusy();

  /// Whether `run` takes hardly more than waking another thread for it, and has
  /// no part for a second one. What has loops without a bound is taken for
  /// short when it has often been so.
  bool isShort() const;

  /// See Program::describe.
  std::string describe(const Profile &profile);

  /// Of the run that is under way, for the job. From any thread.
  void report(Progress &progress) const;
  /// Whether threads of the ranks are in a run that was left. From any thread.
  bool isInLeftRun() const {
    return shared->threads().round() == leftRound && shared->threads().isBusy();
  }

private:
  /// What the ranks of a run hold, also when nobody waits for them any more.
  struct Step {
    Bindings arguments, results;
    Trace *trace;
    bool isProfiled, profilesOperations;
    std::vector<double> slowdowns;
    /// Null where the run is not left.
    std::shared_ptr<Overlap> overlap;
    /// Whether a run before it may not be over.
    bool isBehind;
    /// Whether it could not begin because of that.
    bool isEarly = false;
  };
  /// A transfer from its start to its wait.
  struct Transfer {
    Trace::Clock::time_point begin;
    /// What the start took, and the time from its begin to the end of the wait.
    double startSeconds = 0, totalSeconds = 0;
    /// Once it has been waited for.
    Traffic traffic;
  };
  struct Rank {
    std::unique_ptr<Device> device;
    /// Of the rank's memory that is bound; see Ranks::Rank.
    uint64_t version = 0;
    std::shared_ptr<Buffer> constants;
    /// The rank constants of the class, by buffer.
    std::map<size_t, std::shared_ptr<Buffer>> rankConstants;
    /// The bytes of these and of the arena.
    int64_t fixedBytes = 0;
    /// Where the buffers of the class lie, and those that its functions add to
    /// them.
    std::vector<Region> regions;
    /// These buffers, and those of the function at hand.
    BufferTable buffers, functionBuffers;
    /// Where those of the function are among the others.
    std::vector<BufferIndex> indices;
    /// What runs the function at hand.
    const Instruction *run = nullptr;
    RankStats stats;
    /// Instructions in a row that do the same in each run, which no other rank
    /// has a part in, and which are not too many to be recorded.
    struct Stretch {
      size_t begin, end;
      /// Of the run that executed them last: what a repeated one does, too.
      double kernelFlops = 0, productFlops = 0;
    };
    std::vector<Stretch> stretches;
    /// Whether one of them is all that the rank does.
    bool isStraight = false;
    /// Whether one is recorded now, in which operations have no times.
    bool isRecorded = false;
    Trace *trace = nullptr;
    /// By the numbers of instructions; empty in a run without a profile.
    std::vector<Profile::Spent> spent;
    /// How many of the runs that are counted there were timed.
    std::vector<int64_t> timedRuns;
    /// What was executed in a run with a profile or a trace, and the marks of
    /// its device before and after it.
    struct Timed {
      const Instruction *instruction;
      size_t begin, end;
    };
    std::vector<Timed> timed;
    /// What they cost, if there is a trace.
    std::vector<Trace::Cost> costs;
    /// By number.
    std::vector<Transfer> transfers;
    SlowRank slow;
  };

  void runRanks(const std::shared_ptr<Step> &step,
                const RankThreads::GoOn &goOn);
  void runRanks(const std::function<void(int64_t rank)> &job);
  void attach(int64_t rank);
  void runRank(int64_t rank, Step &step);
  /// See Overlap::isOver.
  std::function<bool()> leave(int64_t rank);
  /// The label of the transfers of a channel.
  std::string labelOf(int64_t rank, int64_t channel) const;
  void bindFixed(int64_t rank);
  void bindConstants(int64_t rank);
  /// Frees what the rank keeps from run to run, and what its device does; false
  /// while it is at work, or where there is nothing. For other threads.
  bool giveBack(int64_t rank);
  /// The rank's arena, unless another program needs a larger one.
  void giveBackArena(int64_t rank);
  void bind(int64_t rank, const Bindings &arguments, const Bindings &results);
  void bind(int64_t rank, const Run &run);
  /// The rank's instructions; `isAlike`: stretches of them may be repeated.
  void execute(int64_t rank, bool isAlike);
  /// `table`: the buffers that instructions name.
  void execute(int64_t rank, std::span<const Instruction> instructions,
               const BufferTable &table);
  void execute(int64_t rank, const Instruction &instruction,
               const BufferTable &table);
  void executeFunction(int64_t rank, const Instruction &instruction);
  void askInOpenLoop();
  /// The least seconds that a rank's device takes for an instruction; 0 where
  /// what it does is not known. Peaks are measured when first asked for.
  double leastSeconds(int64_t rank, const Instruction &instruction);
  /// Measures those that a trace asks for, which it takes no time of a step
  /// for.
  void measurePeaks();
  /// What else a trace shows of each rank and instruction.
  void prepareTrace();
  Trace::Cost costOf(int64_t rank, const Instruction &instruction);
  /// The scope that the function at hand is run for; empty where none is.
  std::string scopeOf(int64_t rank) const;
  /// Takes the times of the ranks.
  void addTo(Profile &profile, double seconds);
  bool countRun(int64_t rank, const Instruction &instruction);
  void scaleTimes(int64_t rank);
  /// Notes what has been executed between two marks of the rank's device.
  void note(int64_t rank, const Instruction &instruction, size_t begin,
            size_t end);
  /// Adds what was noted to the profile and the trace.
  void recordTimes(int64_t rank);
  void start(int64_t rank, const Start &start);
  void wait(int64_t rank, const Wait &wait);
  int64_t residentBytes(int64_t rank, const Step &step, bool inHost) const;

  // Last of all to go.
  const std::shared_ptr<Ranks> shared;
  const BoundProgram &program;
  std::span<const char> constants;
  /// The size of a step of the only rank, where it computes on a processor;
  /// else neither brief nor serial.
  const StepSize size;
  Connections connections;
  /// By argument: whether a result is written over it.
  std::vector<bool> isTakenOver;
  /// Those of other processes have no device.
  std::vector<Rank> states;
  /// For traces: the names of ranks; by class, what of the arena is in use by
  /// the numbers of its instructions.
  std::vector<std::string> rankNames;
  std::vector<std::map<size_t, int64_t>> arenaBytes;
  /// The run of the ranks' threads that was left last; -1 for none.
  std::atomic<int64_t> leftRound = -1;
  /// Runs in a row, up to the last one, that took hardly more than waking a
  /// thread.
  std::atomic<int64_t> shortRuns = 0;
  /// Where a brief step is not bounded, what asks whether to go on, and when it
  /// does so next.
  const RankThreads::GoOn *openLoopsAsk = nullptr;
  Trace::Clock::time_point nextAsk = {};
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_EXECUTOR_H
