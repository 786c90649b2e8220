//===- Network.h - Links between ranks --------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_NETWORK_H
#define WHALE_RUNTIME_NETWORK_H

#include <cstdint>
#include <functional>

namespace whale::runtime {

/// The cost of sending bytes from one rank to another.
struct Link {
  /// Seconds before the first byte arrives; finite.
  double latency = 0;
  /// Finite.
  double secondsPerByte = 0;
};

/// Returns the emulated link between two ranks. Empty if transfers take only
/// their real time.
using Network = std::function<Link(int64_t from, int64_t to)>;

} // namespace whale::runtime

#endif // WHALE_RUNTIME_NETWORK_H
