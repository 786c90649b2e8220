//===- CostModel.cpp - Time of operations and transfers -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The roofline model. In: the cluster, an operation or a set of exchanges. Out:
// seconds. Exchanges add their bytes to the links of devices and to the network
// of nodes; the busiest one determines the time. Cost: linear in the devices of
// each exchange.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/CostModel.h"

#include "ExchangeLoads.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace whale {
namespace {

class RooflineModel : public CostModel {
public:
  RooflineModel(const Cluster &cluster, CollectiveRule rule)
      : cluster(cluster), rule(rule) {}
  double opSeconds(const OpCost &op, int64_t device) const override;
  double exchangeSeconds(std::span<const Exchange> exchanges) const override;
  LinkLoads linkLoads(std::span<const Exchange> exchanges) const override;
  std::vector<double> linkBandwidths() const override;

private:
  const Cluster &cluster;
  CollectiveRule rule;
};

} // namespace

double RooflineModel::opSeconds(const OpCost &op, int64_t device) const {
  const DeviceKind &kind = cluster.kindOf(device);
  double rate =
      kind.peakFlops(op.dtype) *
      kind.efficiency[static_cast<size_t>(op.opClass)].at(op.flops, op.extent);
  assert(rate > 0 && std::isfinite(op.flops) && std::isfinite(op.bytes) &&
         "costs are finite");
  double seconds =
      std::max(op.flops / rate,
               op.bytes / (kind.memoryBandwidth * kind.memoryEfficiency));
  if (seconds > 0 && op.startsKernel)
    seconds += kind.kernelStart;
  return seconds * cluster.devices[device].slowdown;
}

double
RooflineModel::exchangeSeconds(std::span<const Exchange> exchanges) const {
  ExchangeLoads loads(cluster, rule);
  for (const Exchange &exchange : exchanges)
    loads.add(exchange);
  return loads.seconds();
}

LinkLoads RooflineModel::linkLoads(std::span<const Exchange> exchanges) const {
  ExchangeLoads loads(cluster, rule);
  for (const Exchange &exchange : exchanges)
    loads.add(exchange);
  return loads.list();
}

/// Of each link in both directions: of devices, then of nodes.
std::vector<double> RooflineModel::linkBandwidths() const {
  std::vector<double> bandwidths;
  size_t nodes = 0;
  for (size_t device = 0; device < cluster.devices.size(); ++device) {
    const Link &link = cluster.nodeOf(static_cast<int64_t>(device)).link;
    bandwidths.insert(bandwidths.end(), 2, link.bandwidth);
    nodes = std::max<size_t>(nodes, cluster.devices[device].node + 1);
  }
  bandwidths.insert(bandwidths.end(), 2 * nodes, cluster.network.bandwidth);
  return bandwidths;
}

std::unique_ptr<CostModel> createRooflineModel(const Cluster &cluster,
                                               CollectiveRule rule) {
  return std::make_unique<RooflineModel>(cluster, rule);
}

} // namespace whale
