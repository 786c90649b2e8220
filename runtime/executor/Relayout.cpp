//===- Relayout.cpp - An array in another layout --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/Executor.h"

#include "whale/ProgramFormat/Relayout.h"

namespace whale::runtime {

/// A channel is kept: transports have no way to forget it, and the same arrays
/// are moved again and again.
int64_t Executor::relayoutChannel(DType dtype, const Layout &from,
                                  const Layout &to) {
  for (const Relayout &each : relayouts)
    if (each.dtype == dtype && each.from == from && each.to == to)
      return each.channel;
  int64_t channel = connections.host().addChannel(
      std::make_shared<Collective>(format::relayoutOf(
          dtype, from, to, place.processOf, connections.hosts())));
  relayouts.push_back({dtype, from, to, channel});
  return channel;
}

Executor::Shards Executor::relayout(DType dtype, const Layout &from,
                                    const Layout &to, const Shards &shards) {
  threads.wait({});
  connections.reset();
  Transport &transport = connections.host();
  int64_t channel = relayoutChannel(dtype, from, to);
  Shards result(shards.size());
  for (int64_t rank : place.local)
    if (const std::optional<Box> &box = to.boxes[rank])
      result[rank] = Buffer::allocate(box->elements() * byteSize(dtype));
  isInRelayout = true;
  runRanks([&](int64_t rank) {
    auto addressOf = [](const std::shared_ptr<Buffer> &buffer) {
      return buffer ? buffer->data.get() : nullptr;
    };
    try {
      attach(rank);
      transport.wait(rank,
                     transport.start(rank, channel, addressOf(shards[rank]),
                                     addressOf(result[rank])));
      transport.finish(rank);
      ++ranks[rank].executed;
    } catch (const Aborted &) {
    } catch (const std::exception &error) {
      fail("rank " + std::to_string(rank) + ": " + error.what());
    }
  });
  isInRelayout = false;
  if (!connections.settle())
    abandon(std::make_shared<std::pair<Shards, Shards>>(shards, result));
  std::lock_guard lock(errorMutex);
  if (firstError)
    throw Error(*firstError);
  return result;
}

} // namespace whale::runtime
