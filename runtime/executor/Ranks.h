//===- Ranks.h - What programs share ----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What belongs to a rank and not to a program: its thread, its GPU, its arena,
// its place in the transports between all ranks, by NCCL, too. Programs
// for equal ranks (RanksOptions) share them, and their steps follow one another
// in one queue: what they keep in memory together is what the largest needs.
//
// Cost: threads and a transport are made once, whichever programs come. An
// arena is as large as the largest program that has run needs; a larger one
// replaces it, after which programs find their buffers anew.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_RANKS_H
#define WHALE_RUNTIME_EXECUTOR_RANKS_H

#include "device/Device.h"
#include "executor/AssignGpus.h"
#include "executor/ExchangeMemory.h"
#include "executor/ExchangePlan.h"
#include "executor/RankThreads.h"
#include "executor/StepQueue.h"
#include "transport/SharedMemory.h"
#include "transport/nccl/NcclTransport.h"
#include "whale/Cluster/Topology.h"
#include "whale/Runtime/Program.h"

#include <list>
#include <map>

namespace whale::runtime {

class Executor;

/// Which process runs each of so many ranks.
std::shared_ptr<const RankMap> rankMapOf(const LoadOptions &load, size_t ranks);

/// What ranks are made for.
struct RanksOptions {
  /// Of a program in this process. Reads, of `load`, what does not depend on
  /// programs.
  RanksOptions(const BoundProgram &program, const LoadOptions &load);

  /// Whether programs of both may have the same ranks. What emulates a network
  /// or late devices is for one program.
  bool canShare(const RanksOptions &other) const;

  std::shared_ptr<const RankMap> map;
  /// Null where there is one process.
  std::shared_ptr<Job> job;
  int64_t threadsPerRank;
  std::optional<TransportKind> transport;
  Network network;
  std::optional<uint64_t> lateSeed;
  /// By rank, where they are for GPUs: nothing for those on the processor.
  std::vector<std::optional<WantedGpu>> gpus;
  /// For tests: what stands for the libraries of a GPU.
  const cuda::Libraries *testLibraries;
};

class Ranks {
public:
  /// Ranks of a program's own. Collective where there are several processes.
  explicit Ranks(RanksOptions options);
  ~Ranks();

  /// Ranks that others of this process have, if these may be shared, or new
  /// ones for all that come. Collective, too: all processes find the same.
  static std::shared_ptr<Ranks> share(const RanksOptions &options);

  /// While one exists the thread, one of the ranks, is in a function of Python
  /// that a step calls. Steps that are handed over there would wait for it in
  /// the queue of these ranks, and of those around them.
  class Calling {
  public:
    Calling();
    ~Calling();
    Calling(const Calling &) = delete;
    Calling &operator=(const Calling &) = delete;

  private:
    std::vector<const Ranks *> before;
  };
  /// Whether the calling thread is in such a function of these ranks.
  bool isCalling() const;

  const RanksOptions options;
  const RankMap &map() const { return *options.map; }
  Job *job() const { return options.job.get(); }
  int64_t processes() const { return job() ? job()->processes() : 1; }

  //===--------------------------------------------------------------------===//
  // Turns
  //===--------------------------------------------------------------------===//

  /// What the steps of all programs wait in.
  StepQueue &queue() { return *steps; }
  /// Held by who uses the ranks.
  std::mutex mutex;
  /// Calls `action` behind the steps that were handed over before, `before`
  /// among them, and waits for it. Its Error ends the job, where
  /// there is one, and is thrown here; it may be called, or go on, after this
  /// has thrown Interrupted.
  void inTurn(std::function<void(const AskInterrupted &)> action,
              std::vector<std::shared_ptr<Step>> before = {},
              const AskInterrupted &interrupted = nullptr);
  /// Of the last step that was left to its device; for the queue's thread.
  std::chrono::steady_clock::time_point lastEnd = {};

  /// A run of a program, or an exchange, while this exists.
  class Run {
  public:
    /// `executor`: null for an exchange. Throws Error where the job has failed.
    Run(Ranks &ranks, Executor *executor);
    ~Run();

  private:
    Ranks &ranks;
  };

  /// Whether a rank is still in an instruction of a run that was interrupted:
  /// the next one waits for it, and programs that come have other ranks.
  bool isHeldUp();
  /// Calls `job(rank)` for each of this process, on its thread, as
  /// RankThreads::run.
  bool run(std::function<void(int64_t rank)> job,
           const RankThreads::GoOn &goOn = {});
  /// Runs `job` for the only rank on the calling thread.
  void runHere(const std::function<void(int64_t rank)> &job);
  RankThreads &threads() { return rankThreads; }
  /// Tells the device of a rank which thread it is used by, once for each.
  void attach(int64_t rank, Device &device);

  //===--------------------------------------------------------------------===//
  // Errors
  //===--------------------------------------------------------------------===//

  /// Ends all processes, where there are others: they wait for this one.
  /// Returns their first error.
  std::string failJob(const std::string &what) const {
    return job() ? job()->fail(what) : what;
  }
  /// Keeps the first error of a run and stops all ranks, in all processes.
  void fail(const std::string &what);
  /// Of this process only.
  void stop(const std::string &what);
  void throwFirstError();
  /// The transport may use the memory of a run that has failed as long as the
  /// process lives: none of it is freed.
  void abandon(std::shared_ptr<const void> ofRun);
  bool isAbandoned() const { return wasAbandoned; }

