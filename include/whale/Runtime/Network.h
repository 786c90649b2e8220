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

/// A way for bytes to go from one rank to another.
struct Link {
  /// Seconds before the first byte arrives; finite.
  double latency = 0;
  /// Finite.
  double secondsPerByte = 0;
};

/// The link from a rank to another one; empty for a program whose transfers
/// take no longer than they do.
using Network = std::function<Link(int64_t from, int64_t to)>;

} // namespace whale::runtime

#endif // WHALE_RUNTIME_NETWORK_H
