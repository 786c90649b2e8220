//===- PlanTable.cpp - The TaskGraphs of a plan ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanRead.h"
#include "whale/Report/PlanText.h"
#include "whale/Report/TextTable.h"

namespace whale {

using namespace report;

/// The devices of each group, or how many there are.
static std::string
describeGroups(const std::vector<std::vector<int64_t>> &groups) {
  constexpr size_t widest = 24;
  std::string text;
  size_t count = 0;
  for (const std::vector<int64_t> &group : groups) {
    count += group.size();
    text += (text.empty() ? "" : " | ") + describeRanges(group);
  }
  if (text.size() <= widest)
    return text;
  text = std::to_string(count) + " devices";
  if (groups.size() > 1)
    text += " in " + std::to_string(groups.size()) + " groups";
  return text;
}

std::string makePlanTable(std::string_view text) {
  Plan plan = readPlan(text);
  std::vector<std::vector<std::string>> rows = {
      {"task graph", "strategy", "devices", "forward FLOP", "backward FLOP",
       "apply FLOP"}};
  for (const Work &work : plan.work) {
    rows.push_back({work.name, work.strategy, describeGroups(work.groups)});
    for (double flops : work.flops)
      rows.back().push_back(flops > 0 ? withPrefix(flops, "") : "-");
  }
  std::string table = alignColumns(rows), collectives, copies;
  for (const Exchange &exchange : plan.collectives) {
    bool isCopy =
        exchange.name == "host_to_device" || exchange.name == "device_to_host";
    std::string &list = isCopy ? copies : collectives;
    // A device that takes a part of what it has exchanges nothing.
    if (exchange.name == "local_slice")
      continue;
    list += (list.empty() ? "" : ", ") + std::to_string(exchange.count) + " " +
            exchange.name + " (" + describeBytes(exchange.bytes) + ")";
  }
  table +=
      "collectives of a step: " + (collectives.empty() ? "none" : collectives) +
      "\n";
  return copies.empty() ? table : table + "copies of a step: " + copies + "\n";
}

} // namespace whale
