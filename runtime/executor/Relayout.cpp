//===- Relayout.cpp - An array in another layout --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/Executor.h"

#include "whale/ProgramFormat/Pieces.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace whale::runtime {

/// What a rank receives. It takes what it has from itself.
static std::vector<Cell> cellsOf(const Box &to, const Layout &from,
                                 size_t self) {
  std::vector<size_t> order(from.boxes.size());
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(self),
              order.begin() + static_cast<ptrdiff_t>(self) + 1);
  std::vector<Cell> cells;
  for (const auto &[rank, part] : piecesOf(to, from, order))
    cells.push_back(
        {startIn(to, part),
         part.size,
         {{static_cast<int64_t>(rank), startIn(*from.boxes[rank], part)}}});
  return cells;
}

/// The transfers that bring an array from one layout to another of the same
/// view and as many ranks. Layouts are boxes and nothing is reduced, so this is
/// decided here: the compiler's resolver plans reductions, for trees of
/// placements that a program does not have.
static std::shared_ptr<const Collective>
relayoutOf(DType dtype, const Layout &from, const Layout &to) {
  assert(from.view == to.view && from.boxes.size() == to.boxes.size() &&
         "views and ranks agree");
  auto collective = std::make_shared<Collective>();
  collective->kind = "relayout";
  collective->dtype = dtype;
  Group all;
  for (size_t rank = 0; rank < from.boxes.size(); ++rank) {
    auto number = static_cast<int64_t>(rank);
    all.push_back(number);
    if (from.boxes[rank])
      collective->srcShapes[number] = from.boxes[rank]->size;
    if (!to.boxes[rank])
      continue;
    collective->dstShapes[number] = to.boxes[rank]->size;
    collective->cells[number] = std::make_shared<std::vector<Cell>>(
        cellsOf(*to.boxes[rank], from, rank));
  }
  collective->participants = all;
  collective->groups.insert(all);
  return collective;
}

/// A channel is kept: transports have no way to forget it, and the same arrays
/// are moved again and again.
int64_t Executor::relayoutChannel(DType dtype, const Layout &from,
                                  const Layout &to) {
  for (const Relayout &each : relayouts)
    if (each.dtype == dtype && each.from == from && each.to == to)
      return each.channel;
  int64_t channel = connections.host().addChannel(relayoutOf(dtype, from, to));
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
  threads.run([&](int64_t i) {
    int64_t rank = place.local[i];
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
