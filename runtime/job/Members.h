//===- Members.h - What is known of a job's processes -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_JOB_MEMBERS_H
#define WHALE_RUNTIME_JOB_MEMBERS_H

#include "whale/Runtime/Job.h"

#include <chrono>

namespace whale::runtime::job {

struct Connection;

/// "host b, pid 77".
std::string placeOf(const std::string &host, uint64_t process);

double secondsSince(std::chrono::steady_clock::time_point time);

struct Member {
  Connection *connection = nullptr;
  /// "host b, pid 77".
  std::string place;
  std::chrono::steady_clock::time_point heard =
                                            std::chrono::steady_clock::now(),
                                        advanced =
                                            std::chrono::steady_clock::now(),
                                        outside =
                                            std::chrono::steady_clock::now(),
                                        left;
  Progress progress;
  /// "host b, pid 77" of who said to be this process, but proved nothing. It
  /// may be anybody: this is to be printed, and decides nothing.
  std::string stranger;
  /// Whether it got the error of the job.
  bool knowsFailure = false;
  bool hasLeft = false;
  std::optional<std::pair<std::string, std::string>> given;

  /// Whether it is at what only others may end.
  bool isWaiting() const {
    return progress.isInStep || progress.isInRelayout || given;
  }
};

/// Of the coordinator, by process.
class Members : public std::vector<Member> {
public:
  using std::vector<Member>::vector;

  /// "process 1 (host b, pid 77, ranks 2 to 3)".
  std::string nameOf(const Member &member) const;
  /// "process 2 of 4 has".
  std::string missing() const;
  /// What processes that wait for others have said last, one in a program and
  /// one outside; empty if none waits.
  std::string whoWait() const;
  /// Who waits for a rank of a process that has ended, for six reports since
  /// then; empty if none does. All that one has sent has arrived, or will
  /// within the time that the end of a transport takes, which is less than
  /// that.
  std::string whoWaitsInVain(double reportSeconds) const;
  /// Who has been outside of steps for so many seconds, while another one waits
  /// for it; empty if nobody has.
  std::string whoLetsWait(double seconds) const;
  /// Two processes that are in steps of different programs, or one that is in a
  /// step and one that exchanges something; empty if there are none. For a job
  /// that stands still.
  std::string whoRunOtherSteps() const;
  /// Who came in the name of a missing process, but may have another secret;
  /// empty if nobody did.
  std::string whoProvedNothing() const;
};

} // namespace whale::runtime::job

#endif // WHALE_RUNTIME_JOB_MEMBERS_H
