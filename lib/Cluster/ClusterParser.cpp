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
#include "whale/System/ReadJson.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
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

/// Joins names with commas.
template <typename Names>
static std::string joined(const Names &names) {
  std::string text;
  for (std::string_view name : names)
    text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

namespace {
/// Thrown inside this file only; parse() finds its line and column.
struct Problem {
  std::string message;
  /// The byte of the text that it is at.
  size_t offset;
};

/// A JSON value with its path from the top of the file.
class Field {
public:
  Field(const JsonValue &place, std::string path)
      : place(place), json(place.scalar), path(std::move(path)) {}

  [[noreturn]] void fail(const std::string &what) const {
    throw Problem{(path.empty() ? "" : path + ": ") + what, place.offset};
  }

  const nlohmann::json &value() const { return json; }

  /// Checks that the value is an object with no fields but these.
  const Field &object(const std::vector<std::string_view> &known) const {
    if (!json.is_object())
      fail("expected an object, found " + describe());
    for (const JsonValue &member : place.children)
      if (std::ranges::find(known, member.name) == known.end())
        child(member).fail("unknown field, expected one of " + joined(known));
    return *this;
  }

  /// Returns the elements of a list, which must not be empty.
  std::vector<Field> list() const {
    if (!json.is_array())
      fail("expected a list, found " + describe());
    if (place.children.empty())
      fail("expected at least one element");
    std::vector<Field> fields;
    for (const JsonValue &element : place.children)
      fields.emplace_back(element,
                          path + "[" + std::to_string(fields.size()) + "]");
    return fields;
  }

  /// Returns the members of an object with their names.
  std::vector<std::pair<std::string, Field>> members() const {
    if (!json.is_object())
      fail("expected an object, found " + describe());
    std::vector<std::pair<std::string, Field>> fields;
    for (const JsonValue &member : place.children)
      fields.emplace_back(member.name, child(member));
    return fields;
  }

  std::optional<Field> get(std::string_view key) const {
    const JsonValue *member = place.find(key);
    return member ? std::optional(child(*member)) : std::nullopt;
  }

  Field need(std::string_view key) const {
    if (std::optional<Field> field = get(key))
      return *field;
    fail("field '" + std::string(key) + "' is missing");
  }

  std::string string() const {
    if (!json.is_string())
      fail("expected a string, found " + describe());
    if (json.get<std::string>().empty())
      fail("the string is empty");
    return json.get<std::string>();
  }

  /// Returns the name of a GPU's architecture. Which there are, compilers know.
  std::string architecture() const {
    std::string text = string();
    if (!text.starts_with("sm_") || text.size() < 5 || text.size() > 6 ||
        text.find_first_not_of("0123456789", 3) != text.npos)
      fail("expected an architecture such as \"sm_90\", found " + describe());
    return text;
  }

  double number() const {
    if (!json.is_number())
      fail("expected a number, found " + describe());
    return json.get<double>();
  }

  double within(NumberRange range) const {
    double value = number();
    if (!range.contains(value))
      fail("expected a number from " + shortest(range.least) + " to " +
           shortest(range.most) + ", found " + describe());
    return value;
  }

  /// Returns a whole number of bytes.
  int64_t bytes() const {
    double value = within(kMemoryRange);
    if (value != std::floor(value))
      fail("expected a whole number, found " + describe());
    return json.is_number_float() ? int64_t(value) : json.get<int64_t>();
  }

  /// Returns a whole number from 1 to `max`; forms such as 16e9 are accepted.
  int64_t count(int64_t max) const {
    double value = number();
    if (value != std::floor(value))
      fail("expected a whole number, found " + describe());
    if (value < 1)
      fail("expected at least 1, found " + describe());
    if (value > double(max))
      fail("expected at most " + std::to_string(max) + ", found " + describe());
    return json.is_number_float() ? int64_t(value) : json.get<int64_t>();
  }

private:
  Field child(const JsonValue &member) const {
    return Field(member, (path.empty() ? "" : path + ".") + member.name);
  }

  /// Formats a number the way a file would write it: 1e24, 0.5, 1e-6.
  static std::string shortest(double number) {
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), "%g", number);
    std::string text = buffer;
    size_t exponent = text.find('e');
    if (exponent == text.npos)
      return text;
    // The library writes "1e+24" and "1e-06".
    size_t zeros = text.find_first_not_of('0', exponent + 2);
    text.erase(exponent + 2, zeros - (exponent + 2));
    if (text[exponent + 1] == '+')
      text.erase(exponent + 1, 1);
    return text;
  }

  /// Describes the value for an error message.
  std::string describe() const {
    if (json.is_number_float() && !std::isfinite(json.get<double>()))
      return "a number that is not finite";
    if (json.is_object())
      return "an object";
    if (json.is_array())
      return "a list";
    std::string text = json.dump();
    return text.size() > 40 ? text.substr(0, 40) + "..." : text;
  }

  const JsonValue &place;
  const nlohmann::json &json;
  std::string path;
};

