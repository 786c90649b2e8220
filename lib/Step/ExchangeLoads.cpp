//===- ExchangeLoads.cpp - What exchanges take of links -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExchangeLoads.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace whale {

/// An all-reduce of up to so many bytes goes whole from each member to each
/// other one (docs/runtime.md).
static constexpr double kMostWholeBytes = 32 * 1024;

/// Of the bandwidth that NCCL's tree of an all-reduce reaches of a ring's
/// (NVIDIA/nccl, src/graph/tuning.cc).
static constexpr double kTreeEfficiency = 0.9;

struct ExchangeLoads::Collective {
  const Exchange &exchange;
  std::map<unsigned, Members> nodes;
  /// Of the value; of an all-gather and a reduce-scatter of all parts.
  double total = 0;
  /// By position, that a device contributes in one round.
  std::vector<double> own;
  /// By node, the same of all its members.
  std::map<unsigned, double> ofNode;
  /// An all-reduce is a reduce-scatter and an all-gather.
  double rounds = 1;

  bool isAllReduce() const { return rounds > 1; }
  double count() const { return static_cast<double>(own.size()); }
};

ExchangeLoads::Collective
ExchangeLoads::describe(const Exchange &exchange) const {
  Collective result{exchange, membersOf(exchange), 0, {}, {}, 1};
  size_t count = exchange.devices.size();
  for (double bytes : exchange.bytes)
    result.total += bytes;
  result.own = exchange.bytes;
  result.own.resize(count);
  if (exchange.kind == Exchange::Kind::AllReduce) {
    result.rounds = 2;
    result.total /= static_cast<double>(count);
    result.own.assign(count, result.total / static_cast<double>(count));
  }
  for (size_t i = 0; i < count; ++i)
    result.ofNode[nodeOf(exchange.devices[i])] += result.own[i];
  return result;
}

void ExchangeLoads::add(const Exchange &exchange) {
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
    break;
  }
  if (exchange.devices.size() < 2)
    return;
  Collective collective = describe(exchange);
  if (rule == CollectiveRule::Own)
    addMessages(collective);
  else
    addFastest(collective);
}

double ExchangeLoads::seconds() const {
  double worst = 0;
  for (const auto &[device, traffic] : links)
    worst = std::max(worst,
                     cluster.nodeOf(device).link.secondsFor(traffic.worst()));
  for (const auto &[node, traffic] : networks)
    worst = std::max(worst, cluster.network.secondsFor(traffic.worst()));
  return worst + latency;
}

