//===- ClusterFuzzer.cpp - Any text as a cluster file ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No text may crash or hang the parser, every error has a place in the text,
// and what is accepted keeps its promises and survives printing.
//

#include "whale/Cluster/Cluster.h"
#include "whale/Cluster/ClusterRanges.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>

using namespace whale;

static void require(bool condition) {
  if (!condition)
    std::abort();
}

static void checkLink(const Link &link) {
  require(kRateRange.contains(link.bandwidth) ||
          link.bandwidth == Link().bandwidth);
  require(kLatencyRange.contains(link.latency));
}

static void check(const Cluster &cluster) {
  require(!cluster.devices.empty());
  for (const DeviceKind &kind : cluster.kinds) {
    require(kind.memoryBytes > 0);
    require(kRateRange.contains(kind.memoryBandwidth));
    require(kRateRange.contains(kind.peakFlops("bf16")));
    for (const Efficiency &efficiency : kind.efficiency)
      for (auto [flops, share] : efficiency.byFlops.points)
        require(kConvolutionEfficiencyRange.contains(share));
  }
  checkLink(cluster.network);
  for (int64_t id : {size_t(0), cluster.devices.size() - 1}) {
    require(kSlowdownRange.contains(cluster.devices[id].slowdown));
    require(!cluster.kindOf(id).name.empty());
    checkLink(cluster.nodeOf(id).link);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  Cluster cluster;
  try {
    cluster = Cluster::parse(text);
  } catch (const ClusterError &error) {
    require(error.what()[0] != '\0');
    require(error.getLine() >= 1 &&
            error.getLine() <= std::ranges::count(text, '\n') + 1);
    require(error.getColumn() >= 1);
    return 0;
  }
  check(cluster);
  require(Cluster::parse(cluster.toJson()) == cluster);
  return 0;
}