/// Builds the cluster; throws Problem.
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
    return {{{0, field.within(range)}}};
  Curve curve{{}};
  for (const Field &point : field.list()) {
    std::vector<Field> numbers = point.list();
    if (numbers.size() != 2)
      point.fail("expected " + what + " and a share, found " +
                 std::to_string(numbers.size()) + " elements");
    double size = numbers[0].within(sizes);
    if (!curve.points.empty() && size <= curve.points.back().first)
      numbers[0].fail("expected more " + what + " than in the point before");
    curve.points.emplace_back(size, numbers[1].within(range));
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
        peak.fail("unknown element type, expected one of " + joined(kDTypes));
      kind.flops[dtype] = peak.within(kRateRange);
    }
    if (kind.flops.empty())
      flops.fail("expected at least one element type");
  }
  if (!builtin || field.get("memory_bytes"))
    kind.memoryBytes = field.need("memory_bytes").bytes();
  if (!builtin || field.get("memory_bandwidth"))
    kind.memoryBandwidth = field.need("memory_bandwidth").within(kRateRange);
  if (std::optional<Field> share = field.get("memory_efficiency"))
    kind.memoryEfficiency = share->within(kEfficiencyRange);
  if (std::optional<Field> start = field.get("kernel_start"))
    kind.kernelStart = start->within(kKernelStartRange);
  if (std::optional<Field> tax = field.get("overlap_tax"))
    kind.overlapTax = tax->within(kOverlapTaxRange);
  if (std::optional<Field> reserved = field.get("reserved_bytes")) {
    kind.reservedBytes = reserved->bytes();
    if (kind.reservedBytes >= kind.memoryBytes)
      reserved->fail("expected less than the memory has");
    kind.memoryBytes -= kind.reservedBytes;
  }
  if (std::optional<Field> arch = field.get("arch"))
    kind.arch = arch->architecture();
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
    kind.powerW = power->within(kPowerRange);
  return kind;
}

Link Reader::readLink(const Field &field) {
  field.object({"bandwidth", "latency", "efficiency"});
  Link link;
  if (std::optional<Field> bandwidth = field.get("bandwidth"))
    link.bandwidth = bandwidth->within(kRateRange);
  if (std::optional<Field> latency = field.get("latency"))
    link.latency = latency->within(kLatencyRange);
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
    field.fail("unknown kind '" + name + "', known are " + joined(known));
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
    group.slowdown = slowdown->within(kSlowdownRange);
  return group;
}

NodeGroup Reader::readNode(const Field &field, size_t index) {
  field.object({"name", "count", "devices", "link", "host"});
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
    node.host = HostMemory{host->need("memory_bytes").bytes(),
                           host->need("bandwidth").within(kRateRange)};
  }
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

[[noreturn]] static void failAt(std::string_view text, size_t offset,
                                std::string_view message) {
  std::string_view before = text.substr(0, std::min(offset, text.size()));
  unsigned line = std::ranges::count(before, '\n') + 1;
  unsigned column = before.size() - (before.rfind('\n') + 1) + 1;
  // A name may have a zero byte, which would end the message.
  throw ClusterError(system::diagnosticLine(message), line, column);
}

Cluster Cluster::parse(std::string_view text) {
  try {
    JsonValue file = system::readJson(text);
    return Reader().read(Field(file, ""));
  } catch (const Problem &problem) {
    failAt(text, problem.offset, problem.message);
  } catch (const system::JsonError &error) {
    failAt(text, error.getOffset(), error.what());
  }
}
