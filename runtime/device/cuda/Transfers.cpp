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
static bool coversAll(const ChannelPart &part, int64_t rank, int64_t elements) {
  auto cells = part.cells.find(rank);
  if (cells == part.cells.end())
    return true;
  for (const Cell &cell : *cells->second)
    elements -= elementCount(cell.size);
  return elements == 0;
}

void Transfers::start(const Start &start, std::span<const PartBuffers> parts,
                      Stream stream) {
  const Collective &channel = *program.channels.at(start.channel);
  auto elementsOf = [&](const std::map<int64_t, Shape> &shapes, bool isHere) {
    auto shape = shapes.find(rank);
    return isHere && shape != shapes.end() ? elementCount(shape->second) : 0;
  };
  Transfer &transfer = open.emplace_back();
  transfer.number = start.transfer;
  transfer.channel = start.channel;
  transfer.staged = takeEvent();
  for (size_t i = 0; i < parts.size(); ++i) {
    auto [src, dst] = parts[i];
    const ChannelPart &part = channel.parts[i];
    int64_t size = byteSize(part.dtype);
    int64_t srcBytes = elementsOf(part.srcShapes, src) * size;
    int64_t dstElements = elementsOf(part.dstShapes, dst);
    Staged &staged = transfer.parts.emplace_back();
    staged.dstBytes = dstElements * size;
    staged.target = dst;
    if (src) {
      staged.src = pool.take(srcBytes, gpu.copies);
      gpu.copy(staged.src->data, src, srcBytes, stream);
    }
    if (dst) {
      staged.dst = pool.take(staged.dstBytes, gpu.copies);
      if (!coversAll(part, rank, dstElements))
        gpu.copy(staged.dst->data, dst, staged.dstBytes, stream);
    }
  }
  gpu.record(transfer.staged, stream);
  postReady();
}

void Transfers::post(Transfer &transfer) {
  auto dataOf = [](const PinnedPool::Block &block) {
    return block ? block->data : nullptr;
  };
  std::vector<PartBuffers> parts;
  for (const Staged &staged : transfer.parts)
    parts.push_back({dataOf(staged.src), dataOf(staged.dst)});
  transfer.ticket = transport->start(rank, transfer.channel, parts);
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
  if (std::ranges::any_of(wanted->parts, &Staged::dstBytes)) {
    gpu.wait(gpu.copies, wanted->staged);
    for (const Staged &part : wanted->parts)
      if (part.dstBytes)
        gpu.copy(part.target, part.dst->data, part.dstBytes, gpu.copies);
    gpu.record(wanted->staged, gpu.copies);
    gpu.wait(stream, wanted->staged);
  }
  events.push_back(wanted->staged);
  open.erase(wanted);
  return traffic;
}

} // namespace whale::runtime::cuda
