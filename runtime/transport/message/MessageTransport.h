//===- MessageTransport.h - Ranks in several processes ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_MESSAGE_MESSAGETRANSPORT_H
#define WHALE_RUNTIME_TRANSPORT_MESSAGE_MESSAGETRANSPORT_H

#include "transport/Transport.h"
#include "transport/message/Mover.h"
#include "whale/Runtime/Network.h"
#include "whale/Runtime/RankMap.h"

namespace whale::runtime {

/// A transport between the ranks of several processes, of which each has one.
/// Of the ranks of `map` only the local ones are used here. With a network, a
/// transfer ends when its time on those links has passed, too.
std::unique_ptr<Transport>
createMessageTransport(const RankMap &map, std::unique_ptr<Mover> mover,
                       const Network &network = nullptr);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_MESSAGE_MESSAGETRANSPORT_H
