//===- Profile.cpp - Where the time of steps went ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Profile.h"

#include <cstddef>

namespace whale::runtime {

void Profile::add(const Profile &other) {
  steps += other.steps;
  stepSeconds += other.stepSeconds;
  ranks.resize(other.ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].resize(other.ranks[rank].size());
    for (std::size_t i = 0; i < ranks[rank].size(); ++i) {
      ranks[rank][i].count += other.ranks[rank][i].count;
      ranks[rank][i].seconds += other.ranks[rank][i].seconds;
      ranks[rank][i].waitedSeconds += other.ranks[rank][i].waitedSeconds;
    }
  }
}

} // namespace whale::runtime
