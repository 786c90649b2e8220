//===- AlikeRanks.h - Ranks that do the same at the same times --*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_STEP_ALIKERANKS_H
#define WHALE_LIB_STEP_ALIKERANKS_H

#include "whale/Cluster/Cluster.h"
#include "whale/ProgramFormat/Program.h"
#include "whale/Step/CostModel.h"

#include <unordered_map>
#include <vector>

namespace whale {

/// Which ranks are alike, and which groups of channels.
struct AlikeRanks {
  /// By rank, the number of those that are like it.
  std::vector<size_t> numbers;
  /// The lowest rank of each number; ascending.
  std::vector<int64_t> first;
  /// By channel's collective and rank: a number that groups have in common
  /// whose members are alike. A rank without a group is not there.
  std::unordered_map<const format::Collective *,
                     std::unordered_map<int64_t, size_t>>
      groups;
  /// By rank: a number that its node has in common with those of the same links
  /// and ranks.
  std::vector<size_t> nodes;
};

/// Starts with ranks of one class, kind of device and slowdown, and divides
/// them until those that are alike are in nodes that have as many ranks of each
/// number, and in each channel their groups take as much time and bytes alone
/// and have as many members of each number in each of their nodes. Then each
/// rank does what the others of its number do, at the same times, as times
/// depend on nothing else. Without `joins` no rank is like another.
AlikeRanks findAlikeRanks(const format::Program &program,
                          const Cluster &cluster, const CostModel &model,
                          bool joins);

} // namespace whale

#endif // WHALE_LIB_STEP_ALIKERANKS_H
