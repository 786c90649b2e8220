//===- AxisCosts.cpp - What layouts cost on a mesh ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AxisCosts.h"

#include "whale/Cluster/AssumedLinks.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// Between nodes each byte is taken to cross once for a node: all-reduces are
/// divided so, and a layout that is cheap with other collectives divided alike
/// also needs less memory than one that avoids them. Where no link is known,
/// nothing is divided.
static CollectiveRule ruleFor(const Cluster &cluster) {
  bool isFree = cluster.network == Link() &&
                llvm::all_of(cluster.nodes, [](const NodeGroup &node) {
                  return node.link == Link();
                });
  return isFree ? CollectiveRule::Own : CollectiveRule::Nccl;
}

AxisCosts::AxisCosts(const Cluster &given)
    : cluster(withAssumedLinks(given)),
      model(createRooflineModel(cluster, ruleFor(given))) {}

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

double AxisCosts::exchange(Exchange::Kind kind, double bytes, const Mesh &mesh,
                           unsigned axis) {
  auto [it, isNew] = exchanges.try_emplace({&mesh, axis, kind, bytes});
  if (isNew)
    it->second = model->exchangeSeconds(
        makeExchange(kind, bytes, mesh.getDevices(axis)));
  return it->second;
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
