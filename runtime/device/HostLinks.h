//===- HostLinks.h - Emulated links between hosts and devices ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_HOSTLINKS_H
#define WHALE_RUNTIME_DEVICE_HOSTLINKS_H

#include "device/Device.h"

#include <map>
#include <mutex>

namespace whale::runtime {

/// When copies between the memories of a node's host and its devices end, whose
/// link all of the node's devices share: one copy after the other, in the order
/// in which they are started. A process has as much of a link as it has of the
/// node's ranks. Copies of a node without a host take no time.
class HostLinks {
public:
  /// `ranks` are those of this process.
  HostLinks(Network network, std::span<const int64_t> ranks);

  /// The end of a copy that starts now. From any thread.
  Device::Clock::time_point reserve(int64_t rank, int64_t bytes);

private:
  struct Link {
    double secondsPerByte = 0;
    Device::Clock::time_point free = {};
  };

  const Network network;
  std::mutex mutex;
  /// By node.
  std::map<unsigned, Link> links;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_HOSTLINKS_H