LinkLoads ExchangeLoads::list() const {
  LinkLoads result;
  result.latency = latency;
  result.choice = choice;
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

/// Seconds before the messages of a device that sends so many one after another
/// in its node, and to others.
static double gapSeconds(double inNode, double linkLatency, double across,
                         double networkLatency) {
  double first =
      std::max(inNode > 0 ? linkLatency : 0, across > 0 ? networkLatency : 0);
  return first +
         kMessageGap * (inNode * linkLatency + across * networkLatency - first);
}

void ExchangeLoads::addTransfers(const Exchange &exchange) {
  // By sender, how many messages go in its node, and to others.
  std::map<int64_t, std::pair<double, double>> messages;
  for (const Transfer &transfer : exchange.transfers) {
    if (transfer.from == transfer.to || transfer.bytes == 0)
      continue;
    bool sameNode = cluster.sameNode(transfer.from, transfer.to);
    if (exchange.isAllToAll) {
      auto &[inNode, across] = messages[transfer.from];
      ++(sameNode ? inNode : across);
    }
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
  for (const auto &[device, counts] : messages)
    latency = std::max(
        latency, gapSeconds(counts.first, cluster.nodeOf(device).link.latency,
                            counts.second, cluster.network.latency));
}

std::map<unsigned, ExchangeLoads::Members>
ExchangeLoads::membersOf(const Exchange &exchange) const {
  std::map<unsigned, Members> members;
  for (size_t i = 0; i < exchange.devices.size(); ++i) {
    Members &entry = members[nodeOf(exchange.devices[i])];
    ++entry.count;
    if (i < exchange.bytes.size())
      entry.bytes += exchange.bytes[i];
  }
  return members;
}

/// Each member has a part of the value, which goes from it to all others, or to
/// it from all others; in an all-reduce both. The messages of a round go at
/// once.
void ExchangeLoads::addMessages(const Collective &collective) {
  const std::vector<int64_t> &devices = collective.exchange.devices;
  double rounds = collective.rounds, count = collective.count();
  std::vector<double> own = collective.own;
  double scale = 1;
  if (collective.isAllReduce() && collective.total <= kMostWholeBytes) {
    rounds = 1;
    scale = count;
  }
  double nodeLatency = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    unsigned node = nodeOf(devices[i]);
    auto inNode = static_cast<double>(collective.nodes.at(node).count);
    // What is gathered; what is scattered goes the other way.
    double out = own[i] * (inNode - 1) * scale;
    double in = (collective.ofNode.at(node) - own[i]) * scale;
    bool isScatter = collective.exchange.kind == Exchange::Kind::ReduceScatter;
    Traffic &link = links[devices[i]];
    link.out += (isScatter ? in : out) * rounds;
    link.in += (isScatter ? out : in) * rounds;
    if (inNode > 1)
      nodeLatency =
          std::max(nodeLatency, cluster.nodeOf(devices[i]).link.latency);
  }
  bool crosses = collective.nodes.size() > 1;
  if (crosses)
    for (const auto &[node, members] : collective.nodes) {
      auto inNode = static_cast<double>(members.count);
      double bytes = collective.ofNode.at(node);
      double out = bytes * (count - inNode) * scale;
      double in = (collective.total - bytes) * inNode * scale;
      bool isScatter =
          collective.exchange.kind == Exchange::Kind::ReduceScatter;
      networks[node].out += (isScatter ? in : out) * rounds;
      networks[node].in += (isScatter ? out : in) * rounds;
    }
  latency = std::max(
      latency,
      rounds * std::max(nodeLatency, crosses ? cluster.network.latency : 0));
}

/// One ring through all devices, node by node: each passes on all parts but
/// one, and one device of a node to the next node.
void ExchangeLoads::addRing(const Collective &collective) {
  const std::vector<int64_t> &devices = collective.exchange.devices;
  auto nodes = static_cast<double>(collective.nodes.size());
  double least = *std::ranges::min_element(collective.own);
  double bytes = (collective.total - least) * collective.rounds;
  double stepLatency = 0;
  for (int64_t device : devices) {
    if (collective.nodes.at(nodeOf(device)).count > 1) {
      links[device].in += bytes;
      links[device].out += bytes;
    }
    stepLatency = std::max(stepLatency, cluster.nodeOf(device).link.latency);
  }
  if (collective.nodes.size() > 1)
    for (const auto &[node, members] : collective.nodes) {
      networks[node].in += bytes;
      networks[node].out += bytes;
    }
  latency = std::max(latency, collective.rounds *
                                  ((collective.count() - nodes) * stepLatency +
                                   (nodes - 1) * cluster.network.latency));
  choice = "ring";
}

/// Two trees over the nodes, each with half of the bytes, and a chain inside of
/// each node: up, added, and down again.
void ExchangeLoads::addTree(const Collective &collective) {
  double nodeLatency = 0;
  for (int64_t device : collective.exchange.devices) {
    auto inNode =
        static_cast<double>(collective.nodes.at(nodeOf(device)).count);
    if (inNode > 1) {
      double bytes = 2 * collective.total / kTreeEfficiency;
      links[device].in += bytes;
      links[device].out += bytes;
    }
    nodeLatency = std::max(
        nodeLatency, 2 * (inNode - 1) * cluster.nodeOf(device).link.latency);
  }
  size_t nodes = collective.nodes.size();
  double passes = nodes < 2 ? 0 : nodes == 2 ? 1 : nodes == 3 ? 1.5 : 2;
  if (nodes > 1)
    for (const auto &[node, members] : collective.nodes) {
      double bytes = passes * collective.total / kTreeEfficiency;
      networks[node].in += bytes;
      networks[node].out += bytes;
    }
  latency = std::max(latency,
                     nodeLatency + 2 * std::log2(static_cast<double>(nodes)) *
                                       cluster.network.latency);
  choice = "tree";
}

/// Rings inside of each node and between nodes: each byte crosses the network
/// once for each node that needs it, and its devices share them out.
void ExchangeLoads::addHierarchy(const Collective &collective) {
  const std::vector<int64_t> &devices = collective.exchange.devices;
  double nodeLatency = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    const Members &node = collective.nodes.at(nodeOf(devices[i]));
    auto inNode = static_cast<double>(node.count);
    // Bytes from the network arrive at one device, which forwards them to the
    // others of the node.
    double nodeBytes = collective.ofNode.at(nodeOf(devices[i]));
    double byLink = collective.total - collective.own[i] -
                    (collective.total - nodeBytes) / inNode;
    byLink = node.count > 1 ? std::max(byLink, 0.0) * collective.rounds : 0;
    links[devices[i]].in += byLink;
    links[devices[i]].out += byLink;
    nodeLatency = std::max(
        nodeLatency, (inNode - 1) * cluster.nodeOf(devices[i]).link.latency);
  }
  auto nodes = static_cast<double>(collective.nodes.size());
  if (collective.nodes.size() > 1)
    for (const auto &[node, members] : collective.nodes) {
      double bytes =
          (collective.total - collective.ofNode.at(node)) * collective.rounds;
      networks[node].in += bytes;
      networks[node].out += bytes;
    }
  latency = std::max(latency,
                     collective.rounds *
                         (nodeLatency + (nodes - 1) * cluster.network.latency));
  choice = "hierarchical";
}

