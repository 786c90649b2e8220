//===- Calibrate.cpp - This machine as a cluster file ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sim/Calibrate.h"

#include "whale/Cluster/ClusterRanges.h"
#include "whale/Report/TextTable.h"
#include "whale/Runtime/Calibration.h"
#include "whale/System/Machine.h"
#include "whale/System/Processors.h"

#include <algorithm>

namespace whale::sim {

/// Points that a cluster file may have: measured rates go up and down.
static Curve curveOf(const std::vector<std::pair<double, double>> &points,
                     const NumberRange &range = kEfficiencyRange) {
  Curve curve{{}};
  for (auto [size, share] : points)
    curve.points.push_back({size, std::clamp(share, range.least, range.most)});
  return curve;
}

Cluster calibrate(int64_t ranks) {
  runtime::MachineSpeed speed = runtime::measureMachine(ranks);
  Cluster cluster;
  DeviceKind kind = Cluster::builtinKind("cpu").value();
  kind.flops = {speed.flops.begin(), speed.flops.end()};
  kind.memoryBytes = std::max<int64_t>(1, system::machineMemory() / ranks);
  kind.memoryBandwidth = speed.memoryBandwidth;
  kind.kernelStart = speed.kernelStart;
  Efficiency &products = kind.efficiency[static_cast<size_t>(OpClass::Matmul)];
  products.byFlops = curveOf(speed.byFlops);
  products.byExtent = curveOf(speed.bySmallest);
  Efficiency &convolutions =
      kind.efficiency[static_cast<size_t>(OpClass::Convolution)];
  convolutions.byFlops =
      curveOf(speed.convolutionByFlops, kConvolutionEfficiencyRange);
  convolutions.byExtent =
      curveOf(speed.convolutionByWindow, kConvolutionEfficiencyRange);
  kind.efficiency[static_cast<size_t>(OpClass::Attention)].byFlops =
      curveOf({{0, speed.attention}});
  cluster.kinds.push_back(std::move(kind));
  NodeGroup node;
  node.name = "local";
  node.devices.push_back({0, ranks, 1});
  node.cores = system::usableProcessors();
  if (ranks > 1) {
    node.link.bandwidth = speed.linkBandwidth;
    node.link.latency = speed.linkLatency;
  }
  cluster.nodes.push_back(std::move(node));
  cluster.numberDevices();
  return cluster;
}

std::string describeCalibration(const Cluster &cluster) {
  const DeviceKind &kind = cluster.kindOf(0);
  const Link &link = cluster.nodeOf(0).link;
  std::vector<std::vector<std::string>> rows = {
      {"of each of " + std::to_string(cluster.devices.size()) + " ranks", ""}};
  for (const auto &[dtype, rate] : kind.flops)
    rows.push_back({"products in " + dtype, withPrefix(rate, "FLOP/s")});
  rows.push_back({"memory, copied", withPrefix(kind.memoryBandwidth, "B/s")});
  rows.push_back({"start of a kernel", describeSeconds(kind.kernelStart)});
  if (cluster.devices.size() > 1) {
    rows.push_back({"to another rank", withPrefix(link.bandwidth, "B/s")});
    rows.push_back({"a short message", describeSeconds(link.latency)});
  }
  return alignColumns(std::move(rows));
}

} // namespace whale::sim
