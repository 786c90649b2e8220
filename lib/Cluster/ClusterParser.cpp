//===- ClusterParser.cpp - Reading cluster files --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses the text of a cluster file into a validated Cluster. Every error names
// the field by its path from the top of the file, and its line and column.
// Linear in the length of the text; names of nodes and kinds are looked up in
// sorted sets.
//
//===----------------------------------------------------------------------===//

#include "whale/Cluster/Cluster.h"
#include "whale/Cluster/ClusterRanges.h"
#include "whale/System/JsonField.h"
#include <algorithm>
#include <map>
#include <set>

using namespace whale;
using system::JsonValue;

static constexpr std::string_view kDTypes[] = {
    "f64",           "f32",       "tf32",     "f16",          "bf16",
    "f8E5M2",        "f8E4M3",    "f8E4M3FN", "f8E5M2FNUZ",   "f8E4M3FNUZ",
    "f8E3M4",        "f8E8M0FNU", "f6E2M3FN", "f6E3M2FN",     "f4E2M1FN",
    "f8E4M3B11FNUZ", "i2",        "i4",       "i8",           "i16",
    "i32",           "i64",       "ui2",      "ui4",          "ui8",
    "ui16",          "ui32",      "ui64",     "complex<f32>", "complex<f64>"};

using Field = system::JsonField;

/// Returns a number of a range.
static double within(const Field &field, const NumberRange &range) {
  return field.within(range.least, range.most);
}

/// Returns a whole number of bytes.
static int64_t bytes(const Field &field) {
  return field.whole(kMemoryRange.least, kMemoryRange.most);
}

/// Returns the name of a GPU's architecture. Which there are, compilers know.
static std::string architecture(const Field &field) {
  std::string text = field.string();
  if (!text.starts_with("sm_") || text.size() < 5 || text.size() > 6 ||
      text.find_first_not_of("0123456789", 3) != text.npos)
    field.fail("expected an architecture such as \"sm_90\", found " +
               field.describe());
  return text;
}

namespace {
/// Builds the cluster; throws JsonError.
class Reader {
public:
  Cluster read(const Field &file);

private:
  DeviceKind readKind(const std::string &name, const Field &field);
  NodeGroup readNode(const Field &field, size_t index);
  DeviceGroup readDevices(const Field &field);
  static Link readLink(const Field &field);
  unsigned kindIndex(const Field &field);

  void addKind(DeviceKind kind);

  Cluster cluster;
  std::map<std::string, unsigned> indexOfKind;
  std::set<std::string> nodeNames;
};
} // namespace

/// A number, or a curve of sizes, which `what` names, and shares.
static Curve readCurve(const Field &field, const NumberRange &range,
                       const NumberRange &sizes, const std::string &what) {
  if (!field.value().is_array())
    return {{{0, within(field, range)}}};
  Curve curve{{}};
  for (const Field &point : field.list()) {
    std::vector<Field> numbers = point.list();
    if (numbers.size() != 2)
      point.fail("expected " + what + " and a share, found " +
                 std::to_string(numbers.size()) + " elements");
    double size = within(numbers[0], sizes);
    if (!curve.points.empty() && size <= curve.points.back().first)
      numbers[0].fail("expected more " + what + " than in the point before");
    curve.points.emplace_back(size, within(numbers[1], range));
  }
  return curve;
}

/// Of products by their smallest dimension, and of convolutions by their
/// window, too.
static Efficiency readEfficiency(const Field &field, OpClass opClass) {
  const NumberRange &range = opClass == OpClass::Convolution
                                 ? kConvolutionEfficiencyRange
                                 : kEfficiencyRange;
  auto byFlops = [&](const Field &curve) {
    return readCurve(curve, range, kFlopsRange, "FLOPs");
  };
  const char *extent = extentName(opClass);
  if (!extent || !field.value().is_object())
    return {byFlops(field)};
  field.object({"flops", extent});
  Efficiency efficiency;
  // A window's share may be above 1, which is that of any FLOPs.
  efficiency.byFlops.points.front().second = range.most;
  if (std::optional<Field> curve = field.get("flops"))
    efficiency.byFlops = byFlops(*curve);
  if (std::optional<Field> curve = field.get(extent))
    efficiency.byExtent = readCurve(*curve, range, kExtentRange, "elements");
  return efficiency;
}

