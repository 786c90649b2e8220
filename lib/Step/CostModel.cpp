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

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <map>
#include <unordered_map>

namespace whale {
namespace {

/// Bytes in each direction of a link.
struct Traffic {
  double in = 0, out = 0;
  double worst() const { return std::max(in, out); }
};

/// The members of a group that are in one node.
struct Members {
  int64_t count = 0;
  double bytes = 0;
};

class RooflineModel : public CostModel {
public:
  explicit RooflineModel(const Cluster &cluster) : cluster(cluster) {}
  double opSeconds(const OpCost &op, int64_t device) const override;
  double exchangeSeconds(std::span<const Exchange> exchanges) const override;
  LinkLoads linkLoads(std::span<const Exchange> exchanges) const override;
  std::vector<double> linkBandwidths() const override;

private:
  const Cluster &cluster;
};

/// Sums up the bytes that links and networks carry.
class Loads {
public:
  explicit Loads(const Cluster &cluster) : cluster(cluster) {}
  void add(const Exchange &exchange);
  double seconds() const;
  LinkLoads list() const;

private:
  void addTransfers(const Exchange &exchange);
  void addRing(const Exchange &exchange);
  void addBroadcast(const Exchange &exchange);
  void addAllToAll(const Exchange &exchange);
  std::map<unsigned, Members> membersOf(const Exchange &exchange) const;
  unsigned nodeOf(int64_t device) const { return cluster.devices[device].node; }

