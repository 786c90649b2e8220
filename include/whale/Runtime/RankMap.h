//===- RankMap.h - Which process runs each rank -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_RANKMAP_H
#define WHALE_RUNTIME_RANKMAP_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace whale::runtime {

/// Which process runs each rank, as one of the processes sees it.
struct RankMap {
  RankMap(std::vector<int64_t> processOf, int64_t process);
  /// Ranks are dealt out to processes in consecutive runs, as even as can be.
  static RankMap inRuns(size_t ranks, int64_t processes, int64_t process);

  bool isLocal(size_t rank) const { return processOf[rank] == process; }
  /// The first rank of each process; -1 where it has none.
  std::vector<int64_t> firstRanks(int64_t processes) const;
  bool operator==(const RankMap &) const = default;

  /// By rank.
  std::vector<int64_t> processOf;
  /// This process, and its ranks in ascending order.
  int64_t process;
  std::vector<int64_t> local;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_RANKMAP_H
