//===- Cluster.cpp - The devices and their links --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a parsed cluster. Out: its devices, numbered in the file's order; the
// peak and the efficiency of a device; and the text of a cluster file again,
// without what is a default. The parser is in ClusterParser.cpp, the built-in
// kinds in ClusterKinds.cpp.
//
// Cost: numbering is linear in devices and nodes, the text in the kinds and the
// node entries, however often these repeat; for each kind it searches the table
// of built-in ones. An efficiency takes a binary search and two logarithms.
//
//===----------------------------------------------------------------------===//

#include "whale/Cluster/Cluster.h"
#include "whale/System/Error.h"
#include "whale/System/Io.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

using namespace whale;
using Json = nlohmann::ordered_json;

const char *whale::extentName(OpClass opClass) {
  return opClass == OpClass::Matmul        ? "smallest_dimension"
         : opClass == OpClass::Convolution ? "window"
                                           : nullptr;
}

double DeviceKind::peakFlops(std::string_view dtype) const {
  if (auto it = flops.find(std::string(dtype)); it != flops.end())
    return it->second;
  if (auto it = flops.find("f32"); it != flops.end())
    return it->second;
  double lowest = std::numeric_limits<double>::infinity();
  for (const auto &[name, peak] : flops)
    lowest = std::min(lowest, peak);
  return lowest;
}

const NodeGroup &Cluster::nodeOf(int64_t device) const {
  return nodes[groupOfNode[devices[device].node]];
}

void Cluster::numberDevices() {
  devices.clear();
  groupOfNode.clear();
  for (unsigned group = 0; group < nodes.size(); ++group)
    for (int64_t i = 0; i < nodes[group].count; ++i) {
      unsigned node = groupOfNode.size();
      groupOfNode.push_back(group);
      for (const DeviceGroup &entry : nodes[group].devices)
        devices.insert(devices.end(), entry.count,
                       Device{entry.kind, node, entry.slowdown});
    }
}

double Curve::at(double size) const {
  auto above = std::ranges::upper_bound(points, size, {},
                                        &std::pair<double, double>::first);
  if (above == points.begin())
    return above->second;
  auto below = std::prev(above);
  if (above == points.end())
    return below->second;
  double part =
      std::log(size / below->first) / std::log(above->first / below->first);
  return below->second + part * (above->second - below->second);
}

Cluster Cluster::ofRanks(int64_t count) { return parse(std::to_string(count)); }

/// A number where it is one everywhere.
static Json toJson(const Curve &curve) {
  if (curve.points.front().first == 0)
    return curve.points.front().second;
  Json json = Json::array();
  for (auto [size, share] : curve.points)
    json.push_back({size, share});
  return json;
}

static Json toJson(const Efficiency &efficiency, OpClass opClass) {
  if (!efficiency.byExtent)
    return toJson(efficiency.byFlops);
  return {{"flops", toJson(efficiency.byFlops)},
          {extentName(opClass), toJson(*efficiency.byExtent)}};
}

static Json toJson(const Link &link) {
  Json json = Json::object();
  if (std::isfinite(link.bandwidth))
    json["bandwidth"] = link.bandwidth;
  if (link.latency != 0)
    json["latency"] = link.latency;
  if (link.efficiency != Curve())
    json["efficiency"] = toJson(link.efficiency);
  return json;
}

static Json toJson(const DeviceKind &kind) {
  Json json = Json::object();
  json["flops"] = Json::object();
  for (const auto &[dtype, peak] : kind.flops)
    json["flops"][dtype] = peak;
  json["memory_bytes"] = kind.memoryBytes + kind.reservedBytes;
  json["memory_bandwidth"] = kind.memoryBandwidth;
  if (kind.memoryEfficiency != 1)
    json["memory_efficiency"] = kind.memoryEfficiency;
  if (kind.kernelStart > 0)
    json["kernel_start"] = kind.kernelStart;
  if (kind.overlapTax > 0)
    json["overlap_tax"] = kind.overlapTax;
  if (kind.reservedBytes > 0)
    json["reserved_bytes"] = kind.reservedBytes;
  for (const auto &[name, bytes] : kind.reserves) {
    if (json["reserved_bytes"].is_number())
      json["reserved_bytes"] = Json::object();
    json["reserved_bytes"][name] = bytes;
  }
  // What the name says already is left out.
  std::optional<DeviceKind> builtin = Cluster::builtinKind(kind.name);
  if (kind.arch != (builtin ? builtin->arch : ""))
    json["arch"] = kind.arch;
  Json efficiency = Json::object();
  for (size_t i = 0; i < kNumOpClasses; ++i) {
    if (kind.efficiency[i] == Efficiency())
      continue;
    efficiency[std::string(stringifyOpClass(OpClass(i)))] =
        toJson(kind.efficiency[i], static_cast<OpClass>(i));
  }
  if (!efficiency.empty())
    json["efficiency"] = efficiency;
  if (kind.powerW > 0)
    json["power_w"] = kind.powerW;
  return json;
}

static Json toJson(const NodeGroup &node, const Cluster &cluster) {
  Json json = Json::object();
  json["name"] = node.name;
  if (node.count != 1)
    json["count"] = node.count;
  json["devices"] = Json::array();
  for (const DeviceGroup &entry : node.devices) {
    Json device = Json::object();
    device["kind"] = cluster.kinds[entry.kind].name;
    if (entry.count != 1)
      device["count"] = entry.count;
    if (entry.slowdown != 1)
      device["slowdown"] = entry.slowdown;
    json["devices"].push_back(device);
  }
  if (node.link != Link())
    json["link"] = toJson(node.link);
  if (node.host)
    json["host"] = {{"memory_bytes", node.host->memoryBytes},
                    {"bandwidth", node.host->bandwidth}};
  if (node.cores)
    json["cores"] = *node.cores;
  if (node.memoryBandwidth)
    json["memory_bandwidth"] = *node.memoryBandwidth;
  return json;
}

std::string Cluster::toJson() const {
  Json json = Json::object();
  // By name, the library would compare each kind with all before it.
  Json::object_t named;
  for (const DeviceKind &kind : kinds)
    named.push_back({kind.name, ::toJson(kind)});
  json["kinds"] = std::move(named);
  json["nodes"] = Json::array();
  for (const NodeGroup &node : nodes)
    json["nodes"].push_back(::toJson(node, *this));
  if (network != Link())
    json["network"] = ::toJson(network);
  return json.dump();
}

Cluster whale::readCluster(const std::string &path) {
  system::MappedFile file(path);
  try {
    return Cluster::parse(file.text());
  } catch (const ClusterError &error) {
    throw system::Error(path + ":" + std::to_string(error.getLine()) + ":" +
                        std::to_string(error.getColumn()) + ": " +
                        error.what());
  }
}
