//===- Changes.cpp - What would help a step -------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Simulates the same program on clusters that are better in one respect each,
// and names those that gain most. Cost: a simulation for each change, of which
// there are a few for each kind of device.
//
//===----------------------------------------------------------------------===//

#include "whale/Sim/Simulate.h"

#include <algorithm>
#include <functional>

namespace whale::sim {

/// Below this part of a step a change helps nobody.
static constexpr double leastGain = 0.005;
static constexpr size_t mostChanges = 3;

static bool isUsed(const Cluster &cluster, size_t kind) {
  return std::ranges::any_of(cluster.devices, [&](const Device &device) {
    return device.kind == kind;
  });
}

std::vector<Change> findChanges(const Simulation &simulation) {
  std::vector<Change> changes;
  auto attempt = [&](const std::string &what,
                     const std::function<void(Cluster &)> &change) {
    Cluster cluster = simulation.cluster;
    change(cluster);
    cluster.numberDevices();
    double seconds =
        modelStep(simulation.program->program, cluster, simulation.rule)
            .seconds;
    if (simulation.step.seconds - seconds > leastGain * simulation.step.seconds)
      changes.insert(
          std::ranges::upper_bound(changes, seconds, {}, &Change::seconds),
          {what, seconds});
  };
  const Cluster &cluster = simulation.cluster;
  for (size_t kind = 0; kind < cluster.kinds.size(); ++kind) {
    if (!isUsed(cluster, kind))
      continue;
    const std::string &name = cluster.kinds[kind].name;
    attempt("twice the FLOP/s of " + name, [&](Cluster &other) {
      for (auto &[dtype, rate] : other.kinds[kind].flops)
        rate *= 2;
    });
    attempt("twice the memory bandwidth of " + name,
            [&](Cluster &other) { other.kinds[kind].memoryBandwidth *= 2; });
  }
  attempt("twice the bandwidth of the network",
          [](Cluster &other) { other.network.bandwidth *= 2; });
  attempt("half the latency of the network",
          [](Cluster &other) { other.network.latency /= 2; });
  attempt("twice the bandwidth of the links in nodes", [](Cluster &other) {
    for (NodeGroup &node : other.nodes)
      node.link.bandwidth *= 2;
  });
  attempt("half the latency of the links in nodes", [](Cluster &other) {
    for (NodeGroup &node : other.nodes)
      node.link.latency /= 2;
  });
  attempt("no slowdowns of devices", [](Cluster &other) {
    for (NodeGroup &node : other.nodes)
      for (DeviceGroup &devices : node.devices)
        devices.slowdown = 1;
  });
  changes.resize(std::min(changes.size(), mostChanges));
  return changes;
}

} // namespace whale::sim
