//===- Greeting.h - How a process reaches the first one ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_JOB_GREETING_H
#define WHALE_RUNTIME_JOB_GREETING_H

#include "whale/Runtime/Job.h"

#include <chrono>
#include <optional>
#include <string>

namespace whale::runtime::job {

/// A connection with the first process over which both ends have proved that
/// they have the secret.
class Greeting {
public:
  /// `process`, of this host, is the one that speaks. `failure`: why a process
  /// that has ended had not joined, where another one, its launcher, says so.
  /// Throws Error where the first process is not reached before `end`, is
  /// another program or has another secret.
  Greeting(const JobOptions &options, const std::string &secret, int64_t pid,
           std::chrono::steady_clock::time_point end,
           const std::string &failure = "");
  ~Greeting();
  Greeting(const Greeting &) = delete;
  Greeting &operator=(const Greeting &) = delete;

  /// Hands the socket over, with what has been read of it already.
  int take(std::string &in);

private:
  void connect();
  bool authenticate(const std::string &secret, int64_t pid,
                    const std::string &failure);
  std::optional<std::string> readChallenge();
  void write(const std::string &bytes);
  std::string place() const;

  const JobOptions &options;
  const std::chrono::steady_clock::time_point end;
  int socket = -1;
  std::string in;
};

} // namespace whale::runtime::job

#endif // WHALE_RUNTIME_JOB_GREETING_H
