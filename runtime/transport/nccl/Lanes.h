//===- Lanes.h - A rank's part of a channel by NCCL -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_NCCL_LANES_H
#define WHALE_RUNTIME_TRANSPORT_NCCL_LANES_H

#include "transport/message/Part.h"

namespace whale::runtime::nccl {

/// What is staged begins at multiples of so much.
inline constexpr int64_t alignment = 256;
inline int64_t aligned(int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// What a rank does in a channel, which outlives it.
struct Lane {
  Lane(const Collective &collective, int64_t channel, int64_t rank);

  message::Part part;
  /// Whose communicator it needs; null where it exchanges data with nobody.
  const Group *group = nullptr;
  /// Elements of a slice that are exchanged at a time, in an all-reduce.
  int64_t chunk = 0;
  int64_t scratchBytes = 0;
};

/// Returns why ranks are not on GPUs of their own; empty if they are.
/// `gpuOfRank`: see Communicators.
std::string sharingOf(const Group &group,
                      const std::vector<std::string> &gpuOfRank);

/// Returns why a channel cannot go by NCCL; empty if it can.
std::string refusalOf(const Collective &collective,
                      const std::vector<std::string> &gpuOfRank);

} // namespace whale::runtime::nccl

#endif // WHALE_RUNTIME_TRANSPORT_NCCL_LANES_H
