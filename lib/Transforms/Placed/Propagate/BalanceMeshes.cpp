//===- BalanceMeshes.cpp - How much each device takes ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the loads of each mesh by speed class (StepLoads), and the memory of
// devices. Out: the balance of each mesh, from which it computes its shares.
//
// Speeds come first, then the part of all units that each device has memory
// for, given what the shares of the other meshes leave. Then repetitions of a
// pipeline get equal shares on all stages. At last shares may rotate from one
// micro-batch to the next: every period up to 9 is tried, then each about a
// quarter longer. Cost: the shares of all micro-batches for each period tried.
//
//===----------------------------------------------------------------------===//

#include "BalanceMeshes.h"

#include "mlir/IR/Threading.h"
#include "whale/Planner/LoadBalance.h"
#include <numeric>

using namespace mlir;

namespace whale {

MeshBalancer::MeshBalancer(const StepLoads &loads, const Cluster &cluster,
                           const MemoryFit &fit,
                           std::vector<ScratchLine> scratch,
                           ArrayRef<PlannedShares> planned)
    : loads(loads), cluster(cluster), fit(fit), scratch(std::move(scratch)),
      planned(planned) {}

void MeshBalancer::balance(ArrayRef<Mesh *> meshes, int64_t mostVariants) {
  loadOf.clear();
  for (Mesh *mesh : meshes) {
    auto it = loads.getMeshes().find(mesh);
    loadOf.push_back(it == loads.getMeshes().end() ? nullptr : &it->second);
    if (loadOf.back())
      mesh->setBalance(speedsOf(*mesh, *loadOf.back()));
  }
  if (takePlanned(meshes))
    return useShares(realShares(meshes));
  limitWithCaution(meshes);
  if (loads.getMoments().size() > 1) {
    keepReplicasApart(meshes);
    rotate(meshes, mostVariants);
  }
  // The others are decided as without a plan.
  takePlanned(meshes);
  useShares(realShares(meshes));
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Takes the shares that a plan has. Whether it has them for all meshes with
/// work.
bool MeshBalancer::takePlanned(ArrayRef<Mesh *> meshes) {
  bool hasAll = !planned.empty();
  for (auto [mesh, load] : llvm::zip_equal(meshes, loadOf)) {
    const std::vector<std::vector<DeviceId>> &groups = mesh->getGroups();
    const auto *shares = llvm::find_if(planned, [&](const PlannedShares &each) {
      return each.devices == groups;
    });
    if (!load || shares == planned.end()) {
      hasAll &= !load;
      continue;
    }
    MeshBalance balance;
    balance.batch = shares->batch;
    balance.byGroup = shares->byGroup;
    balance.replicas = shares->replicas;
    for (const PlannedShares::Inner &inner : shares->inner)
      balance.inner[inner.pieces] = inner.costs;
    balance.otherInner = shares->otherInner;
    balance.moments = shares->moments;
    balance.period = shares->period;
    mesh->setBalance(std::move(balance));
  }
  return hasAll;
}

std::vector<PlannedShares>
MeshBalancer::getShares(ArrayRef<Mesh *> meshes) const {
  std::vector<PlannedShares> list;
  for (auto [mesh, load] : llvm::zip_equal(meshes, loadOf)) {
    if (!load)
      continue;
    const MeshBalance &balance = mesh->getBalance();
    PlannedShares &shares = list.emplace_back();
    shares.devices = mesh->getGroups();
    shares.batch = balance.batch;
    shares.byGroup = balance.byGroup;
    shares.replicas = balance.replicas;
    for (const auto &[pieces, costs] : balance.inner)
      shares.inner.push_back({pieces, costs});
    shares.otherInner = balance.otherInner;
    shares.moments = balance.moments;
    shares.period = balance.period;
  }
  return list;
}

/// The repetitions of a pipeline are replicas of the model, each with samples
/// of its own: all stages cut a micro-batch in the same way, or else
/// replicas would wait for one another. The slowest stage decides how much a
/// replica takes, and the fullest how much it can.
void MeshBalancer::keepReplicasApart(ArrayRef<Mesh *> meshes) {
  std::map<size_t, std::vector<Mesh *>> byCount;
  for (auto [index, mesh] : llvm::enumerate(meshes))
    if (mesh->getGroups().size() > 1 && loadOf[index])
      byCount[mesh->getGroups().size()].push_back(mesh);
  for (auto &[count, stages] : byCount) {
    if (stages.size() < 2)
      continue;
    std::vector<ShareCost> replicas(count, ShareCost{.seconds = 0});
    for (Mesh *stage : stages)
      for (auto [g, replica] : llvm::enumerate(replicas)) {
        ShareCost own = stage->getBalance().ofGroup(g);
        replica.seconds = std::max(replica.seconds, own.seconds);
        replica.most = std::min(replica.most, own.most);
      }
    for (Mesh *stage : stages) {
      MeshBalance balance = stage->getBalance();
      balance.replicas = replicas;
      stage->setBalance(std::move(balance));
    }
  }
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// Seconds for each sample, and for what is cut otherwise.
MeshBalance MeshBalancer::speedsOf(const Mesh &mesh,
                                   const MeshLoad &load) const {
  MeshBalance balance = mesh.getBalance();
  double samples = 0;
  for (int64_t moment : loads.getMoments())
    samples += double(moment);
  // What devices share out of the mini-batch decides, else what groups do.
  bool hasBatch = false, hasGroup = false;
  for (const LoadAmounts &seconds : load.seconds) {
    hasBatch |= seconds[LoadKind::Batch] > 0;
    hasGroup |= seconds.ofGroup() > 0;
  }
  balance.byGroup = !hasBatch && hasGroup && mesh.getNumParts(1) > 1;
  // All of them, or none where one has nothing to do.
  auto fill = [&](MeshBalance::ByDevice &table, double ShareCost::*number,
                  auto secondsOf) {
    MeshBalance::ByDevice filled = table;
    for (auto [row, group] : llvm::zip_equal(filled, mesh.getGroups()))
      for (auto [cost, device] : llvm::zip_equal(row, group)) {
        cost.*number = secondsOf(loads.getSpeedClass(device));
        if (!(cost.*number > 0))
          return;
      }
    table = std::move(filled);
  };
  fill(balance.batch, &ShareCost::seconds, [&](unsigned speed) {
    const LoadAmounts &seconds = load.seconds[speed];
    double batch = seconds[LoadKind::Batch];
    if (balance.byGroup)
      batch = seconds.ofGroup();
    else if (!hasBatch)
      batch = seconds[LoadKind::Inner] + seconds[LoadKind::Whole];
    return batch / std::max(samples, 1.0);
  });
  for (auto [others, costs] :
       llvm::zip_equal(balance.otherInner, balance.batch))
    for (auto [other, cost] : llvm::zip_equal(others, costs))
      other.seconds = cost.seconds;
  for (const auto &[pieces, seconds] : load.innerSeconds)
    fill(balance.inner.try_emplace(pieces, balance.otherInner).first->second,
         &ShareCost::seconds,
         [&, &seconds = seconds](unsigned speed) { return seconds[speed]; });

  // What every device of a group computes goes with all that they share out,
  // in proportion.
  auto fixedOf = [&](unsigned speed, double part) {
    const LoadAmounts &seconds = load.seconds[speed];
    double shared = seconds[LoadKind::Batch];
    for (const auto &[pieces, inner] : load.innerSeconds)
      shared += inner[speed];
    double whole = seconds[LoadKind::Whole] + seconds[LoadKind::Group];
    return shared > 0 ? whole * part / shared : 0;
  };
  auto clearFixed = [](MeshBalance::ByDevice &table) {
    for (std::vector<ShareCost> &row : table)
      for (ShareCost &cost : row)
        cost.fixed = 0;
  };
  clearFixed(balance.batch);
  for (auto &[pieces, table] : balance.inner)
    clearFixed(table);
  if (hasBatch)
    fill(balance.batch, &ShareCost::fixed, [&](unsigned speed) {
      return fixedOf(speed, load.seconds[speed][LoadKind::Batch]) /
             std::max(samples, 1.0);
    });
  for (const auto &[pieces, seconds] : load.innerSeconds)
    fill(balance.inner.at(pieces), &ShareCost::fixed,
         [&, &seconds = seconds](unsigned speed) {
           return fixedOf(speed, seconds[speed]);
         });
  return balance;
}

std::vector<Extents> MeshBalancer::samplesOf(const Mesh &mesh) const {
  std::vector<Extents> samples;
  for (const std::vector<DeviceId> &group : mesh.getGroups())
    samples.emplace_back(group.size(), 0);
  for (auto [moment, extent] : llvm::enumerate(loads.getMoments())) {
    const std::vector<Extents> &shares = mesh.batchShares(extent, moment);
    for (size_t g = 0; g < samples.size(); ++g)
      for (size_t i = 0; i < samples[g].size(); ++i)
        samples[g][i] += shares[g][i];
  }
  return samples;
}

/// Seconds of the device that takes the longest; those of the slowest device in
/// each micro-batch where they wait for one another.
double MeshBalancer::finishOf(const Mesh &mesh) const {
  const MeshBalance &balance = mesh.getBalance();
  double latest = 0;
  for (size_t g = 0; g < mesh.getGroups().size(); ++g) {
    std::vector<double> seconds(mesh.getGroups()[g].size(), 0);
    double together = 0;
    for (auto [moment, extent] : llvm::enumerate(loads.getMoments())) {
      const Extents &shares = mesh.batchShares(extent, moment)[g];
      double slowest = 0;
      for (auto [i, share] : llvm::enumerate(shares)) {
        const ShareCost &cost = balance.batch[g][i];
        double own = double(share) * cost.seconds + double(extent) * cost.fixed;
        seconds[i] += own;
        slowest = std::max(slowest, own);
      }
      together += slowest;
    }
    latest = std::max(
        latest, balance.isLockstep() ? together : *llvm::max_element(seconds));
  }
  return latest;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Shares in proportion to speed, before they are whole numbers.
std::vector<MeshShares>
MeshBalancer::idealShares(ArrayRef<Mesh *> meshes) const {
  std::vector<MeshShares> taken(cluster.devices.size());
  for (auto [index, mesh] : llvm::enumerate(meshes)) {
    if (!loadOf[index])
      continue;
    const MeshBalance &balance = mesh->getBalance();
    const MeshBalance::ByDevice *inner = &balance.batch;
    if (std::optional<int64_t> pieces = loadOf[index]->costliestCut())
      inner = &balance.inner.at(*pieces);
    double rate = balance.rate();
    for (auto [g, group] : llvm::enumerate(mesh->getGroups())) {
      double groupRate = rateOf(balance.batch[g]);
      double innerRate = rateOf((*inner)[g]);
      for (size_t i = 0; i < group.size(); ++i) {
        LoadShares shares;
        shares.batch = 1 / balance.batch[g][i].seconds / rate;
        shares.group = groupRate / rate;
        shares.inner = 1 / (*inner)[g][i].seconds / innerRate;
        taken[group[i]].push_back({loadOf[index], shares});
      }
    }
  }
  return taken;
}

/// The shares of the fullest micro-batch.
std::vector<MeshShares>
MeshBalancer::realShares(ArrayRef<Mesh *> meshes) const {
  std::vector<MeshShares> taken(cluster.devices.size());
  for (auto [index, mesh] : llvm::enumerate(meshes)) {
    if (!loadOf[index])
      continue;
    std::optional<int64_t> pieces = loadOf[index]->costliestCut();
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
      if (pieces && group.size() > 1) {
        Extents sizes = mesh->innerShares(*pieces, g);
        for (size_t i = 0; i < group.size(); ++i)
          shares[i].inner = double(sizes[i]) / double(*pieces);
      }
      for (size_t i = 0; i < group.size(); ++i)
        taken[group[i]].push_back({loadOf[index], shares[i]});
    }
  }
  return taken;
}

void MeshBalancer::useShares(std::vector<MeshShares> taken, Caution caution) {
  std::vector<double> scale = fit.shareScale;
  scale.resize(cluster.devices.size(), 1);
  for (double &factor : scale)
    factor = std::max(factor, caution.leastScale) * (1 + caution.reserve);
  room.emplace(cluster, std::move(scale), scratch, std::move(taken));
}

void MeshBalancer::setScratch(ArrayRef<int64_t> bytes) {
  scratch.clear();
  for (int64_t each : bytes)
    scratch.push_back({double(each), 0});
  std::vector<MeshShares> shares;
  for (size_t device = 0; device < cluster.devices.size(); ++device)
    shares.push_back(room->getShares(device));
  useShares(std::move(shares));
}

/// Whether the shares that were looked at last fit, what is kept free included.
bool MeshBalancer::isWithinMemory() const {
  for (size_t device = 0; device < cluster.devices.size(); ++device)
    if (room->peakBytes(device) > cluster.kindOf(device).memoryBytes)
      return false;
  return true;
}

/// Where memory was short, what is expected is corrected but still an estimate,
/// and shares that fill a device exactly need too much as often as not. So some
/// memory is kept free, as much as whole shares leave: estimates are right to
/// within 10%, and what corrections leave of that is mostly below 3%. What
/// needed less than expected may need more with another share: that is counted
/// on only where nothing else is left.
void MeshBalancer::limitWithCaution(ArrayRef<Mesh *> meshes) {
  // Reserves are parts of what is expected to be needed. The first is about
  // twice the error that corrections mostly leave: a larger one would take
  // shares from devices for errors that are rare. Each further one is half as
  // large, where there is not so much memory. The sixth, 0.2%, is the last:
  // less is small beside that error, and each try shares out all meshes anew.
  SmallVector<Caution> cautions;
  if (fit.isCorrected)
    for (double leastScale : {1.0, 0.0})
      for (double reserve = 0.064; reserve > 0.001; reserve /= 2)
        cautions.push_back({reserve, leastScale});
  for (Caution caution : cautions) {
    useShares(idealShares(meshes), caution);
    limit(meshes);
    useShares(realShares(meshes), caution);
    if (isWithinMemory())
      return;
  }
  useShares(idealShares(meshes));
  limit(meshes);
}

/// Keeps the shares of meshes within the memory of their devices.
void MeshBalancer::limit(ArrayRef<Mesh *> meshes) {
  for (auto [index, mesh] : llvm::enumerate(meshes)) {
    if (!loadOf[index])
      continue;
    MeshBalance balance = mesh->getBalance();
    for (auto [g, group] : llvm::enumerate(mesh->getGroups()))
      for (auto [i, device] : llvm::enumerate(group)) {
        balance.batch[g][i].most =
            room->roomFor(device, loadOf[index], /*inner=*/false);
        double inner = room->roomFor(device, loadOf[index], /*inner=*/true);
        balance.otherInner[g][i].most = inner;
        for (auto &[pieces, costs] : balance.inner)
          costs[g][i].most = inner;
      }
    mesh->setBalance(std::move(balance));
  }
}

/// Who takes which samples in a mesh.
std::vector<MemoryFit::Estimate::Group>
MeshBalancer::takersOf(const Mesh &mesh, const MeshLoad &load) const {
  std::vector<MemoryFit::Estimate::Group> takers;
  for (auto [group, samples] :
       llvm::zip_equal(mesh.getGroups(), samplesOf(mesh))) {
    MemoryFit::Estimate::Group &taker = takers.emplace_back();
    taker.devices.assign(group.begin(), group.end());
    for (int64_t each : samples)
      taker.samples.push_back(each * loads.getGrain());
    // What is cut otherwise has all samples of the group.
    taker.isTogether =
        mesh.getBalance().byGroup || load.costliestCut().has_value();
  }
  return takers;
}

MemoryFit::Estimate MeshBalancer::estimate(ArrayRef<Mesh *> meshes) const {
  MemoryFit::Estimate estimate;
  for (size_t device = 0; device < cluster.devices.size(); ++device) {
    estimate.bytes.push_back(room->peakBytes(device));
    estimate.fixedBytes.push_back(room->argumentBytes(device));
    estimate.scratchBytes.push_back(room->scratchBytes(device));
    estimate.bySamples.push_back(room->linesOf(device));
  }
  for (auto [mesh, load] : llvm::zip_equal(meshes, loadOf))
    if (load)
      estimate.meshes.push_back(takersOf(*mesh, *load));
  return estimate;
}

std::vector<int64_t> MeshBalancer::findAlike() const {
  std::vector<int64_t> alike;
  std::map<std::pair<unsigned, MeshShares>, int64_t> firsts;
  for (auto [id, device] : llvm::enumerate(cluster.devices))
    alike.push_back(
        firsts.try_emplace({device.kind, room->getShares(id)}, int64_t(id))
            .first->second);
  return alike;
}

std::vector<LoopBytes> MeshBalancer::loopBytes(MicroBatchesOp loop) const {
  std::vector<LoopBytes> bytes(cluster.devices.size());
  parallelFor(loop.getContext(), 0, bytes.size(), [&](size_t device) {
    bytes[device] = room->loopBytes(device, loads.getRange(loop));
  });
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

void MeshBalancer::rotate(ArrayRef<Mesh *> meshes, int64_t mostVariants) {
  // Stages of a pipeline that is repeated change their shares together.
  std::map<size_t, std::vector<Mesh *>> pipelines;
  for (auto [index, mesh] : llvm::enumerate(meshes)) {
    if (!loadOf[index])
      continue;
    if (!mesh->getBalance().replicas.empty())
      pipelines[mesh->getGroups().size()].push_back(mesh);
    else if (llvm::any_of(loadOf[index]->seconds,
                          [](const LoadAmounts &seconds) {
                            return seconds.ofSamples() > 0;
                          }))
      rotateTogether(mesh, meshes, mostVariants);
  }
  for (auto &[count, stages] : pipelines)
    rotateTogether(stages, meshes, mostVariants);
}

/// Lets shares differ between micro-batches, over the period that makes the
/// step the fastest. Each kind of micro-batch is a region that is compiled, and
/// each sequence of shares a rank class: there may not be too many.
void MeshBalancer::rotateTogether(ArrayRef<Mesh *> stages,
                                  ArrayRef<Mesh *> meshes,
                                  int64_t mostVariants) {
  // The part of the time that a rotation must save. Finish times leave out its
  // cost: samples that move to other devices before the first micro-batch, and
  // the time to compile its regions. Without a limit shares would rotate for
  // savings that are far less than this cost and than the error of the cost
  // model.
  constexpr double kLeastSaving = 0.002;
  constexpr int64_t kSequences = 16;
  ArrayRef<int64_t> moments = loads.getMoments();
  int64_t samples = std::accumulate(moments.begin(), moments.end(), int64_t(0));
  int64_t longest = std::min<int64_t>(moments.size(), mostVariants);
  std::vector<MeshBalance> still;
  double ideal = 0;
  for (Mesh *mesh : stages) {
    still.push_back(mesh->getBalance());
    ideal = std::max(ideal, double(samples) / still.back().rate());
  }
  // The slowest stage decides, then all of them.
  auto findFinish = [&] {
    std::pair<double, double> finish{0, 0};
    for (Mesh *mesh : stages) {
      double own = finishOf(*mesh);
      finish.first = std::max(finish.first, own);
      finish.second += own;
    }
    return finish;
  };
  auto usePeriod = [&](int64_t period) {
    for (auto [mesh, balance] : llvm::zip_equal(stages, still)) {
      MeshBalance own = balance;
      if (period > 1) {
        own.moments.assign(moments.begin(), moments.end());
        own.period = period;
      }
      mesh->setBalance(std::move(own));
    }
  };
  auto [best, total] = findFinish();
  best *= 1 - kLeastSaving;
  // Nothing is faster than when all finish together.
  if (ideal > best)
    return;
  int64_t chosen = 1;
  for (int64_t period = 2; period <= longest; ++period) {
    usePeriod(period);
    auto [latest, sum] = findFinish();
    bool isFaster = latest < best * (1 - 1e-9);
    bool isAsFast = chosen > 1 && latest < best * (1 + 1e-9);
    if ((isFaster || (isAsFast && sum < total * (1 - kLeastSaving))) &&
        llvm::all_of(stages, [&](Mesh *mesh) {
          return countSequences(*mesh, moments) <= kSequences;
        })) {
      best = latest;
      total = sum;
      chosen = period;
    }
    if (period > 8)
      period += period / 4;
  }
  usePeriod(chosen);
  llvm::SmallVector<int64_t> variants = findVariants(meshes);
  llvm::sort(variants);
  if (llvm::unique(variants) - variants.begin() > mostVariants)
    usePeriod(1);
}

} // namespace whale
