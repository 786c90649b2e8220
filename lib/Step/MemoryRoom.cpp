//===- MemoryRoom.cpp - How large a share memory allows -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/MemoryRoom.h"

#include "whale/Step/Costs.h"

namespace whale {

MemoryRoom::Peak MemoryRoom::peakOf(const MeshShares &shares,
                                    double scale) const {
  auto [it, isNew] = peaks.try_emplace({shares, scale});
  Peak &peak = it->second;
  if (isNew)
    forEachChange(shares, scale, [&](unsigned position, double bytes) {
      if (bytes > peak.bytes)
        peak = {bytes, position};
    });
  return peak;
}

/// Calls `fn` with the bytes before each operation at which they change.
void MemoryRoom::forEachChange(
    const MeshShares &shares, double scale,
    llvm::function_ref<void(unsigned, double)> visit) {
  double now = 0;
  std::map<unsigned, double> changes;
  for (const MeshShare &share : shares) {
    now += share.parts.of(share.load->argumentBytes);
    for (const auto &[position, amounts] : share.load->changes)
      changes[position] += share.parts.of(amounts) * scale;
  }
  visit(0, now);
  for (const auto &[position, change] : changes)
    visit(position, now += change);
}

/// Returns a device's bytes before one operation as a linear function of its
/// share of the mini-batch, or inside its group.
MemoryRoom::Slope MemoryRoom::slopeAt(const MeshShares &shares, double scale,
                                      const MeshLoad *load, bool inner,
                                      unsigned at) const {
  auto need = [&](double part) {
    double sum = 0;
    for (MeshShare share : shares) {
      if (share.load == load && inner)
        share.parts.inner = part;
      else if (share.load == load)
        share.parts.batch = share.parts.group = part;
      sum += share.parts.of(share.load->argumentBytes);
      LoadAmounts now;
      for (const auto &[position, amounts] : share.load->changes) {
        if (position > at)
          break;
        now += amounts;
      }
      sum += share.parts.of(now) * scale;
    }
    return sum;
  };
  double none = need(0);
  return {none, need(1) - none};
}

double MemoryRoom::roomFor(int64_t device, const MeshLoad *load,
                           bool inner) const {
  double memory =
      double(cluster.kindOf(device).memoryBytes - scratchOf(device));
  double factor = scaleOf(device);
  auto [it, isNew] =
      rooms.try_emplace({shares[device], factor, memory, load, inner});
  if (isNew)
    it->second = findRoom(shares[device], factor, memory, load, inner);
  return it->second;
}

/// The peak is the maximum of linear functions. Only the first, the last and
/// the one at the present share are considered.
double MemoryRoom::findRoom(const MeshShares &present, double scale,
                            double memory, const MeshLoad *load,
                            bool inner) const {
  double room = 1;
  for (std::optional<double> part :
       {std::optional<double>(), std::optional<double>(0),
        std::optional<double>(1)}) {
    MeshShares tried = present;
    for (MeshShare &share : tried)
      if (share.load == load && part && inner)
        share.parts.inner = *part;
      else if (share.load == load && part)
        share.parts.batch = share.parts.group = *part;
    Peak peak = peakOf(tried, scale);
    if (peak.bytes <= memory && part == 1)
      return room;
    Slope slope = slopeAt(present, scale, load, inner, peak.at);
    if (slope.bytes > 0)
      room = std::min(room, (memory - slope.fixed) / slope.bytes);
  }
  return std::max(room, 0.0);
}

int64_t MemoryRoom::peakBytes(int64_t device) const {
  return addCosts(toBytes(peakOf(shares[device], scaleOf(device)).bytes),
                  scratchOf(device));
}

int64_t MemoryRoom::argumentBytes(int64_t device) const {
  return toBytes(peakOf(shares[device], 0).bytes);
}

LoopBytes MemoryRoom::loopBytes(int64_t device,
                                std::pair<unsigned, unsigned> range) const {
  LoopBytes bytes;
  double scale = scaleOf(device), entering = 0;
  forEachChange(shares[device], scale, [&](unsigned position, double now) {
    bool isInside = position >= range.first && position <= range.second;
    double &most = isInside ? bytes.inside : bytes.outside;
    most = std::max(most, now);
    if (position <= range.first)
      entering = now;
  });
  bytes.inside = std::max(bytes.inside, entering) + double(scratchOf(device));
  bytes.outside += double(scratchOf(device));
  for (const MeshShare &share : shares[device])
    for (auto [from, to] : {std::pair(&share.load->kept, &bytes.kept),
                            std::pair(&share.load->sums, &bytes.sums)})
      if (auto it = from->find(range.first); it != from->end())
        for (const auto &[name, amounts] : it->second)
          (*to)[name] += share.parts.of(amounts) * scale;
  return bytes;
}

} // namespace whale
