//===- Transfers.cpp - Transfers through the host -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Transfers.h"

#include <algorithm>

namespace whale::runtime::cuda {

Transfers::~Transfers() {
  reset();
  for (EventHandle event : events)
    gpu.driver.eventDestroy.function(event);
}

EventHandle Transfers::takeEvent() {
  if (events.empty())
    return gpu.newEvent();
  EventHandle event = events.back();
  events.pop_back();
  return event;
}

void Transfers::reset() {
  for (Transfer &transfer : open)
    events.push_back(transfer.staged);
  open.clear();
}

/// Whether cells give all elements of a rank's destination.
static bool coversAll(const Collective &channel, int64_t rank,
                      int64_t elements) {
  auto cells = channel.cells.find(rank);
  if (cells == channel.cells.end())
    return true;
  for (const Cell &cell : *cells->second)
    elements -= elementCount(cell.size);
  return elements == 0;
}

void Transfers::start(const Start &start, void *src, void *dst, Stream stream) {
  const Collective &channel = *program.channels.at(start.channel);
  auto elementsOf = [&](const std::map<int64_t, Shape> &shapes, bool isHere) {
    auto shape = shapes.find(rank);
    return isHere && shape != shapes.end() ? elementCount(shape->second) : 0;
  };
  int64_t size = byteSize(channel.dtype);
  int64_t srcBytes = elementsOf(channel.srcShapes, src) * size;
  int64_t dstElements = elementsOf(channel.dstShapes, dst);
  Transfer &transfer = open.emplace_back();
  transfer.number = start.transfer;
  transfer.channel = start.channel;
  transfer.dstBytes = dstElements * size;
  transfer.target = dst;
  transfer.staged = takeEvent();
  if (src) {
    transfer.src = pool.take(srcBytes, gpu.copies);
    gpu.copy(transfer.src->data, src, srcBytes, stream);
  }
  if (dst) {
    transfer.dst = pool.take(transfer.dstBytes, gpu.copies);
    if (!coversAll(channel, rank, dstElements))
      gpu.copy(transfer.dst->data, dst, transfer.dstBytes, stream);
  }
  gpu.record(transfer.staged, stream);
  postReady();
}

void Transfers::post(Transfer &transfer) {
  auto dataOf = [](const PinnedPool::Block &block) {
    return block ? block->data : nullptr;
  };
  transfer.ticket = transport->start(
      rank, transfer.channel, dataOf(transfer.src), dataOf(transfer.dst));
  transfer.isPosted = true;
}

void Transfers::postReady() {
  for (Transfer &transfer : open) {
    if (transfer.isPosted)
      continue;
    if (!gpu.isReached(transfer.staged))
      return;
    post(transfer);
  }
}

void Transfers::advance() {
  postReady();
  // Any of them stands for all.
  if (!open.empty() && open.front().isPosted)
    transport->test(rank, open.front().ticket);
}

Traffic Transfers::waitFor(int64_t number, Stream stream) {
  // In a loop a number comes again.
  auto wanted =
      std::find_if(open.begin(), open.end(), [&](const Transfer &transfer) {
        return transfer.number == number;
      });
  if (wanted == open.end())
    throw Error("transfer " + std::to_string(number) + " was not started");
  for (auto it = open.begin(); it != wanted + 1; ++it)
    if (!it->isPosted) {
      gpu.synchronize(it->staged);
      post(*it);
    }
  Traffic traffic = transport->wait(rank, wanted->ticket);
  if (wanted->dstBytes) {
    gpu.wait(gpu.copies, wanted->staged);
    gpu.copy(wanted->target, wanted->dst->data, wanted->dstBytes, gpu.copies);
    gpu.record(wanted->staged, gpu.copies);
    gpu.wait(stream, wanted->staged);
  }
  events.push_back(wanted->staged);
  open.erase(wanted);
  return traffic;
}

} // namespace whale::runtime::cuda
