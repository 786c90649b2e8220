//===- Step.h - A step that was handed over ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step runs on after Program::submit has returned. What the caller and the
// arrays of its results know of it is whether it has ended, and how.
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

/// What a wait that was interrupted throws, and whatever needs a step that was.
class Interrupted : public Error {
public:
  using Error::Error;
};

/// Called every few hundredths of a second by a thread that waits; true ends
/// the waiting.
using AskInterrupted = std::function<bool()>;

/// All functions may be called by any thread. In a child of the process that
/// submitted a step, what is read here was known when it was forked.
class Step {
public:
  /// Called with what becomes of the donated arguments of a step that failed
  /// or was interrupted, before anybody learns that it has.
  using OnLoss = std::function<void(const char *fate)>;

  /// A step of the calling thread that runs after `before`: those whose results
  /// it takes.
  static std::shared_ptr<Step>
  create(std::span<const std::shared_ptr<Step>> before, OnLoss onLoss);

  bool hasEnded() const { return outcome.load() != Outcome::Open; }
  bool hasDoneWell() const { return outcome.load() == Outcome::Well; }

  /// Waits until the step has ended and throws its Error, if any. Where
  /// `interrupted` says so, the step ends with all before it that the calling
  /// thread has submitted; those of other threads go on. Throws Interrupted
  /// then, and for a step that was interrupted before.
  void wait(const AskInterrupted &interrupted = nullptr);

  /// Throws the Error of a step that is known to have failed, or whose end can
  /// never be known: in a child of the process that ran it.
  void check() const;

  /// Ends the open ones of this step and those before it that the calling
  /// thread has submitted; their ranks stop before their next instruction.
  void interrupt();

  /// Gives up steps of this process, whoever has submitted them, and waits
  /// until they have left. A thread that waits for one of them does so for
  /// ever: the process is about to end.
  static void stop(std::span<const std::shared_ptr<Step>> steps);

  /// Whether nothing runs for it any more, but what an interrupted step leaves
  /// to ranks that were in the middle of an instruction.
  bool hasLeft() const { return left; }

  // For what runs the step.

  /// Whether it is of no use to go on with it.
  bool isUnwanted() const { return isGivenUp || hasEnded(); }
  /// Says that the step runs after another one, too.
  void follow(const std::shared_ptr<Step> &other);
  /// To be called before `publish`: nothing else ends the step then. False
  /// where it is unwanted.
  bool claim();
  /// Lets everybody know that a claimed step has ended well.
  void publish();
  /// Ends the step with an error, unless it has ended.
  void fail(const std::string &what) { end(Outcome::Failed, what); }
  void failInterrupted();
  /// See `hasLeft`.
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
  /// Written before `outcome`, and read after it.
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