/// All bytes, or those of each that has some.
static void readReserves(const Field &field, DeviceKind &kind) {
  kind.reserves.clear();
  if (!field.value().is_object()) {
    kind.reservedBytes = bytes(field);
    return;
  }
  field.object({"context", "libraries", "local", "ucx", "mpi", "nccl"});
  kind.reservedBytes = 0;
  for (const auto &[name, each] : field.members()) {
    kind.reserves.emplace_back(name, bytes(each));
    kind.reservedBytes += kind.reserves.back().second;
  }
}

DeviceKind Reader::readKind(const std::string &name, const Field &field) {
  field.object({"flops", "memory_bytes", "memory_bandwidth",
                "memory_efficiency", "kernel_start", "overlap_tax",
                "reserved_bytes", "arch", "efficiency", "power_w"});
  // A file may change one number of a built-in kind and leave out the rest.
  std::optional<DeviceKind> builtin = Cluster::builtinKind(name);
  DeviceKind kind = builtin.value_or(DeviceKind());
  kind.name = name;
  if (!builtin || field.get("flops")) {
    Field flops = field.need("flops");
    kind.flops.clear();
    for (const auto &[dtype, peak] : flops.members()) {
      if (std::ranges::find(kDTypes, dtype) == std::end(kDTypes))
        peak.fail("unknown element type, expected one of " +
                  system::joinNames(kDTypes));
      kind.flops[dtype] = within(peak, kRateRange);
    }
    if (kind.flops.empty())
      flops.fail("expected at least one element type");
  }
  if (!builtin || field.get("memory_bytes"))
    kind.memoryBytes = bytes(field.need("memory_bytes"));
  if (!builtin || field.get("memory_bandwidth"))
    kind.memoryBandwidth = within(field.need("memory_bandwidth"), kRateRange);
  if (std::optional<Field> share = field.get("memory_efficiency"))
    kind.memoryEfficiency = within(*share, kEfficiencyRange);
  if (std::optional<Field> start = field.get("kernel_start"))
    kind.kernelStart = within(*start, kKernelStartRange);
  if (std::optional<Field> tax = field.get("overlap_tax"))
    kind.overlapTax = within(*tax, kOverlapTaxRange);
  if (std::optional<Field> reserved = field.get("reserved_bytes")) {
    readReserves(*reserved, kind);
    if (kind.reservedBytes >= kind.memoryBytes)
      reserved->fail("expected less than the memory has");
    kind.memoryBytes -= kind.reservedBytes;
  }
  if (std::optional<Field> arch = field.get("arch"))
    kind.arch = architecture(*arch);
  if (std::optional<Field> efficiency = field.get("efficiency")) {
    if (efficiency->value().is_number() || efficiency->value().is_array()) {
      kind.efficiency.fill(readEfficiency(*efficiency, OpClass::Other));
    } else {
      std::vector<std::string_view> names;
      for (size_t i = 0; i < kNumOpClasses; ++i)
        names.push_back(stringifyOpClass(OpClass(i)));
      efficiency->object(names);
      for (size_t i = 0; i < kNumOpClasses; ++i)
        if (std::optional<Field> value = efficiency->get(names[i]))
          kind.efficiency[i] = readEfficiency(*value, OpClass(i));
      // It consists of products, which a file may know alone.
      constexpr auto attention = static_cast<size_t>(OpClass::Attention);
      if (!efficiency->get(names[attention]))
        kind.efficiency[attention].byFlops =
            kind.efficiency[static_cast<size_t>(OpClass::Matmul)].byFlops;
    }
  }
  if (std::optional<Field> power = field.get("power_w"))
    kind.powerW = within(*power, kPowerRange);
  return kind;
}

Link Reader::readLink(const Field &field) {
  field.object({"bandwidth", "latency", "efficiency"});
  Link link;
  if (std::optional<Field> bandwidth = field.get("bandwidth"))
    link.bandwidth = within(*bandwidth, kRateRange);
  if (std::optional<Field> latency = field.get("latency"))
    link.latency = within(*latency, kLatencyRange);
  if (std::optional<Field> efficiency = field.get("efficiency"))
    link.efficiency =
        readCurve(*efficiency, kEfficiencyRange, kMemoryRange, "bytes");
  return link;
}

