//===- MemoryRoom.cpp - How large a share memory allows -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: what each mesh's devices keep at each operation, as amounts that are
// proportional to shares, and the shares that devices take. Out: a device's
// peak, and the largest share that its memory allows. At each operation the
// bytes are a linear function of a share; the peak is the maximum of these, of
// which only three are looked at for a share. Cost: for a device, a pass over
// the operations at which bytes change; what devices with the same shares have
// in common is remembered.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/MemoryRoom.h"

#include "whale/Step/Costs.h"

#include <algorithm>

namespace whale {

/// The part of a mesh's work that a device does.
static double partOfMesh(const MeshShare &share) {
  bool isCut = share.load->costliestCut().has_value();
  return isCut ? share.parts.group * share.parts.inner : share.parts.batch;
}

/// With another share of the mini-batch, or inside its group.
static MeshShare withPart(MeshShare share, double part, bool inner) {
  if (inner)
    share.parts.inner = part;
  else
    share.parts.batch = share.parts.group = part;
  return share;
}

/// The part of the mesh of which it is largest.
double MemoryRoom::partOf(const MeshShares &shares) {
  double most = 0;
  for (const MeshShare &share : shares)
    most = std::max(most, partOfMesh(share));
  return most;
}

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
      if (share.load == load)
        share = withPart(share, part, inner);
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

ScratchLine ScratchLine::through(double part, double bytes, double otherPart,
                                 double otherBytes) {
  if (part == otherPart)
    return {std::max(bytes, otherBytes), 0};
  double slope = std::max((bytes - otherBytes) / (part - otherPart), 0.0);
  double fixed = bytes - slope * part;
  if (fixed < 0 && part > 0)
    return {0, bytes / part};
  return {std::max(fixed, 0.0), slope};
}

int64_t MemoryRoom::scratchBytes(int64_t device) const {
  return toBytes(scratchOf(device).at(getPart(device)));
}

double MemoryRoom::roomFor(int64_t device, const MeshLoad *load,
                           bool inner) const {
  auto memory = double(cluster.kindOf(device).memoryBytes);
  double factor = scaleOf(device);
  ScratchLine line = scratchOf(device);
  auto [it, isNew] = rooms.try_emplace(
      {shares[device], factor, memory, line.fixed, line.bytes, load, inner});
  if (isNew)
    it->second = findRoom(shares[device], factor, memory, line, load, inner);
  return it->second;
}

/// The peak is the maximum of linear functions. Only the first, the last and
/// the one at the present share are considered.
double MemoryRoom::findRoom(const MeshShares &present, double scale,
                            double memory, ScratchLine scratch,
                            const MeshLoad *load, bool inner) const {
  // Scratch is that of the largest part: of another mesh, or of this one.
  MeshShares others;
  double none = 0, whole = 0;
  for (const MeshShare &share : present)
    if (share.load != load) {
      others.push_back(share);
    } else {
      none = partOfMesh(withPart(share, 0, inner));
      whole = partOfMesh(withPart(share, 1, inner));
    }
  double room = 1;
  for (std::optional<double> part :
       {std::optional<double>(), std::optional<double>(0),
        std::optional<double>(1)}) {
    MeshShares tried = present;
    for (MeshShare &share : tried)
      if (share.load == load && part)
        share = withPart(share, *part, inner);
    Peak peak = peakOf(tried, scale);
    if (peak.bytes + scratch.at(partOf(tried)) <= memory && part == 1)
      return room;
    Slope slope = slopeAt(present, scale, load, inner, peak.at);
    for (auto [fixed, bytes] :
         {std::pair(scratch.at(partOf(others)), 0.0),
          std::pair(scratch.at(none), scratch.bytes * (whole - none))})
      if (double each = slope.bytes + bytes; each > 0)
        room = std::min(room, (memory - slope.fixed - fixed) / each);
  }
  return std::max(room, 0.0);
}

int64_t MemoryRoom::peakBytes(int64_t device) const {
  return addCosts(toBytes(peakOf(shares[device], scaleOf(device)).bytes),
                  scratchBytes(device));
}

int64_t MemoryRoom::argumentBytes(int64_t device) const {
  return toBytes(peakOf(shares[device], 0).bytes);
}

/// The lines that are highest somewhere, of a number that is not negative.
static std::vector<MemoryLine> keepHighest(std::vector<MemoryLine> lines) {
  std::ranges::sort(lines, {}, [](const MemoryLine &line) {
    return std::pair(line.bytes, line.fixed);
  });
  std::vector<MemoryLine> highest;
  for (const MemoryLine &line : lines) {
    while (!highest.empty()) {
      const MemoryLine &last = highest.back();
      if (last.fixed <= line.fixed) {
        highest.pop_back();
        continue;
      }
      // It must be above the one before it until this one is above it.
      if (highest.size() < 2)
        break;
      const MemoryLine &before = highest[highest.size() - 2];
      double from = (before.fixed - last.fixed) / (last.bytes - before.bytes);
      double to = (last.fixed - line.fixed) / (line.bytes - last.bytes);
      if (from < to)
        break;
      highest.pop_back();
    }
    highest.push_back(line);
  }
  return highest;
}

std::vector<MemoryLine> MemoryRoom::findLines(const MeshShares &shares,
                                              double scale) const {
  auto add = [](MemoryLine &line, const LoadShares &parts,
                const LoadAmounts &amounts, double factor) {
    // What does not grow with the samples.
    double fixed =
        amounts[LoadKind::Whole] + parts.inner * amounts[LoadKind::Inner];
    line.fixed += fixed * factor;
    line.bytes += (parts.of(amounts) - fixed) * factor;
  };
  MemoryLine now;
  std::map<unsigned, MemoryLine> changes;
  for (const MeshShare &share : shares) {
    add(now, share.parts, share.load->argumentBytes, 1);
    for (const auto &[position, amounts] : share.load->changes)
      add(changes[position], share.parts, amounts, scale);
  }
  std::vector<MemoryLine> lines = {now};
  for (const auto &[position, change] : changes) {
    now.fixed += change.fixed;
    now.bytes += change.bytes;
    lines.push_back(now);
  }
  return keepHighest(std::move(lines));
}

std::vector<MemoryLine> MemoryRoom::linesOf(int64_t device) const {
  auto [it, isNew] = lines.try_emplace({shares[device], scaleOf(device)});
  if (isNew)
    it->second = findLines(shares[device], scaleOf(device));
  std::vector<MemoryLine> own = it->second;
  ScratchLine besides = scratchOf(device);
  for (MemoryLine &line : own) {
    line.fixed += besides.fixed;
    line.bytes += besides.bytes * getPart(device);
  }
  return own;
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
  auto besides = double(scratchBytes(device));
  bytes.inside = std::max(bytes.inside, entering) + besides;
  bytes.outside += besides;
  for (const MeshShare &share : shares[device])
    for (auto [from, to] : {std::pair(&share.load->kept, &bytes.kept),
                            std::pair(&share.load->sums, &bytes.sums)})
      if (auto it = from->find(range.first); it != from->end())
        for (const auto &[name, amounts] : it->second)
          (*to)[name] += share.parts.of(amounts) * scale;
  return bytes;
}

} // namespace whale
