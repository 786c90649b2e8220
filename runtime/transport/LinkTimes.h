//===- LinkTimes.h - How long a transfer takes on links ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_LINKTIMES_H
#define WHALE_RUNTIME_TRANSPORT_LINKTIMES_H

#include "program/Format.h"
#include "whale/Runtime/Network.h"

namespace whale::runtime {

/// By participant, the seconds that its part of a collective takes on the links
/// of a network once all that it exchanges data with are there; 0 where it
/// exchanges none.
///
/// An all-reduce of n ranks takes the 2 (n - 1) steps of a ring in the group's
/// order, each with the greatest latency and, at the lowest bandwidth, an n-th
/// of the bytes. Otherwise a rank's sends go out one after the other, and so do
/// its receives beside them: each takes the greatest latency of the links that
/// it uses, and all of its bytes at the lowest bandwidth of them. A part takes
/// as long as the slowest side of the rank and of those that it exchanges data
/// with. Ranks don't share links.
std::map<int64_t, double> linkSeconds(const Collective &collective,
                                      const Network &network);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_LINKTIMES_H
