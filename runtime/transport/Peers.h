//===- Peers.h - Who exchanges data in a channel ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_PEERS_H
#define WHALE_RUNTIME_TRANSPORT_PEERS_H

#include "program/Format.h"

namespace whale::runtime {

/// The other ranks that a rank sends data to or receives data from in a
/// channel, ascending: those that it waits for. Its group may have more.
std::vector<int64_t> peersOf(const Collective &collective, int64_t rank);

/// Those of them that it sends to, and that it receives from; none in a
/// collective that is no list of messages.
std::vector<int64_t> receiversOf(const Collective &collective, int64_t rank);
std::vector<int64_t> sendersOf(const Collective &collective, int64_t rank);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_PEERS_H
