//===- RankMap.cpp - Which process runs each rank -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/RankMap.h"

#include <utility>

namespace whale::runtime {

RankMap::RankMap(std::vector<int64_t> given, int64_t process)
    : processOf(std::move(given)), process(process) {
  for (size_t rank = 0; rank < processOf.size(); ++rank)
    if (isLocal(rank))
      local.push_back(static_cast<int64_t>(rank));
}

RankMap RankMap::inRuns(size_t ranks, int64_t processes, int64_t process) {
  std::vector<int64_t> processOf;
  processOf.reserve(ranks);
  auto count = static_cast<int64_t>(ranks);
  for (int64_t rank = 0; rank < count; ++rank)
    processOf.push_back(rank * processes / count);
  return {std::move(processOf), process};
}

std::vector<int64_t> RankMap::firstRanks(int64_t processes) const {
  std::vector<int64_t> first(static_cast<size_t>(processes), -1);
  for (size_t rank = processOf.size(); rank-- > 0;)
    first[processOf[rank]] = static_cast<int64_t>(rank);
  return first;
}

} // namespace whale::runtime
