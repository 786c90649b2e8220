//===- ChannelNumbers.h - Channels of several programs ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs that share ranks share a transport, which numbers their channels one
// program behind the other. No number is given twice: processes need not drop a
// program at the same time.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_CHANNELNUMBERS_H
#define WHALE_RUNTIME_TRANSPORT_CHANNELNUMBERS_H

#include "transport/Transport.h"

namespace whale::runtime {

/// The channels that a transport has. Any thread may add some, and ask for
/// those that it uses.
class ChannelNumbers {
public:
  /// See Transport::addChannels.
  int64_t add(const Channels &channels, int64_t end);
  /// They are there until `clean`, which is called while nobody uses one, and
  /// calls `forget` with the number of each.
  void drop(int64_t first);
  void clean(const std::function<void(int64_t)> &forget);

  /// Whether those that were added with this result are there.
  bool has(int64_t first) const {
    std::lock_guard lock(mutex);
    return programs.contains(first);
  }
  const Collective &at(int64_t number) const;
  /// The number that a channel was added with.
  int64_t givenOf(int64_t number) const;

private:
  using Programs = std::map<int64_t, Channels>;
  Programs::const_iterator find(int64_t number) const;

  mutable std::mutex mutex;
  std::vector<int64_t> dropped;
  /// By the number of the first channel of each.
  Programs programs;
  int64_t last = 0;
};

/// The channels of one program in a transport, by the program's numbers.
class ProgramChannels final : public Transport {
public:
  /// `transport` outlives it. Where ranks are in several processes, all of
  /// these make it together.
  ProgramChannels(Transport &transport, const format::Program &program);
  ~ProgramChannels() override { transport.dropChannels(first); }

  /// By how much the numbers in the transport are larger.
  int64_t offset() const { return first; }

  int64_t addChannels(const Channels &channels, int64_t end) override {
    return transport.addChannels(channels, end) - first;
  }
  void dropChannels(int64_t added) override {
    transport.dropChannels(added + first);
  }
  Ticket start(int64_t rank, int64_t channel,
               std::span<const PartBuffers> parts) override {
    return transport.start(rank, first + channel, parts);
  }
  Ticket startMessages(int64_t rank, std::span<const RankMessage> sends,
                       std::span<const RankMessage> receives) override {
    return transport.startMessages(rank, sends, receives);
  }
  bool test(int64_t rank, const Ticket &ticket) override {
    return transport.test(rank, ticket);
  }
  Traffic wait(int64_t rank, const Ticket &ticket) override {
    return transport.wait(rank, ticket);
  }
  void finish(int64_t rank) override { transport.finish(rank); }
  void abort() override { transport.abort(); }
  bool aborted() const override { return transport.aborted(); }
  bool settle() override { return transport.settle(); }
  void reset() override { transport.reset(); }

private:
  Transport &transport;
  const int64_t first;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_CHANNELNUMBERS_H
