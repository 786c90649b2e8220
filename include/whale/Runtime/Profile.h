//===- Profile.h - Time spent in steps --------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROFILE_H
#define WHALE_RUNTIME_PROFILE_H

#include <cstdint>
#include <vector>

namespace whale::runtime {

/// The time of each instruction of each rank, summed over several steps. Its
/// size depends on the program, not on the number of steps. Program::describe
/// prints it as text.
struct Profile {
  struct Spent {
    /// How often the instruction ran, counting each iteration of a loop.
    int64_t count = 0;
    double seconds = 0;
    /// Collectives only: the part of `seconds` spent waiting for other ranks.
    double waitedSeconds = 0;
  };

  int64_t steps = 0;
  double stepSeconds = 0;
  /// By rank, then by the instruction's number in its class.
  std::vector<std::vector<Spent>> ranks;

  /// Adds the times of other steps of the same program.
  void add(const Profile &other);
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROFILE_H
