//===- ReductionCost.cpp - Whether to divide an all-reduce ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/ReductionCost.h"

#include <algorithm>
#include <map>
#include <set>

using namespace whale;

namespace {
/// What a rank takes for a collective besides its links, to start it and to be
/// woken when it ends: of the three that a divided one is, twice more.
constexpr double kStart = 2e-5;

/// Seconds of an all-reduce among `members` devices that are alike.
double allReduceSeconds(double members, double bytes, const Link &link) {
  double round = link.latency + (members - 1) * bytes / link.bandwidth;
  double ring =
      2 * (members - 1) * (link.latency + bytes / members / link.bandwidth);
  return std::min(round, ring);
}

/// The links of the devices that take part, and how many groups the network of
/// a node carries at most.
struct Links {
  Link inside, network;
  int64_t groupsOfNode = 0;

  Links(const GroupReduction &reduction, const Cluster &cluster)
      : network(cluster.network) {
    std::map<unsigned, int64_t> groupsOf;
    for (llvm::ArrayRef<DeviceId> group : reduction.groups) {
      std::set<unsigned> nodes;
      for (DeviceId device : group) {
        const Link &own = cluster.nodeOf(device).link;
        inside.latency = std::max(inside.latency, own.latency);
        inside.bandwidth = std::min(inside.bandwidth, own.bandwidth);
        nodes.insert(cluster.devices[device].node);
      }
      for (unsigned node : nodes)
        groupsOfNode = std::max(groupsOfNode, ++groupsOf[node]);
    }
  }
};
} // namespace

ReductionSeconds whale::reductionSeconds(const GroupReduction &reduction,
                                         int64_t membersByNode,
                                         int64_t elementBytes,
                                         const Cluster &cluster) {
  Links links(reduction, cluster);
  auto inNode = double(membersByNode);
  ReductionSeconds most;
  for (auto [group, count] :
       llvm::zip_equal(reduction.groups, reduction.elements)) {
    double bytes = double(count) * double(elementBytes);
    auto members = double(group.size());
    double nodes = members / inNode;
    // The bytes of each group take their part of a node's network.
    Link network = links.network;
    network.bandwidth /= double(links.groupsOfNode);

    // Sent all to all, each device of a node receives the bytes of all others.
    // In a ring that goes from node to node, only one of them does.
    Link slower = {std::min(links.inside.bandwidth, network.bandwidth),
                   std::max(links.inside.latency, network.latency)};
    double round =
        std::max(inNode * (members - inNode) * bytes / network.bandwidth,
                 (inNode - 1) * bytes / links.inside.bandwidth) +
        slower.latency;
    double ring = 2 * (members - 1) *
                  (slower.latency + bytes / members / slower.bandwidth);
    most.whole = std::max(most.whole, std::min(round, ring));

    // Each device of a node exchanges its part with those of other nodes.
    Link share = network;
    share.bandwidth /= inNode;
    double scatter = links.inside.latency +
                     (inNode - 1) / inNode * bytes / links.inside.bandwidth;
    most.divided = std::max(most.divided,
                            2 * (kStart + scatter) +
                                allReduceSeconds(nodes, bytes / inNode, share));
  }
  return most;
}
