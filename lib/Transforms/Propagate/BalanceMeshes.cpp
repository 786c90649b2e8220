//===- BalanceMeshes.cpp - How much each device takes ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BalanceMeshes.h"

#include "llvm/Support/Format.h"
#include <numeric>

using namespace mlir;

namespace whale {

/// No load of this name.
static const MeshLoad kNoLoad;

MeshBalancer::MeshBalancer(const StepLoads &loads, const Cluster &cluster,
                           ArrayRef<double> scale)
    : loads(loads), cluster(cluster), scale(scale) {}

static double at(const LoadAmounts &amounts, LoadKind kind) {
  return amounts[size_t(kind)];
}

void MeshBalancer::balance(ArrayRef<Mesh *> meshes, int64_t mostVariants) {
  loadOf.clear();
  for (Mesh *mesh : meshes) {
    auto it = loads.getMeshes().find(mesh);
    loadOf.push_back(it == loads.getMeshes().end() ? &kNoLoad : &it->second);
    mesh->setBalance(speedsOf(*mesh));
  }
  setIdealShares(meshes);
  for (auto [index, mesh] : llvm::enumerate(meshes)) {
    MeshBalance balance = mesh->getBalance();
    limit(index, *mesh, balance);
    mesh->setBalance(std::move(balance));
  }
  if (loads.getMoments().size() > 1) {
    keepReplicasApart(meshes);
    rotate(meshes, mostVariants);
  }
  setRealShares(meshes);
}

/// The repetitions of a pipeline are replicas of the model, each with samples
/// of its own: all stages cut a micro-batch alike between them, or else
/// replicas would wait for one another. The slowest stage decides how much a
/// replica takes, and the fullest how much it can.
void MeshBalancer::keepReplicasApart(ArrayRef<Mesh *> meshes) {
  std::map<size_t, std::vector<Mesh *>> byCount;
  for (auto [index, mesh] : llvm::enumerate(meshes))
    if (mesh->getGroups().size() > 1 && loadOf[index] != &kNoLoad)
      byCount[mesh->getGroups().size()].push_back(mesh);
  for (auto &[count, stages] : byCount) {
    if (stages.size() < 2)
      continue;
    std::vector<double> seconds(count, 0), most(count, 1);
    for (Mesh *stage : stages) {
      const MeshBalance &own = stage->getBalance();
      for (size_t g = 0; g < count; ++g) {
        double rate = 0;
        for (double each : own.seconds[g])
          rate += 1 / each;
        seconds[g] = std::max(seconds[g], 1 / rate);
        if (own.most.empty())
          continue;
        ArrayRef<double> room = own.most[g];
        double all = own.byGroup
                         ? *llvm::min_element(room)
                         : std::accumulate(room.begin(), room.end(), 0.0);
        most[g] = std::min(most[g], all);
      }
    }
    for (Mesh *stage : stages) {
      MeshBalance balance = stage->getBalance();
      balance.groupSeconds = seconds;
      balance.groupMost = most;
      stage->setBalance(std::move(balance));
    }
  }
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// Seconds for each sample, and for what is cut otherwise.
MeshBalance MeshBalancer::speedsOf(const Mesh &mesh) const {
  MeshBalance balance = mesh.getBalance();
  auto it = loads.getMeshes().find(&mesh);
  if (it == loads.getMeshes().end())
    return balance;
  const MeshLoad &load = it->second;
  double samples = 0;
  for (int64_t moment : loads.getMoments())
    samples += double(moment);
  // What devices share out of the mini-batch decides, else what groups do.
  bool hasBatch = false, hasGroup = false;
  for (const LoadAmounts &seconds : load.seconds) {
    hasBatch |= at(seconds, LoadKind::Batch) > 0;
    hasGroup |=
        at(seconds, LoadKind::Group) + at(seconds, LoadKind::GroupInner) > 0;
  }
  balance.byGroup = !hasBatch && hasGroup && mesh.getNumParts(1) > 1;
  auto fill = [&](MeshBalance::ByDevice &table, auto secondsOf) {
    MeshBalance::ByDevice filled;
    for (const std::vector<DeviceId> &group : mesh.getGroups()) {
      std::vector<double> &row = filled.emplace_back();
      for (DeviceId device : group) {
        row.push_back(secondsOf(loads.getSpeedClass(device)));
        if (!(row.back() > 0))
          return;
      }
    }
    table = std::move(filled);
  };
  fill(balance.seconds, [&](unsigned speed) {
    const LoadAmounts &seconds = load.seconds[speed];
    double batch = at(seconds, LoadKind::Batch);
    if (balance.byGroup)
      batch = at(seconds, LoadKind::Group) + at(seconds, LoadKind::GroupInner);
    else if (!hasBatch)
      batch = at(seconds, LoadKind::Inner) + at(seconds, LoadKind::Whole);
    return batch / std::max(samples, 1.0);
  });
  for (const auto &[pieces, seconds] : load.innerSeconds)
    fill(
        balance.innerSeconds.try_emplace(pieces, balance.seconds).first->second,
        [&, &seconds = seconds](unsigned speed) { return seconds[speed]; });
  return balance;
}

std::vector<int64_t> MeshBalancer::samplesOf(const Mesh &mesh) const {
  std::vector<int64_t> samples;
  for (auto [moment, extent] : llvm::enumerate(loads.getMoments())) {
    size_t next = 0;
    for (const Extents &group : mesh.batchShares(extent, moment))
      for (int64_t share : group) {
        if (next == samples.size())
          samples.push_back(0);
        samples[next++] += share;
      }
  }
  return samples;
}

/// Seconds of the device that takes the longest.
double MeshBalancer::finishOf(const Mesh &mesh) const {
  double latest = 0;
  std::vector<int64_t> samples = samplesOf(mesh);
  size_t next = 0;
  for (const std::vector<double> &group : mesh.getBalance().seconds)
    for (double seconds : group) {
      if (next < samples.size())
        latest = std::max(latest, double(samples[next]) * seconds);
      ++next;
    }
  return latest;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Shares in proportion to speed, before they are whole numbers.
void MeshBalancer::setIdealShares(ArrayRef<Mesh *> meshes) {
  seats.assign(cluster.devices.size(), {});
  peaks.clear();
  for (auto [index, mesh] : llvm::enumerate(meshes)) {
    if (loadOf[index] == &kNoLoad)
      continue;
    const MeshBalance &balance = mesh->getBalance();
    double all = 0;
    for (const std::vector<double> &group : balance.seconds)
      for (double seconds : group)
        all += 1 / seconds;
    // What is cut inside of a group, in the most costly way.
    const MeshBalance::ByDevice *inner = &balance.seconds;
    double most = 0;
    for (const auto &[pieces, seconds] : balance.innerSeconds)
      if (seconds.front().front() > most) {
        most = seconds.front().front();
        inner = &seconds;
      }
    for (auto [g, group] : llvm::enumerate(mesh->getGroups())) {
      double own = 0, innerOwn = 0;
      for (size_t i = 0; i < group.size(); ++i) {
        own += 1 / balance.seconds[g][i];
        innerOwn += 1 / (*inner)[g][i];
      }
      for (size_t i = 0; i < group.size(); ++i)
        seats[group[i]].push_back({index,
                                   {1 / balance.seconds[g][i] / all, own / all,
                                    1 / (*inner)[g][i] / innerOwn}});
    }
  }
}

/// The shares of the fullest micro-batch.
void MeshBalancer::setRealShares(ArrayRef<Mesh *> meshes) {
  seats.assign(cluster.devices.size(), {});
  peaks.clear();
  for (auto [index, mesh] : llvm::enumerate(meshes)) {
    if (loadOf[index] == &kNoLoad)
      continue;
    int64_t pieces = 0;
    double most = 0;
    for (const auto &[extent, seconds] : loadOf[index]->innerSeconds)
      if (!seconds.empty() && seconds.front() > most) {
        most = seconds.front();
        pieces = extent;
      }
    for (auto [g, group] : llvm::enumerate(mesh->getGroups())) {
      std::vector<LoadShares> shares(group.size(), {0, 0, 1});
      for (auto [moment, extent] : llvm::enumerate(loads.getMoments())) {
        if (extent == 0)
          continue;
        const Extents &sizes = mesh->batchShares(extent, moment)[g];
        int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
        for (size_t i = 0; i < group.size(); ++i) {
          shares[i].batch =
              std::max(shares[i].batch, double(sizes[i]) / double(extent));
          shares[i].group =
              std::max(shares[i].group, double(all) / double(extent));
        }
      }
      if (pieces > 0 && group.size() > 1) {
        Extents sizes = mesh->innerShares(pieces, g);
        for (size_t i = 0; i < group.size(); ++i)
          shares[i].inner = double(sizes[i]) / double(pieces);
      }
      for (size_t i = 0; i < group.size(); ++i)
        seats[group[i]].push_back({index, shares[i]});
    }
  }
}

/// The most bytes that a device with these shares needs, and before which
/// operation.
double MeshBalancer::peakOf(const Seats &seats, double scale,
                            unsigned *at) const {
  auto [it, isNew] = peaks.try_emplace({seats, scale});
  if (isNew) {
    std::map<unsigned, double> changes;
    double arguments = 0;
    for (const Seat &seat : seats) {
      arguments += seat.shares.of(loadOf[seat.mesh]->argumentBytes);
      for (const auto &[position, amounts] : loadOf[seat.mesh]->changes)
        changes[position] += seat.shares.of(amounts) * scale;
    }
    double now = arguments;
    it->second = {now, 0};
    for (const auto &[position, change] : changes) {
      now += change;
      if (now > it->second.first)
        it->second = {now, position};
    }
  }
  if (at)
    *at = it->second.second;
  return it->second.first;
}

/// How a device's need before one operation depends on its share of the
/// mini-batch, or inside of its group.
MeshBalancer::Slope MeshBalancer::slopeAt(const Seats &seats, double scale,
                                          size_t mesh, bool inner,
                                          unsigned at) const {
  auto need = [&](double share) {
    double sum = 0;
    for (Seat seat : seats) {
      if (seat.mesh == mesh && inner)
        seat.shares.inner = share;
      else if (seat.mesh == mesh)
        seat.shares.batch = seat.shares.group = share;
      sum += seat.shares.of(loadOf[seat.mesh]->argumentBytes);
      LoadAmounts now = {};
      for (const auto &[position, amounts] : loadOf[seat.mesh]->changes) {
        if (position > at)
          break;
        for (size_t kind = 0; kind < kNumLoadKinds; ++kind)
          now[kind] += amounts[kind];
      }
      sum += seat.shares.of(now) * scale;
    }
    return sum;
  };
  double none = need(0);
  return {none, need(1) - none};
}

/// The largest share of a mesh that a device has memory for. The need is the
/// largest of linear ones, of which the first, the last and that of the ideal
/// share are looked at.
double MeshBalancer::roomFor(int64_t device, size_t mesh, bool inner) const {
  double memory = double(cluster.kindOf(device).memoryBytes);
  double room = 1;
  const Seats &ideal = seats[device];
  for (std::optional<double> share :
       {std::optional<double>(), std::optional<double>(0),
        std::optional<double>(1)}) {
    Seats tried = ideal;
    for (Seat &seat : tried)
      if (seat.mesh == mesh && share && inner)
        seat.shares.inner = *share;
      else if (seat.mesh == mesh && share)
        seat.shares.batch = seat.shares.group = *share;
    unsigned position = 0;
    if (peakOf(tried, scaleOf(device), &position) <= memory && share == 1)
      return room;
    Slope slope = slopeAt(ideal, scaleOf(device), mesh, inner, position);
    if (slope.bytes > 0)
      room = std::min(room, (memory - slope.fixed) / slope.bytes);
  }
  return std::max(room, 0.0);
}

/// Keeps the shares of a mesh within the memory of its devices.
void MeshBalancer::limit(size_t index, Mesh &mesh, MeshBalance &balance) {
  if (loadOf[index] == &kNoLoad)
    return;
  for (bool inner : {false, true}) {
    MeshBalance::ByDevice most;
    bool isLimit = false;
    for (const std::vector<DeviceId> &group : mesh.getGroups()) {
      std::vector<double> &row = most.emplace_back();
      for (DeviceId device : group) {
        row.push_back(roomFor(device, index, inner));
        isLimit |= row.back() < 1;
      }
    }
    if (isLimit)
      (inner ? balance.innerMost : balance.most) = std::move(most);
  }
}

std::vector<int64_t>
MeshBalancer::estimateBytes(ArrayRef<Mesh *> meshes) const {
  std::vector<int64_t> bytes;
  for (auto [device, own] : llvm::enumerate(seats))
    bytes.push_back(peakOf(own, scaleOf(device)));
  return bytes;
}

std::vector<int64_t>
MeshBalancer::argumentBytes(ArrayRef<Mesh *> meshes) const {
  std::vector<int64_t> bytes;
  for (const Seats &own : seats)
    bytes.push_back(peakOf(own, 0));
  return bytes;
}

//===----------------------------------------------------------------------===//
// Rotation
//===----------------------------------------------------------------------===//

SmallVector<int64_t> MeshBalancer::findVariants(ArrayRef<Mesh *> meshes) const {
  std::map<std::vector<int64_t>, int64_t> first;
  SmallVector<int64_t> variants;
  for (auto [moment, extent] : llvm::enumerate(loads.getMoments())) {
    std::vector<int64_t> key{extent};
    for (Mesh *mesh : meshes)
      if (!mesh->getBalance().moments.empty())
        for (const Extents &group : mesh->batchShares(extent, moment))
          llvm::append_range(key, group);
    variants.push_back(first.try_emplace(key, moment).first->second);
  }
  return variants;
}

/// How many different sequences of shares the devices of a mesh have.
static int64_t countSequences(const Mesh &mesh, ArrayRef<int64_t> moments) {
  std::vector<std::vector<int64_t>> sequences;
  for (auto [moment, extent] : llvm::enumerate(moments)) {
    size_t next = 0;
    for (const Extents &group : mesh.batchShares(extent, moment))
      for (int64_t share : group) {
        if (next == sequences.size())
          sequences.emplace_back();
        sequences[next++].push_back(share);
      }
  }
  llvm::sort(sequences);
  return llvm::unique(sequences) - sequences.begin();
}

/// Lets shares differ between micro-batches, over the period that makes the
/// step the fastest. Each kind of micro-batch is compiled for itself, and so is
/// each sequence of shares: there may not be too many.
void MeshBalancer::rotate(ArrayRef<Mesh *> meshes, int64_t mostVariants) {
  constexpr double kWorthIt = 0.99;
  constexpr int64_t kSequences = 16;
  ArrayRef<int64_t> moments = loads.getMoments();
  int64_t samples = std::accumulate(moments.begin(), moments.end(), int64_t(0));
  int64_t longest = std::min<int64_t>(moments.size(), mostVariants);
  for (auto [index, mesh] : llvm::enumerate(meshes)) {
    const MeshLoad &load = *loadOf[index];
    bool isShared = llvm::any_of(load.seconds, [](const LoadAmounts &seconds) {
      return at(seconds, LoadKind::Batch) + at(seconds, LoadKind::Group) +
                 at(seconds, LoadKind::GroupInner) >
             0;
    });
    // Replicas of a pipeline would have to change their shares together.
    if (!isShared || !mesh->getBalance().groupSeconds.empty())
      continue;
    MeshBalance still = mesh->getBalance();
    double before = finishOf(*mesh), best = before * kWorthIt;
    // Nothing is faster than when all finish together.
    double rate = 0;
    for (const std::vector<double> &group : still.seconds)
      for (double seconds : group)
        rate += 1 / seconds;
    if (double(samples) / rate > best)
      continue;
    std::optional<MeshBalance> chosen;
    for (int64_t period = 2; period <= longest; ++period) {
      MeshBalance tried = still;
      tried.moments.assign(moments.begin(), moments.end());
      tried.period = period;
      mesh->setBalance(tried);
      double finish = finishOf(*mesh);
      if (finish < best * (1 - 1e-9) &&
          countSequences(*mesh, moments) <= kSequences) {
        best = finish;
        chosen = std::move(tried);
      }
      if (period > 8)
        period += period / 4;
    }
    mesh->setBalance(chosen.value_or(still));
    llvm::SmallVector<int64_t> variants = findVariants(meshes);
    llvm::sort(variants);
    int64_t count = llvm::unique(variants) - variants.begin();
    if (count > mostVariants)
      mesh->setBalance(still);
  }
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

void MeshBalancer::explain(
    Location loc, ArrayRef<Mesh *> meshes,
    llvm::function_ref<std::string(const Mesh *)> nameOf) const {
  ArrayRef<int64_t> moments = loads.getMoments();
  for (auto [index, mesh] : llvm::enumerate(meshes)) {
    const MeshLoad &load = *loadOf[index];
    if (&load == &kNoLoad)
      continue;
    const MeshBalance &balance = mesh->getBalance();
    std::vector<int64_t> samples = samplesOf(*mesh);
    std::string text;
    llvm::raw_string_ostream os(text);
    auto describe = [&](size_t g, size_t i, size_t flat) {
      DeviceId device = mesh->getGroups()[g][i];
      std::string entry;
      llvm::raw_string_ostream line(entry);
      double seconds = 0;
      const LoadAmounts &work = load.seconds[loads.getSpeedClass(device)];
      bool hasBatch = at(work, LoadKind::Batch) + at(work, LoadKind::Group) +
                          at(work, LoadKind::GroupInner) >
                      0;
      LoadShares taken = {0, 0, 1};
      if (hasBatch && flat < samples.size()) {
        int64_t all =
            std::accumulate(moments.begin(), moments.end(), int64_t(0));
        taken.batch = double(samples[flat]) / double(std::max<int64_t>(all, 1));
        line << samples[flat] << " of " << all << " samples";
        if (!balance.moments.empty()) {
          line << " (";
          llvm::interleave(
              llvm::enumerate(moments),
              [&](auto it) {
                line << mesh->batchShares(it.value(), it.index())[g][i];
              },
              [&] { line << ' '; });
          line << ')';
        }
        double group = 0;
        for (size_t k = 0; k < mesh->getGroups()[g].size(); ++k)
          group += double(samples[flat - i + k]);
        taken.group = group / double(std::max<int64_t>(all, 1));
      }
      for (const auto &[pieces, each] : load.innerSeconds) {
        if (mesh->getGroups()[g].size() < 2)
          continue;
        Extents sizes = mesh->innerShares(pieces, g);
        line << (entry.empty() ? "" : ", ") << sizes[i] << " of " << pieces
             << " grains";
      }
      for (const Seat &seat : seats[device])
        if (seat.mesh == index)
          taken.inner = seat.shares.inner;
      seconds = taken.of(work);
      line << (entry.empty() ? "" : ", ") << llvm::format("%.4g s", seconds)
           << ", " << int64_t(peakOf(seats[device], scaleOf(device))) << " of "
           << cluster.kindOf(device).memoryBytes << " bytes ("
           << cluster.kindOf(device).name << ')';
      return entry;
    };
    // Devices in a row that do the same are named together.
    std::string last;
    std::optional<std::pair<DeviceId, DeviceId>> run;
    auto flush = [&] {
      if (!run)
        return;
      os << (text.empty() ? "" : "; ");
      if (run->first == run->second)
        os << "device " << run->first;
      else
        os << "devices " << run->first << " to " << run->second;
      os << ": " << last;
      run.reset();
    };
    size_t flat = 0;
    for (auto [g, group] : llvm::enumerate(mesh->getGroups()))
      for (auto [i, device] : llvm::enumerate(group)) {
        std::string entry = describe(g, i, flat++);
        if (run && entry == last && device == run->second + 1) {
          run->second = device;
          continue;
        }
        flush();
        run = {device, device};
        last = entry;
      }
    flush();
    emitRemark(loc) << "load balance" << nameOf(mesh) << ": " << text;
  }
}

} // namespace whale