  //===--------------------------------------------------------------------===//
  // Connections
  //===--------------------------------------------------------------------===//

  /// Between all ranks, through the memory of their hosts.
  Transport &host() { return *hostTransport; }
  /// By rank; null for those that are not here or on the processor.
  const std::vector<std::shared_ptr<cuda::Gpu>> &gpus() const {
    return gpuOfRank;
  }
  /// Between those on GPUs; null where NCCL is not to be used.
  NcclTransport *nccl() const { return gpuTransport.get(); }
  /// Gives each process what all have given.
  Exchange exchangeOf(const char *what) const;

  /// Through the memory of the hosts, or from GPU to GPU.
  enum class ExchangeWay : uint8_t { Hosts, Gpus };
  /// Whether an array, whose step has ended, can go from GPU to GPU, all of
  /// which can here.
  bool exchangesByGpus(const Array &array) const;
  /// Brings arrays, each as its shards by rank, from one layout to another, in
  /// one exchange; sources that only the caller has given are freed on the way.
  /// `fromRanks` is null where there is one process. Collective where there are
  /// several processes.
  using Shards = std::vector<std::shared_ptr<Buffer>>;
  std::vector<Shards> exchange(std::vector<ArrayMove> moves,
                               std::vector<Shards> sources, ExchangeWay way);
  /// Makes what an exchange from GPU to GPU needs besides, in a turn.
  /// Collective. Returns why a process cannot, the same in all: nothing has
  /// changed then.
  std::string connectExchange();
  /// What it takes for a rank of this process.
  ExchangeMemory &exchangeMemory(int64_t rank, ExchangeWay way) {
    return way == ExchangeWay::Hosts ? *hostMemory : *gpuMemories[rank];
  }

  //===--------------------------------------------------------------------===//
  // What a rank has
  //===--------------------------------------------------------------------===//

  struct Rank {
    /// No other rank of the process has it, nor had one before.
    uint64_t number = 0;
    /// What operations on the processor use in turn.
    std::shared_ptr<CpuContext> context;
    /// What runs use in turn.
    std::shared_ptr<Buffer> arena, workspace;
    /// Counts how often they were replaced.
    uint64_t version = 0;
    /// For the progress that the job watches: what has been executed, and what
    /// is. Other threads read them.
    std::atomic<uint64_t> executed = 0;
    std::atomic<const Instruction *> current = nullptr;
  };
  /// Those of other processes have nothing.
  Rank &rank(int64_t number) { return ranks[number]; }
  /// Makes the memory of a rank large enough for a device of it.
  const Rank &reserve(int64_t rank, Device &device, int64_t arenaBytes);
  /// Frees it; it is made again when it is needed. False if there is none.
  bool dropMemory(int64_t rank);
  /// What `action` returns, unless the executor is in a run, which does not
  /// begin then. `areIdle`: whether no other is, either.
  bool whileNotRunning(const Executor &executor,
                       const std::function<bool(bool areIdle)> &action);

  //===--------------------------------------------------------------------===//
  // Steps
  //===--------------------------------------------------------------------===//

  /// Keeps the Overlap::isOver of a run that was left to its devices; null for
  /// none.
  void setLeft(const Executor *executor, std::function<bool()> isOver = {});
  bool hasLeft() const { return leftBy; }
  bool hasLeft(const Executor &executor) const { return leftBy == &executor; }
  /// Whether the executor has left nothing, or it is over; may throw its Error.
  bool isLeftOver(const Executor &executor);
  /// It is nobody's then.
  void endLeft(const Executor &executor);

  void countStep(double seconds);

private:
  struct Registry;
  static Registry &registry();
  const std::vector<ExchangePlan> &
  exchangePlans(std::span<const ArrayMove> moves, ExchangeWay way);
  void findGpus();
  Progress progress();

  /// By rank.
  const Topology hostOfRank;
  std::vector<std::shared_ptr<cuda::Gpu>> gpuOfRank;
  std::unique_ptr<NcclTransport> gpuTransport;
  std::unique_ptr<Transport> hostTransport;
  /// For what exchanges pack; null where nobody else could read it.
  std::unique_ptr<SharedMemory> sharedMemory;
  std::vector<Rank> ranks;
  struct PlannedExchange {
    ExchangeWay way;
    /// Of this process, or of its ranks.
    std::vector<ExchangePlan> plans;
  };
  /// The last one first.
  std::list<PlannedExchange> exchanges;
  const std::unique_ptr<ExchangeMemory> hostMemory;
  /// By rank; none where exchanges do not go from GPU to GPU.
  std::vector<std::unique_ptr<ExchangeMemory>> gpuMemories;
  bool wasAbandoned = false;

  /// Guards who is at work.
  std::mutex idleMutex;
  bool isRunning = false;
  /// Null in an exchange.
  Executor *running = nullptr;
  std::atomic<const Executor *> leftBy = nullptr;
  std::function<bool()> isOver;
  uint64_t stepCount = 0;
  double slowestStep = 0;

  std::mutex errorMutex;
  std::optional<std::string> firstError;

  // Last: their threads stop before what they use goes.
  RankThreads rankThreads;
  std::unique_ptr<StepQueue> steps;
  /// In functions of whose steps these were made.
  const std::vector<const Ranks *> outer;
  /// Keep the ranks known to the job.
  std::shared_ptr<void> failureListener, progressReporter;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_RANKS_H