void Reader::addKind(DeviceKind kind) {
  indexOfKind.emplace(kind.name, cluster.kinds.size());
  cluster.kinds.push_back(std::move(kind));
}

unsigned Reader::kindIndex(const Field &field) {
  std::string name = field.string();
  if (auto it = indexOfKind.find(name); it != indexOfKind.end())
    return it->second;
  std::optional<DeviceKind> builtin = Cluster::builtinKind(name);
  if (!builtin) {
    // A cluster may redefine a built-in kind, so names can repeat.
    std::vector<std::string_view> known;
    for (const DeviceKind &kind : cluster.kinds)
      known.push_back(kind.name);
    for (std::string_view kind : Cluster::builtinKindNames())
      if (std::ranges::find(known, kind) == known.end())
        known.push_back(kind);
    field.fail("unknown kind '" + name + "', known are " +
               system::joinNames(known));
  }
  builtin->name = name;
  addKind(*builtin);
  return cluster.kinds.size() - 1;
}

DeviceGroup Reader::readDevices(const Field &field) {
  field.object({"kind", "count", "slowdown"});
  DeviceGroup group;
  group.kind = kindIndex(field.need("kind"));
  if (std::optional<Field> count = field.get("count"))
    group.count = count->count(kMostDevices);
  if (std::optional<Field> slowdown = field.get("slowdown"))
    group.slowdown = within(*slowdown, kSlowdownRange);
  return group;
}

NodeGroup Reader::readNode(const Field &field, size_t index) {
  field.object({"name", "count", "devices", "link", "host", "cores",
                "memory_bandwidth"});
  NodeGroup node;
  std::optional<Field> name = field.get("name");
  node.name = name ? name->string() : "node" + std::to_string(index);
  if (!nodeNames.insert(node.name).second)
    name.value_or(field).fail("another node is named '" + node.name + "'");
  if (std::optional<Field> count = field.get("count"))
    node.count = count->count(kMostDevices);
  for (const Field &entry : field.need("devices").list())
    node.devices.push_back(readDevices(entry));
  if (std::optional<Field> link = field.get("link"))
    node.link = readLink(*link);
  if (std::optional<Field> host = field.get("host")) {
    host->object({"memory_bytes", "bandwidth"});
    node.host = HostMemory{bytes(host->need("memory_bytes")),
                           within(host->need("bandwidth"), kRateRange)};
  }
  if (std::optional<Field> cores = field.get("cores"))
    node.cores = cores->count(kMostCores);
  if (std::optional<Field> bandwidth = field.get("memory_bandwidth"))
    node.memoryBandwidth = within(*bandwidth, kRateRange);
  return node;
}

Cluster Reader::read(const Field &file) {
  if (file.value().is_number()) {
    DeviceKind cpu = *Cluster::builtinKind("cpu");
    cluster.kinds.push_back(cpu);
    NodeGroup node;
    node.name = "local";
    node.devices.push_back({0, file.count(kMostDevices), 1});
    cluster.nodes.push_back(node);
    cluster.numberDevices();
    return cluster;
  }
  file.object({"kinds", "nodes", "network"});
  if (std::optional<Field> kinds = file.get("kinds"))
    for (const auto &[name, field] : kinds->members()) {
      if (name.empty())
        kinds->fail("a kind's name is empty");
      addKind(readKind(name, field));
    }
  int64_t total = 0;
  for (const Field &field : file.need("nodes").list()) {
    NodeGroup node = readNode(field, cluster.nodes.size());
    int64_t perNode = 0;
    for (const DeviceGroup &entry : node.devices)
      perNode += entry.count;
    if (perNode > kMostDevices || node.count > kMostDevices / perNode ||
        (total += perNode * node.count) > kMostDevices)
      field.fail("the cluster has more than " + std::to_string(kMostDevices) +
                 " devices up to here");
    cluster.nodes.push_back(std::move(node));
  }
  if (std::optional<Field> network = file.get("network"))
    cluster.network = readLink(*network);
  cluster.numberDevices();
  return cluster;
}

Cluster Cluster::parse(std::string_view text) {
  try {
    JsonValue file = system::readJson(text);
    return Reader().read(Field(file, ""));
  } catch (const system::JsonError &error) {
    auto [line, column] = system::placeOf(text, error.getOffset());
    throw ClusterError(error.what(), line, column);
  }
}
