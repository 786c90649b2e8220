//===- MemoryRoom.cpp - How large a share devices have memory for ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryRoom.h"

#include "whale/Transforms/OpCost.h"

using namespace mlir;

namespace whale {

MemoryRoom::Peak MemoryRoom::peakOf(const Seats &seats, double scale) const {
  auto [it, isNew] = peaks.try_emplace({seats, scale});
  Peak &peak = it->second;
  if (isNew)
    forEachMoment(seats, scale, [&](unsigned position, double bytes) {
      if (bytes > peak.bytes)
        peak = {bytes, position};
    });
  return peak;
}

/// The bytes before each operation at which they change.
void MemoryRoom::forEachMoment(
    const Seats &seats, double scale,
    llvm::function_ref<void(unsigned, double)> visit) {
  double now = 0;
  std::map<unsigned, double> changes;
  for (const Seat &seat : seats) {
    now += seat.shares.of(seat.load->argumentBytes);
    for (const auto &[position, amounts] : seat.load->changes)
      changes[position] += seat.shares.of(amounts) * scale;
  }
  visit(0, now);
  for (const auto &[position, change] : changes)
    visit(position, now += change);
}

/// How a device's need before one operation depends on its share of the
/// mini-batch, or inside of its group.
MemoryRoom::Slope MemoryRoom::slopeAt(const Seats &seats, double scale,
                                      const MeshLoad *load, bool inner,
                                      unsigned at) const {
  auto need = [&](double share) {
    double sum = 0;
    for (Seat seat : seats) {
      if (seat.load == load && inner)
        seat.shares.inner = share;
      else if (seat.load == load)
        seat.shares.batch = seat.shares.group = share;
      sum += seat.shares.of(seat.load->argumentBytes);
      LoadAmounts now;
      for (const auto &[position, amounts] : seat.load->changes) {
        if (position > at)
          break;
        now += amounts;
      }
      sum += seat.shares.of(now) * scale;
    }
    return sum;
  };
  double none = need(0);
  return {none, need(1) - none};
}

/// The need is the largest of linear ones, of which the first, the last and
/// that of the present share are looked at.
double MemoryRoom::roomFor(int64_t device, const MeshLoad *load,
                           bool inner) const {
  double memory =
      double(cluster.kindOf(device).memoryBytes - scratchOf(device));
  double room = 1;
  const Seats &present = seats[device];
  for (std::optional<double> share :
       {std::optional<double>(), std::optional<double>(0),
        std::optional<double>(1)}) {
    Seats tried = present;
    for (Seat &seat : tried)
      if (seat.load == load && share && inner)
        seat.shares.inner = *share;
      else if (seat.load == load && share)
        seat.shares.batch = seat.shares.group = *share;
    Peak peak = peakOf(tried, scaleOf(device));
    if (peak.bytes <= memory && share == 1)
      return room;
    Slope slope = slopeAt(present, scaleOf(device), load, inner, peak.at);
    if (slope.bytes > 0)
      room = std::min(room, (memory - slope.fixed) / slope.bytes);
  }
  return std::max(room, 0.0);
}

int64_t MemoryRoom::peakBytes(int64_t device) const {
  return addCosts(toBytes(peakOf(seats[device], scaleOf(device)).bytes),
                  scratchOf(device));
}

int64_t MemoryRoom::argumentBytes(int64_t device) const {
  return addCosts(toBytes(peakOf(seats[device], 0).bytes), scratchOf(device));
}

LoopBytes MemoryRoom::loopBytes(int64_t device, Operation *loop,
                                std::pair<unsigned, unsigned> range) const {
  LoopBytes bytes;
  double scale = scaleOf(device), entering = 0;
  forEachMoment(seats[device], scale, [&](unsigned position, double now) {
    bool isInside = position >= range.first && position <= range.second;
    double &most = isInside ? bytes.inside : bytes.outside;
    most = std::max(most, now);
    if (position <= range.first)
      entering = now;
  });
  bytes.inside = std::max(bytes.inside, entering) + double(scratchOf(device));
  bytes.outside += double(scratchOf(device));
  for (const Seat &seat : seats[device])
    if (auto it = seat.load->kept.find(loop); it != seat.load->kept.end())
      for (const auto &[name, amounts] : it->second)
        bytes.kept[name] += seat.shares.of(amounts) * scale;
  return bytes;
}

} // namespace whale