  const Cluster &cluster;
  std::unordered_map<int64_t, Traffic> links;
  std::unordered_map<unsigned, Traffic> networks;
  double latency = 0;
};
} // namespace

double RooflineModel::opSeconds(const OpCost &op, int64_t device) const {
  const DeviceKind &kind = cluster.kindOf(device);
  double rate = kind.peakFlops(op.dtype) *
                kind.efficiency[static_cast<size_t>(op.opClass)].at(
                    op.flops, op.smallest);
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
  Loads loads(cluster);
  for (const Exchange &exchange : exchanges)
    loads.add(exchange);
  return loads.seconds();
}

LinkLoads RooflineModel::linkLoads(std::span<const Exchange> exchanges) const {
  Loads loads(cluster);
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

void Loads::add(const Exchange &exchange) {
  switch (exchange.kind) {
  case Exchange::Kind::PointToPoint:
    return addTransfers(exchange);
  case Exchange::Kind::Broadcast:
    return addBroadcast(exchange);
  case Exchange::Kind::AllToAll:
    return addAllToAll(exchange);
  case Exchange::Kind::AllReduce:
  case Exchange::Kind::AllGather:
  case Exchange::Kind::ReduceScatter:
    return addRing(exchange);
  }
}

double Loads::seconds() const {
  double worst = 0;
  for (const auto &[device, traffic] : links)
    worst = std::max(worst,
                     cluster.nodeOf(device).link.secondsFor(traffic.worst()));
  for (const auto &[node, traffic] : networks)
    worst = std::max(worst, cluster.network.secondsFor(traffic.worst()));
  return worst + latency;
}

LinkLoads Loads::list() const {
  LinkLoads result;
  result.latency = latency;
  auto add = [&](size_t number, const Link &link, const Traffic &traffic) {
    for (auto [direction, bytes] :
         {std::pair(0, traffic.out), std::pair(1, traffic.in)})
      if (bytes > 0)
        result.loads.push_back(
            {2 * number + direction, bytes / link.efficiency.at(bytes)});
  };
  for (const auto &[device, traffic] : links)
    add(static_cast<size_t>(device), cluster.nodeOf(device).link, traffic);
  for (const auto &[node, traffic] : networks)
    add(cluster.devices.size() + node, cluster.network, traffic);
  std::ranges::sort(result.loads, {}, &LinkLoads::Load::link);
  return result;
}

void Loads::addTransfers(const Exchange &exchange) {
  for (const Transfer &transfer : exchange.transfers) {
    if (transfer.from == transfer.to || transfer.bytes == 0)
      continue;
    bool sameNode = cluster.sameNode(transfer.from, transfer.to);
    if (sameNode) {
      links[transfer.from].out += transfer.bytes;
      links[transfer.to].in += transfer.bytes;
    } else {
      networks[nodeOf(transfer.from)].out += transfer.bytes;
      networks[nodeOf(transfer.to)].in += transfer.bytes;
    }
    latency = std::max(latency,
                       cluster.linkBetween(transfer.from, transfer.to).latency);
  }
}

std::map<unsigned, Members> Loads::membersOf(const Exchange &exchange) const {
  std::map<unsigned, Members> members;
  for (size_t i = 0; i < exchange.devices.size(); ++i) {
    Members &entry = members[nodeOf(exchange.devices[i])];
    ++entry.count;
    if (i < exchange.bytes.size())
      entry.bytes += exchange.bytes[i];
  }
  return members;
}

void Loads::addRing(const Exchange &exchange) {
  size_t count = exchange.devices.size();
  if (count < 2)
    return;
  std::map<unsigned, Members> members = membersOf(exchange);
  // An all-reduce is a reduce-scatter and an all-gather of equal parts.
  bool allReduce = exchange.kind == Exchange::Kind::AllReduce;
  double rounds = allReduce ? 2 : 1;
  double total = 0;
  for (double bytes : exchange.bytes)
    total += bytes;
  if (allReduce)
    total /= static_cast<double>(count);
  double nodeLatency = 0;
  for (size_t i = 0; i < count; ++i) {
    int64_t device = exchange.devices[i];
    const Members &node = members[nodeOf(device)];
    double own =
        allReduce ? total / static_cast<double>(count) : exchange.bytes[i];
    double nodeBytes =
        allReduce ? own * static_cast<double>(node.count) : node.bytes;
    // Bytes from the network arrive at one device, which forwards them to the
    // others of the node.
    double byLink =
        total - own - (total - nodeBytes) / static_cast<double>(node.count);
    byLink = node.count > 1 ? std::max(byLink, 0.0) * rounds : 0;
    links[device].in += byLink;
    links[device].out += byLink;
    nodeLatency =
        std::max(nodeLatency, static_cast<double>(node.count - 1) *
                                  cluster.nodeOf(device).link.latency);
  }
  if (members.size() > 1)
    for (const auto &[node, entry] : members) {
      double nodeBytes = allReduce ? total / static_cast<double>(count) *
                                         static_cast<double>(entry.count)
                                   : entry.bytes;
      networks[node].in += (total - nodeBytes) * rounds;
      networks[node].out += (total - nodeBytes) * rounds;
    }
  latency = std::max(
      latency, rounds * (nodeLatency + static_cast<double>(members.size() - 1) *
                                           cluster.network.latency));
}

/// In how many rounds of messages all of `count` have what one of them had.
static double roundsOf(size_t count) { return std::bit_width(count - 1); }

void Loads::addBroadcast(const Exchange &exchange) {
  if (exchange.devices.size() < 2)
    return;
  std::map<unsigned, Members> members = membersOf(exchange);
  double bytes = exchange.bytes.front();
  unsigned root = nodeOf(exchange.devices.front());
  double nodeLatency = 0;
  for (size_t i = 0; i < exchange.devices.size(); ++i) {
    int64_t device = exchange.devices[i];
    int64_t inNode = members[nodeOf(device)].count;
    if (inNode > 1) {
      // A chain: all but the first receive, all but the last send.
      links[device].out += bytes;
      links[device].in += bytes;
      nodeLatency = std::max(
          nodeLatency, roundsOf(inNode) * cluster.nodeOf(device).link.latency);
    }
  }
  if (members.size() > 1)
    for (const auto &[node, entry] : members)
      (node == root ? networks[node].out : networks[node].in) += bytes;
  latency = std::max(latency, nodeLatency + roundsOf(members.size()) *
                                                cluster.network.latency);
}

/// Adds the same bytes as messages between any two devices would, without a
/// list of them.
void Loads::addAllToAll(const Exchange &exchange) {
  double count = static_cast<double>(exchange.devices.size());
  double total = 0;
  for (double bytes : exchange.bytes)
    total += bytes;
  if (exchange.devices.size() < 2 || total == 0)
    return;
  std::map<unsigned, Members> members = membersOf(exchange);
  for (size_t i = 0; i < exchange.devices.size(); ++i) {
    int64_t device = exchange.devices[i];
    double bytes = exchange.bytes[i];
    const Members &node = members[nodeOf(device)];
    links[device].out += bytes * static_cast<double>(node.count - 1) / count;
    links[device].in += (node.bytes - bytes) / count;
    if (node.count > 1)
      latency = std::max(latency, cluster.nodeOf(device).link.latency);
  }
  if (members.size() < 2)
    return;
  for (const auto &[node, entry] : members) {
    networks[node].out +=
        entry.bytes * (count - static_cast<double>(entry.count)) / count;
    networks[node].in +=
        (total - entry.bytes) * static_cast<double>(entry.count) / count;
  }
  latency = std::max(latency, cluster.network.latency);
}

std::unique_ptr<CostModel> createRooflineModel(const Cluster &cluster) {
  return std::make_unique<RooflineModel>(cluster);
}

} // namespace whale