/// What takes least of these, alone.
void ExchangeLoads::addFastest(const Collective &collective) {
  using Algorithm = void (ExchangeLoads::*)(const Collective &);
  std::optional<ExchangeLoads> fastest;
  double least = 0;
  auto consider = [&](Algorithm algorithm) {
    ExchangeLoads alone(cluster, rule);
    (alone.*algorithm)(collective);
    double seconds = alone.seconds();
    if (fastest && seconds >= least)
      return;
    least = seconds;
    fastest.emplace(alone);
  };
  consider(&ExchangeLoads::addRing);
  if (collective.isAllReduce())
    consider(&ExchangeLoads::addTree);
  if (collective.nodes.size() > 1)
    consider(&ExchangeLoads::addHierarchy);
  addOf(*fastest);
}

/// Takes over what another one has.
void ExchangeLoads::addOf(const ExchangeLoads &other) {
  auto sum = [](auto &all, const auto &more) {
    for (const auto &[number, traffic] : more) {
      all[number].in += traffic.in;
      all[number].out += traffic.out;
    }
  };
  sum(links, other.links);
  sum(networks, other.networks);
  latency = std::max(latency, other.latency);
  choice = other.choice;
}

/// In how many rounds of messages all of `count` have what one of them had.
static double roundsOf(size_t count) { return std::bit_width(count - 1); }

void ExchangeLoads::addBroadcast(const Exchange &exchange) {
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
void ExchangeLoads::addAllToAll(const Exchange &exchange) {
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
    latency = std::max(latency, gapSeconds(double(node.count - 1),
                                           cluster.nodeOf(device).link.latency,
                                           count - double(node.count),
                                           cluster.network.latency));
  }
  if (members.size() < 2)
    return;
  for (const auto &[node, entry] : members) {
    networks[node].out +=
        entry.bytes * (count - static_cast<double>(entry.count)) / count;
    networks[node].in +=
        (total - entry.bytes) * static_cast<double>(entry.count) / count;
  }
}

} // namespace whale
