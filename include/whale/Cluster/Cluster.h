//===- Cluster.h - The devices and their links ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contents of a cluster file: kinds of devices, nodes that hold them, the
// links inside a node and the network between nodes. `docs/cluster.md`
// describes the file. Does not use LLVM, so that the runtime and the compiler
// share it.
//
// Cost: equal nodes and equal devices of a node are one entry of the file;
// besides, a few numbers are stored for each device and each node. A device's
// kind, node and links are found in constant time. A peak is a look-up by the
// name of its type, an efficiency a binary search of the curve. Parsing,
// comparing and copying are linear in entries and devices; parsing also
// compares the name of each node entry with all before it.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CLUSTER_CLUSTER_H
#define WHALE_CLUSTER_CLUSTER_H

#include "whale/Cluster/OpClass.h"
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace whale {

/// The name of a class's efficiency by extent in the cluster file; null if it
/// has none.
const char *extentName(OpClass opClass);

/// The fraction of a peak that is reached (ClusterRanges.h), by the size of
/// what is done.
struct Curve {
  /// Sizes and fractions, from the smallest size on.
  std::vector<std::pair<double, double>> points = {{0, 1}};

  /// Between two points the fraction is linear in the logarithm of the size;
  /// outside of them it is that of the nearest one.
  double at(double size) const;

  bool operator==(const Curve &other) const = default;
};

/// The fraction of the peak that operations of a class reach.
struct Efficiency {
  Curve byFlops;
  /// Of matrix products by the smallest of their three extents, of convolutions
  /// by the places of their window.
  std::optional<Curve> byExtent = std::nullopt;

  /// The lower one counts. `extent` is 0 where it is not known.
  double at(double flops, double extent = 0) const {
    double share = byFlops.at(flops);
    return byExtent && extent > 0 ? std::min(share, byExtent->at(extent))
                                  : share;
  }

  bool operator==(const Efficiency &other) const = default;
};

/// The properties that all devices of one kind share.
struct DeviceKind {
  std::string name;
  /// Peak FLOP/s by element type, as StableHLO writes it (`f32`, `bf16`).
  std::map<std::string, double> flops;
  /// What programs may have of it.
  int64_t memoryBytes = 0;
  /// Bytes per second between the device and its memory.
  double memoryBandwidth = 0;
  /// The part of it that is reached.
  double memoryEfficiency = 1;
  /// Seconds before each kernel or call of a library begins.
  double kernelStart = 0;
  /// How much longer it computes while it sends or receives: a part of the time
  /// without that.
  double overlapTax = 0;
  /// What the driver, contexts, libraries and transports have besides.
  int64_t reservedBytes = 0;
  /// The same by who has it, in the order of the file; none where that is not
  /// known.
  std::vector<std::pair<std::string, int64_t>> reserves;
  /// What GPUs of this kind run, as "sm_90"; empty of what is no GPU.
  std::string arch;
  /// Of each operation class.
  std::array<Efficiency, kNumOpClasses> efficiency;
  /// Watts while it computes; 0 where it is not known.
  double powerW = 0;

  /// Returns the peak FLOP/s for an element type. A type that isn't listed runs
  /// at the f32 peak; if f32 isn't listed either, at the lowest listed peak.
  double peakFlops(std::string_view dtype) const;

  bool operator==(const DeviceKind &other) const = default;
};

/// A link between devices or nodes; the default has no cost.
struct Link {
  /// Bytes per second, in each direction.
  double bandwidth = std::numeric_limits<double>::infinity();
  /// Seconds before the first byte arrives.
  double latency = 0;
  /// The part of the bandwidth that is reached, by the bytes that it carries.
  Curve efficiency = {};

  /// Until so many bytes have passed, without the latency.
  double secondsFor(double bytes) const {
    return bytes / (bandwidth * efficiency.at(bytes));
  }

  bool operator==(const Link &other) const = default;
};

/// The memory of a node's host, which devices may offload to.
struct HostMemory {
  int64_t memoryBytes = 0;
  /// Bytes per second between the host and its devices, which share them in
  /// both directions.
  double bandwidth = 0;

  bool operator==(const HostMemory &other) const = default;
};

/// Equal devices with consecutive ids in a node.
struct DeviceGroup {
  /// Index into Cluster::kinds.
  unsigned kind = 0;
  int64_t count = 1;
  /// How many times slower than its kind each device runs, at least 1.
  double slowdown = 1;

  bool operator==(const DeviceGroup &other) const = default;
};

/// Equal nodes, one entry of the file.
struct NodeGroup {
  std::string name;
  int64_t count = 1;
  std::vector<DeviceGroup> devices;
  /// From each device to the others of its node.
  Link link;
  std::optional<HostMemory> host;
  /// What all devices share that are no GPUs: how many of them can compute at
  /// once, and bytes per second of the memory; without a limit where it is not
  /// known.
  std::optional<int64_t> cores;
  std::optional<double> memoryBandwidth;

  bool operator==(const NodeGroup &other) const = default;
};

/// One device.
struct Device {
  /// Index into Cluster::kinds.
  unsigned kind;
  /// The device's node. Nodes are numbered in the file's order; each repetition
  /// of a node group counts as one node.
  unsigned node;
  double slowdown;

  bool operator==(const Device &other) const = default;
};

/// An error in a cluster file. The message begins with the field's path
/// (`nodes[0].count: ...`) unless the text is not valid JSON.
class ClusterError : public std::runtime_error {
public:
  ClusterError(const std::string &message, unsigned line, unsigned column)
      : std::runtime_error(message), line(line), column(column) {}

  /// The position of the error, counted from 1.
  unsigned getLine() const { return line; }
  unsigned getColumn() const { return column; }

private:
  unsigned line, column;
};

/// A validated cluster. Device ids are indices into `devices`.
struct Cluster {
  /// The kinds that the nodes use and those that the file defines.
  std::vector<DeviceKind> kinds;
  std::vector<NodeGroup> nodes;
  /// The network link of each node, shared by its devices.
  Link network;
  /// All devices in the file's order; follows from `nodes`.
  std::vector<Device> devices;

  /// Parses the text of a cluster file, or a number of CPU ranks. Throws
  /// ClusterError.
  static Cluster parse(std::string_view text);
  /// Returns a cluster of one node with `count` CPU ranks whose communication
  /// is free; `count` is at least 1 and at most kMostDevices.
  static Cluster ofRanks(int64_t count);
  /// Returns the built-in kind with this full or short name (`V100`,
  /// `V100-PCIe-16GB`).
  static std::optional<DeviceKind> builtinKind(std::string_view name);
  /// The full names of all built-in kinds.
  static std::vector<std::string_view> builtinKindNames();

  /// Returns the cluster as the text of a cluster file; parse() reads it back.
  std::string toJson() const;

  const DeviceKind &kindOf(int64_t device) const {
    return kinds[devices[device].kind];
  }
  /// The node group that a device belongs to.
  const NodeGroup &nodeOf(int64_t device) const;
  bool sameNode(int64_t first, int64_t second) const {
    return devices[first].node == devices[second].node;
  }
  /// The link between two devices: that of their common node, or the network.
  const Link &linkBetween(int64_t first, int64_t second) const {
    return sameNode(first, second) ? nodeOf(first).link : network;
  }

  /// Fills `devices` from `nodes`.
  void numberDevices();

  bool operator==(const Cluster &other) const = default;

private:
  /// The node group of each node.
  std::vector<unsigned> groupOfNode;
};

/// Reads a cluster file. Throws system::Error with the file, the position and
/// the field.
Cluster readCluster(const std::string &path);

} // namespace whale

#endif // WHALE_CLUSTER_CLUSTER_H
