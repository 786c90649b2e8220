//===- ExchangeLoads.h - What exchanges take of links -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: exchanges that start together, and by which rule collectives are carried
// out. Out: the bytes that each link and network carries, and the seconds
// before anything moves. Cost: linear in the members and transfers of an
// exchange.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_STEP_EXCHANGELOADS_H
#define WHALE_LIB_STEP_EXCHANGELOADS_H

#include "whale/Step/CostModel.h"

#include <map>
#include <unordered_map>

namespace whale {

/// Sums up the bytes that links and networks carry.
class ExchangeLoads {
public:
  ExchangeLoads(const Cluster &cluster, CollectiveRule rule)
      : cluster(cluster), rule(rule) {}
  void add(const Exchange &exchange);
  double seconds() const;
  LinkLoads list() const;

private:
  /// Bytes in each direction of a link.
  struct Traffic {
    double in = 0, out = 0;
    double worst() const { return in > out ? in : out; }
  };
  /// The members of a group that are in one node.
  struct Members {
    int64_t count = 0;
    double bytes = 0;
  };
  /// A collective, as all its algorithms see it.
  struct Collective;

  void addTransfers(const Exchange &exchange);
  void addBroadcast(const Exchange &exchange);
  void addAllToAll(const Exchange &exchange);
  void addMessages(const Collective &collective);
  void addRing(const Collective &collective);
  void addTree(const Collective &collective);
  void addHierarchy(const Collective &collective);
  void addFastest(const Collective &collective);
  void addOf(const ExchangeLoads &other);
  Collective describe(const Exchange &exchange) const;
  std::map<unsigned, Members> membersOf(const Exchange &exchange) const;
  unsigned nodeOf(int64_t device) const { return cluster.devices[device].node; }

  const Cluster &cluster;
  CollectiveRule rule;
  std::unordered_map<int64_t, Traffic> links;
  std::unordered_map<unsigned, Traffic> networks;
  double latency = 0;
  /// The last choice of an algorithm.
  std::string_view choice;
};

} // namespace whale

#endif // WHALE_LIB_STEP_EXCHANGELOADS_H
