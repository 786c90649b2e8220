//===- LinkClock.h - The links that a rank's transfers use ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_MESSAGE_LINKCLOCK_H
#define WHALE_RUNTIME_TRANSPORT_MESSAGE_LINKCLOCK_H

#include "transport/message/Mover.h"
#include "transport/message/Part.h"

#include <deque>

namespace whale::runtime::message {

class Addresses;

/// When the transfers of a rank end on the links of an emulated network, one
/// after the other. A transfer begins there once all that take part in it are
/// ready, which they tell each other: in how many seconds, as their hosts have
/// different clocks.
class LinkClock {
public:
  LinkClock(Mover &mover, const Addresses &addresses)
      : mover(mover), addresses(addresses) {}

  /// Seconds of this process's clock.
  static double now();

  /// The transfer at the head of the queue, which was posted at a time.
  void begin(const Part &part, double posted);
  /// Whether it is known when the transfer begins; true without one.
  bool isKnown();
  /// When it ends; the next one begins no earlier.
  double end(const Part &part);

private:
  struct Peer {
    double delay = 0;
    int64_t pending = 0;
    bool isReady = false;
  };
  Mover &mover;
  const Addresses &addresses;
  /// A deque: messages count at their addresses.
  std::deque<Peer> peers;
  double delay = 0;
  int64_t sending = 0;
  /// When the links are free, and the transfer begins as far as is known.
  double free = 0, begins = 0;
};

} // namespace whale::runtime::message

#endif // WHALE_RUNTIME_TRANSPORT_MESSAGE_LINKCLOCK_H
