//===- Profile.h - Where the time of steps went -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROFILE_H
#define WHALE_RUNTIME_PROFILE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace whale::runtime {

/// What each instruction of each rank took, over several steps. It grows with
/// the program, not with the steps; Program::describe says it in words.
struct Profile {
  struct Spent {
    /// How often the instruction ran; in a loop, each time counts.
    int64_t count = 0;
    double seconds = 0;
    /// Of collectives: the part of `seconds` that the rank waited for others.
    double waitedSeconds = 0;
    /// Of collectives: the part of `seconds` that it slept because links of an
    /// emulated network were not done.
    double linkSeconds = 0;
  };

  int64_t steps = 0;
  double stepSeconds = 0;
  /// By rank, then by the instruction's number in its class; empty for ranks of
  /// other processes.
  std::vector<std::vector<Spent>> ranks;

  /// Adds other steps of the same program.
  void add(const Profile &other);
  std::string json() const;
  /// Takes ranks over from another process's `json` of the same steps.
  void take(const std::string &json, const std::vector<std::size_t> &taken);
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROFILE_H
