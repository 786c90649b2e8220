//===- Job.h - The processes that run a program together --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A job is one or more processes, on one host or several. One of them, the
// first, coordinates: all others are connected with it. The connections carry
// what the processes tell each other before they exchange data, and errors;
// data go another way (runtime/transport). docs/clusters.md has the protocol.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_JOB_H
#define WHALE_RUNTIME_JOB_H

#include "whale/Runtime/Types.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace whale::runtime {

/// How a process finds the others.
struct JobOptions {
  int64_t process = 0;
  int64_t processes = 1;
  /// Where the first process listens: a name or address, and a port.
  std::string host = "127.0.0.1";
  int port = 0;
  /// Of the first process: a socket that listens already, or -1.
  int listener = -1;
  /// A pipe to the launcher that has started this process, or -1: it hears from
  /// it that the process has joined.
  int launcher = -1;
  /// How often the job was started before: processes of one attempt meet.
  int64_t attempt = 0;
  /// Seconds until all processes must have joined.
  double joinLimit = 300;
  /// Seconds without progress that end the job; 0 for none, by default from
  /// the time of the slowest step. At least as many as three reports take.
  std::optional<double> progressLimit;
  /// The checksum of the program's manifest, where the process has one before
  /// it joins. Processes that have different ones do not meet.
  std::string program;
  /// Seconds from one report of a process to the next; the same in all.
  double reportSeconds = 1;

  /// From the launcher that has started this process; nothing without one. In
  /// this order: whale-run --nprocs; PMIx (mpirun, srun --mpi=pmix); srun with
  /// WHALE_HOST and WHALE_PORT; torchrun and Kubernetes' training operators
  /// (RANK, WORLD_SIZE, MASTER_ADDR, and WHALE_PORT or MASTER_PORT + 1).
  /// Collective under PMIx. Throws Error where something is missing or wrong.
  static std::optional<JobOptions> fromEnvironment();
};

/// What a process reports about its steps.
struct Progress {
  bool isInStep = false;
  /// Whether it moves an array to other processes, outside of a step.
  bool isInRelayout = false;
  /// Counts instructions of all ranks of the process.
  uint64_t count = 0;
  /// Steps that have ended, and the seconds of the slowest.
  uint64_t steps = 0;
  double slowestStep = 0;
  /// "rank 2", or "ranks 2 to 3": those of the process.
  std::string ranks;
  /// Which instruction a rank is in that waits for no other; empty if all wait.
  std::string busy;
  /// In which instruction a rank waits, and for which other ranks.
  std::string waiting;
  /// The other processes of the ranks that it waits for.
  std::vector<int64_t> awaited;
  /// The programs that it is in a step of: a name, what is given, a checksum.
  std::vector<std::string> running;
};

/// All functions may be called by any thread, collective ones by one thread of
/// each process in one order.
class Job {
public:
  /// Collective: returns when all processes have joined. Throws Error.
  static std::shared_ptr<Job> join(const JobOptions &options);
  virtual ~Job() = default;

  virtual int64_t process() const = 0;
  virtual int64_t processes() const = 0;

  /// "process 2 (host b, pid 77)": this one, as errors name it.
  std::string name() const;
  /// Calls `action`, which has no part in what the processes do together: where
  /// there are others, an Error that it throws names the process.
  template <typename Action>
  auto alone(Action action) const {
    try {
      return action();
    } catch (const Error &error) {
      if (processes() == 1)
        throw;
      throw Error(name() + ": " + error.what());
    }
  }

  /// Collective: what each process has given, by process. Calls that meet have
  /// one name, or all throw Error.
  virtual std::vector<std::string> allGather(const std::string &name,
                                             const std::string &mine) = 0;

  /// Collective: throws one Error in all processes, which names the field and
  /// two values of it, unless all have given the same.
  void agree(const std::vector<std::pair<std::string, std::string>> &fields);

  /// Collective: what each process's `action` gives, by process; where it
  /// throws in one, its Error in all, with the name of the first such process.
  /// An interruption is the caller's alone.
  std::vector<std::string> together(const std::string &name,
                                    const std::function<std::string()> &action);

  /// Ends the job with an error. Returns the job's first error, which may be
  /// another one.
  virtual std::string fail(const std::string &what) = 0;
  /// Called once, by a thread of the job, when the job has failed; at once if
  /// it has. The destructor of what is returned waits for a call of it.
  virtual std::shared_ptr<void>
  onFailure(std::function<void(const std::string &error)> callback) = 0;

  /// Adds to what is reported: a job may have several programs. Called every
  /// second, until what is returned goes; its destructor waits for a call.
  virtual std::shared_ptr<void>
  reportProgress(std::function<Progress()> progress) = 0;

  /// Collective: the process ends in order. Throws the job's Error.
  virtual void leave() = 0;

  /// In a child of `fork`, before all else: it takes no part in the job, whose
  /// connections end with the process that has joined. From here on `check` and
  /// the collective functions throw Error. The object must not be destroyed any
  /// more: it would wait for threads that a child does not have.
  virtual void forget() {}
  virtual void check() const {}
};

/// The host and the port, from 1, of "HOST:PORT"; nothing where it is none.
/// Brackets go round the colons of an address.
std::optional<std::pair<std::string, int>>
parseAddress(const std::string &text);

/// What a launcher starts on its host.
struct LaunchOptions {
  /// Processes `first` to `first + count` of `total`.
  int64_t first = 0, count = 1, total = 1;
  /// Where the first of all listens; a port of 0 is any, on one host.
  std::string host = "127.0.0.1";
  int port = 0;
  /// The arguments of each, from its own name on.
  std::vector<std::string> arguments;
  /// For what all but the first of this host print; empty for nothing.
  std::string logDirectory;
  /// How often all are started again after one has failed.
  int64_t restarts = 0;
};

/// Starts processes of this program, with variables for
/// `JobOptions::fromEnvironment`, and waits for them. The output of the first
/// goes where this one's goes; errors are printed, of each attempt the first.
/// Returns the exit status: 0 if all have ended well, minus the signal that has
/// ended them, or else that of the process that has failed. Throws Error.
int runProcesses(const LaunchOptions &options);

/// The file of a directory for logs that a process writes to.
std::string logFile(const std::string &directory, int64_t process);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_JOB_H
