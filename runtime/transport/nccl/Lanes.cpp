//===- Lanes.cpp - A rank's part of a channel by NCCL ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/nccl/Lanes.h"

#include "cuda/BoxKernels.h"

#include <algorithm>

namespace whale::runtime::nccl {

/// What is staged of an all-reduce at a time: enough for full bandwidth.
static constexpr int64_t chunkBytes = 64 << 20;

Lane::Lane(const Collective &collective, int64_t channel, int64_t rank)
    : part(collective, channel, rank), scratchBytes(part.stagingBytes) {
  for (const Group &each : collective.groups)
    if (std::ranges::count(each, rank))
      group = &each;
  if (!collective.isAllReduce() || part.peers.empty())
    return;
  int64_t bytes = byteSize(collective.parts.front().dtype);
  auto peers = static_cast<int64_t>(part.peers.size());
  chunk = std::max<int64_t>(chunkBytes / (peers * bytes), 1);
  int64_t terms = part.isSmall ? part.slices.back().end
                               : std::min(chunk, part.slices[0].size());
  scratchBytes = peers * aligned(terms * bytes);
}

std::string sharingOf(const Group &group,
                      const std::vector<std::string> &gpuOfRank) {
  std::map<std::string, int64_t> rankOf;
  for (int64_t rank : group) {
    if (gpuOfRank[rank].empty())
      return "rank " + std::to_string(rank) + " is on no GPU";
    auto [it, isNew] = rankOf.emplace(gpuOfRank[rank], rank);
    if (!isNew)
      return "ranks " + std::to_string(it->second) + " and " +
             std::to_string(rank) + " share a GPU";
  }
  return "";
}

/// Why there is no kernel for what a channel reduces; empty if there is.
static std::string reductionOf(const Collective &collective,
                               const ChannelPart &part) {
  if (!part.reduction)
    return "";
  size_t terms = 0;
  for (const Group &group : collective.groups)
    terms = std::max(terms, group.size());
  for (const auto &[rank, cells] : part.cells)
    for (const Cell &cell : *cells)
      terms = std::max(terms, cell.from.size());
  return cuda::BoxKernels::canReduce(part.dtype, *part.reduction, terms)
             ? ""
             : "no kernel reduces " + std::to_string(terms) + " terms of " +
                   std::string(name(part.dtype));
}

std::string refusalOf(const Collective &collective,
                      const std::vector<std::string> &gpuOfRank) {
  std::string why;
  for (const ChannelPart &part : collective.parts)
    if (why.empty())
      why = reductionOf(collective, part);
  for (const Group &group : collective.groups)
    if (why.empty())
      why = sharingOf(group, gpuOfRank);
  // Who exchanges data with nobody copies on his GPU.
  for (int64_t rank : collective.participants)
    if (why.empty())
      why = sharingOf({rank}, gpuOfRank);
  return why;
}

} // namespace whale::runtime::nccl
