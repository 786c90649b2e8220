//===- ReadNetwork.cpp - The links of a cluster file ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The planner reads cluster files, too, but it links LLVM, which the command
// does without.
//
//===----------------------------------------------------------------------===//

#include "ReadNetwork.h"

#include "whale/Cluster/ClusterRanges.h"
#include "whale/Runtime/Io.h"
#include "whale/Runtime/Types.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace whale::runtime {

namespace {
/// A value with its path from the top of the file.
class Field {
public:
  Field(const nlohmann::json &json, const std::string &file,
        std::string path = "")
      : json(json), file(file), path(std::move(path)) {}

  [[noreturn]] void fail(const std::string &what) const {
    throw Error(file + ": " + (path.empty() ? "" : path + ": ") + what);
  }

  bool isNumber() const { return json.is_number(); }

  /// A member that may be left out, of an object with no fields but these.
  std::optional<Field> find(const std::string &key,
                            const std::vector<std::string> &known) const {
    if (!json.is_object())
      fail("expected an object");
    for (const auto &[name, member] : json.items())
      if (std::find(known.begin(), known.end(), name) == known.end())
        fail("unknown field '" + name + "'");
    auto it = json.find(key);
    if (it == json.end())
      return std::nullopt;
    return Field(*it, file, path.empty() ? key : path + "." + key);
  }

  Field need(const std::string &key,
             const std::vector<std::string> &known) const {
    if (std::optional<Field> field = find(key, known))
      return *field;
    fail("field '" + key + "' is missing");
  }

  std::vector<Field> list() const {
    if (!json.is_array() || json.empty())
      fail("expected a list with at least one element");
    std::vector<Field> fields;
    for (size_t i = 0; i < json.size(); ++i)
      fields.emplace_back(json[i], file, path + "[" + std::to_string(i) + "]");
    return fields;
  }

  double number(NumberRange range) const {
    double value = json.is_number() ? json.get<double>() : std::nan("");
    if (!range.contains(value)) {
      char text[80];
      std::snprintf(text, sizeof(text), "expected a number from %g to %g",
                    range.least, range.most);
      fail(text);
    }
    return value;
  }

  size_t count() const {
    double value = number({1, double(kMostDevices)});
    if (value != std::floor(value))
      fail("expected a whole number");
    return static_cast<size_t>(value);
  }

private:
  const nlohmann::json &json;
  const std::string &file;
  std::string path;
};

/// What ranks look their links up in.
struct Table {
  /// By rank.
  std::vector<size_t> nodes;
  /// By node.
  std::vector<Link> links;
  Link network;
};
} // namespace

static Link readLink(const std::optional<Field> &field) {
  const std::vector<std::string> known = {"bandwidth", "latency"};
  Link link;
  if (!field)
    return link;
  if (std::optional<Field> bandwidth = field->find("bandwidth", known))
    link.secondsPerByte = 1 / bandwidth->number(kRateRange);
  if (std::optional<Field> latency = field->find("latency", known))
    link.latency = latency->number(kLatencyRange);
  return link;
}

static void readNode(const Field &node, Table &table) {
  const std::vector<std::string> known = {"name", "count", "devices", "link",
                                          "host"};
  auto countOf = [](const std::optional<Field> &count) {
    return count ? count->count() : size_t(1);
  };
  size_t devices = 0;
  for (const Field &entry : node.need("devices", known).list())
    devices += countOf(entry.find("count", {"kind", "count", "slowdown"}));
  Link link = readLink(node.find("link", known));
  for (size_t count = countOf(node.find("count", known)); count > 0; --count) {
    if (int64_t(table.nodes.size() + devices) > kMostDevices)
      node.fail("the cluster has more than " +
                std::to_string(kMostDevices) + " devices");
    table.nodes.insert(table.nodes.end(), devices, table.links.size());
    table.links.push_back(link);
  }
}

static Table readTable(const Field &file) {
  const std::vector<std::string> known = {"kinds", "nodes", "network"};
  Table table;
  // A number stands for ranks of one machine.
  if (file.isNumber()) {
    table.nodes.assign(file.count(), 0);
    table.links.emplace_back();
    return table;
  }
  for (const Field &node : file.need("nodes", known).list())
    readNode(node, table);
  table.network = readLink(file.find("network", known));
  return table;
}

ClusterLinks readNetwork(const std::string &path) {
  MappedFile file(path);
  std::string_view text = file.text();
  nlohmann::json json = nlohmann::json::parse(text.begin(), text.end(),
                                              /*cb=*/nullptr,
                                              /*allow_exceptions=*/false);
  if (json.is_discarded())
    throw Error(path + ": is no JSON");
  Table table = readTable(Field(json, path));
  size_t devices = table.nodes.size();
  auto network = [table = std::move(table)](int64_t from, int64_t to) {
    size_t node = table.nodes[from];
    return node == table.nodes[to] ? table.links[node] : table.network;
  };
  return {std::move(network), devices};
}

} // namespace whale::runtime
