//===- LinkClock.cpp - The links that a rank's transfers use --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/message/LinkClock.h"

#include "transport/message/Transfer.h"

#include <algorithm>
#include <chrono>

namespace whale::runtime::message {

double LinkClock::now() {
  auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

void LinkClock::begin(const Part &part, double posted) {
  begins = std::max(posted, free);
  delay = std::max(0.0, begins - now());
  peers.clear();
  for (int64_t rank : part.peers) {
    Peer &peer = peers.emplace_back();
    int64_t process = addresses.processOf(rank);
    mover.receive(
        process,
        addresses.tagOf(part.channel, MessageKind::Delay, rank, part.rank),
        &peer.delay, sizeof(double), peer.pending);
    mover.send(
        process,
        addresses.tagOf(part.channel, MessageKind::Delay, part.rank, rank),
        &delay, sizeof(double), /*isSynchronous=*/false, sending);
  }
}

bool LinkClock::isKnown() {
  bool isKnown = sending == 0;
  for (Peer &peer : peers) {
    if (peer.pending == 0 && !peer.isReady) {
      begins = std::max(begins, now() + peer.delay);
      peer.isReady = true;
    }
    isKnown &= peer.isReady;
  }
  return isKnown;
}

double LinkClock::end(const Part &part) {
  return free = begins + part.linkSeconds.value();
}

} // namespace whale::runtime::message
