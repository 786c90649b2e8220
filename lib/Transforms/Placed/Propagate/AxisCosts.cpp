//===- AxisCosts.cpp - What layouts cost on a mesh ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AxisCosts.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// Where links are free, bytes still have to be copied: seconds for each.
static constexpr double copySeconds = 1e-10;

/// And devices have to wait for one another: seconds for each beyond the first.
/// A sum of a few numbers takes two threads so long on two cores.
static constexpr double meetingSeconds = 2e-5;

/// Between nodes each byte is taken to cross once for a node: all-reduces are
/// divided so, and a layout that is cheap with other collectives divided alike
/// also needs less memory than one that avoids them.
AxisCosts::AxisCosts(const Cluster &cluster)
    : cluster(cluster),
      model(createRooflineModel(cluster, CollectiveRule::Nccl)) {}

AxisWork AxisCosts::work(Operation *op, const Mesh &mesh, unsigned axis) {
  auto [it, isNew] = works.try_emplace({op, &mesh, axis});
  if (!isNew)
    return it->second;
  // Devices of a kind differ in their slowdown alone.
  llvm::DenseMap<unsigned, double> secondsOfKind;
  double speed = 0;
  AxisWork work;
  for (DeviceId id : mesh.getDevices(axis)) {
    const Device &device = cluster.devices[id];
    auto [kind, isFirst] = secondsOfKind.try_emplace(device.kind);
    if (isFirst)
      kind->second = opSeconds(op, *model, id) / device.slowdown;
    double seconds = kind->second * device.slowdown;
    work.whole = std::max(work.whole, seconds);
    speed += 1 / seconds;
  }
  work.shared = 1 / speed;
  return it->second = work;
}

/// What such an exchange of a value of `bytes` is for the cost model.
static Exchange makeExchange(Exchange::Kind kind, double bytes,
                             ArrayRef<DeviceId> group) {
  Exchange exchange;
  exchange.kind = kind;
  exchange.devices.assign(group.begin(), group.end());
  double count = group.size();
  bool isWhole = kind == Exchange::Kind::AllReduce;
  exchange.bytes.assign(group.size(), isWhole ? bytes : bytes / count);
  return exchange;
}

/// The bytes that a device cannot do without receiving.
static double leastBytes(Exchange::Kind kind, double bytes, double parts) {
  double others = bytes * (parts - 1) / parts;
  if (kind == Exchange::Kind::AllReduce)
    return 2 * others;
  return kind == Exchange::Kind::AllToAll ? others / parts : others;
}

double AxisCosts::exchange(Exchange::Kind kind, double bytes, const Mesh &mesh,
                           unsigned axis) {
  std::vector<DeviceId> group = mesh.getDevices(axis);
  if (group.size() < 2)
    return 0;
  auto [it, isNew] = exchanges.try_emplace({&mesh, axis, kind});
  auto &[latency, perByte] = it->second;
  if (isNew) {
    // The model is linear in the size.
    constexpr double probe = 1e6;
    double once = model->exchangeSeconds(makeExchange(kind, probe, group));
    double twice = model->exchangeSeconds(makeExchange(kind, 2 * probe, group));
    perByte = (twice - once) / probe;
    latency = once - perByte * probe;
    // Less is what rounding leaves of none.
    if (latency < 1e-9)
      latency = double(group.size() - 1) * meetingSeconds;
  }
  if (perByte == 0)
    return latency +
           leastBytes(kind, bytes, double(group.size())) * copySeconds;
  return latency + perByte * bytes;
}

double AxisCosts::halo(double partBytes, double haloBytes, const Mesh &mesh,
                       unsigned axis) {
  std::vector<DeviceId> group = mesh.getDevices(axis);
  Exchange exchange;
  exchange.kind = Exchange::Kind::PointToPoint;
  for (size_t i = 1; i < group.size(); ++i) {
    exchange.transfers.push_back({group[i - 1], group[i], haloBytes / 2});
    exchange.transfers.push_back({group[i], group[i - 1], haloBytes / 2});
  }
  if (exchange.transfers.empty())
    return 0;
  // The part itself is copied to where its halo is: read and written.
  OpCost copy;
  copy.bytes = 2 * partBytes;
  double slowest = 0;
  for (DeviceId device : group)
    slowest = std::max(slowest, model->opSeconds(copy, device));
  return model->exchangeSeconds(exchange) + slowest;
}

double AxisCosts::repeats(Operation *op) {
  Region *region = op->getParentRegion();
  if (!region)
    return 1;
  if (auto it = regionRepeats.find(region); it != regionRepeats.end())
    return it->second;
  Operation *parent = region->getParentOp();
  double count = 1;
  if (auto loop = dyn_cast<hlo::WhileOp>(parent))
    count = double(tripCount(loop).value_or(1));
  else if (auto loop = dyn_cast<MicroBatchesOp>(parent))
    count = double(loop.getNumMoments(region));
  count = repeatCost(count, repeats(parent));
  return regionRepeats[region] = count;
}

} // namespace whale
