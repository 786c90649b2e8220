//===- PlanTable.cpp - A plan at a glance ---------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Program/PlanTable.h"

#include "Json.h"
#include "TextTable.h"
#include "whale/System/Json.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <array>

using namespace llvm;

namespace whale {
namespace {

/// The devices of each group, or how many there are.
std::string describeDevices(const Json &groups) {
  constexpr size_t widest = 24;
  std::string text;
  int64_t count = 0;
  for (const Json &group : groups) {
    auto numbers = group.get<std::vector<int64_t>>();
    count += static_cast<int64_t>(numbers.size());
    text += (text.empty() ? "" : " | ") + describeRanges(numbers);
  }
  if (text.size() <= widest)
    return text;
  text = std::to_string(count) + " devices";
  if (groups.size() > 1)
    text += " in " + std::to_string(groups.size()) + " groups";
  return text;
}

/// "#whale.split<devices = 2, scope = 1>" -> "split".
StringRef kindOf(StringRef strategy) {
  return strategy.take_until([](char c) { return c == '<'; })
      .rsplit('.')
      .second;
}

constexpr std::array<const char *, 3> kPhases = {"forward", "backward",
                                                 "apply"};

struct Row {
  std::string strategy, devices;
  std::array<double, kPhases.size()> flops = {};
};

} // namespace

std::string makePlanTable(StringRef text) {
  Json plan = system::parseJson<Json>(text);
  MapVector<std::string, Row, std::map<std::string, unsigned>> graphs;
  for (const Json &graph : plan["task_graphs"]) {
    Row &row = graphs[graph["name"].get<std::string>()];
    if (graph.contains("strategy"))
      row.strategy = kindOf(graph["strategy"].get<std::string>()).str();
    if (graph.contains("devices"))
      row.devices = describeDevices(graph["devices"]);
    const auto *phase = find(kPhases, graph["phase"].get<std::string>());
    if (phase != kPhases.end())
      row.flops[phase - kPhases.begin()] += graph.value("flops", 0.0);
  }
  std::vector<std::vector<std::string>> rows = {
      {"task graph", "strategy", "devices"}};
  for (const char *phase : kPhases)
    rows[0].push_back(phase + std::string(" FLOP"));
  for (const auto &[name, row] : graphs) {
    rows.push_back({name, row.strategy, row.devices});
    for (double flops : row.flops)
      rows.back().push_back(flops > 0 ? describeAmount(flops, "") : "-");
  }
  std::string table = alignColumns(rows);

  std::vector<std::string> collectives;
  for (const auto &[kind, total] : plan["collectives"].items())
    collectives.push_back(
        formatv("{0} {1} ({2})", total["count"].get<int64_t>(), kind,
                describeAmount(total["bytes"].get<double>(), "B"))
            .str());
  table += "collectives of a step: " +
           (collectives.empty() ? "none" : join(collectives, ", ")) + "\n";
  return table;
}

} // namespace whale
