//===- Step.h - A submitted step --------------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step continues to run after Program::submit has returned. The caller and
// the arrays of its results use this class to wait for its end and get its
// error.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_STEP_H
#define WHALE_RUNTIME_STEP_H

#include "whale/Runtime/Types.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

namespace whale::runtime {

/// Thrown by an interrupted wait, and by all functions that need an interrupted
/// step.
class Interrupted : public Error {
public:
  using Error::Error;
};

/// Called every few hundredths of a second by a waiting thread; returning true
/// ends the wait.
using AskInterrupted = std::function<bool()>;

/// All functions may be called by any thread. In a forked child of the process
/// that submitted a step, they return the state at the time of the fork.
class Step {
public:
  /// Called with the fate of the donated arguments of a step that failed or was
  /// interrupted, before other threads can see that it has.
  using OnLoss = std::function<void(const std::string &fate)>;

  /// Creates a step of the calling thread that runs after the steps in
  /// `before`, whose results it uses.
  static std::shared_ptr<Step>
  create(std::span<const std::shared_ptr<Step>> before, OnLoss onLoss);

  bool hasEnded() const { return outcome.load() != Outcome::Open; }

  /// Waits until the step has ended and throws its Error, if any. If
  /// `interrupted` returns true, ends this step and all earlier steps that the
  /// calling thread submitted, and throws Interrupted; steps of other threads
  /// continue. Also throws Interrupted for a step that was interrupted earlier.
  void wait(const AskInterrupted &interrupted = nullptr);

  /// Throws the Error of a step that is known to have failed, or whose end
  /// can't be observed because this is a child of the process that ran it.
  void check() const;

  /// Ends this step and those before it that the calling thread has submitted,
  /// unless they have ended; their ranks stop before their next instruction.
  void interrupt();

  /// Abandons steps of this process, whichever thread submitted them, and waits
  /// until their ranks have stopped. Threads that wait for one of them block
  /// for ever: the process is about to exit.
  static void stop(std::span<const std::shared_ptr<Step>> steps);

  /// Whether no rank works on it any more, except ranks that were executing an
  /// instruction when it was interrupted.
  bool hasLeft() const { return left; }

  // For the code that runs the step.

  /// Whether the step need not continue: it was abandoned or has ended.
  bool isUnwanted() const { return isGivenUp || hasEnded(); }
  /// Makes the step run after another one, too.
  void follow(const std::shared_ptr<Step> &other);
  /// Must be called before the results are written: returns false if the step
  /// is unwanted. `publish` follows.
  bool claim();
  /// Announces that a claimed step has ended successfully.
  void publish();
  /// Ends the step with an error, if it has not ended.
  void fail(const std::string &what) { end(Outcome::Failed, what); }
  void failInterrupted();
  /// Makes `hasLeft` return true.
  void leave();

private:
  enum class Outcome { Open, Well, Failed, Interrupted };

  Step() = default;
  bool claim(OnLoss &taken);
  void end(Outcome how, const std::string &what);
  void publish(Outcome how);

  std::thread::id thread = std::this_thread::get_id();
  pid_t process;
  std::atomic<Outcome> outcome = Outcome::Open;
  std::atomic<bool> isGivenUp = false, left = false;
  /// Written before `outcome` is set, and read after it.
  std::string error;

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by the mutex, empty once the step is claimed.
  bool isClaimed = false;
  std::vector<std::shared_ptr<Step>> before;
  OnLoss onLoss;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_STEP_H
