//===- TraceNames.cpp - What traces call things ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Report/TraceNames.h"

#include "whale/System/Json.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace whale {

/// The components of a path; what is in parentheses is one.
static std::vector<std::string_view> componentsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= path.size(); ++i) {
    if (i == path.size() || (path[i] == '/' && depth == 0)) {
      parts.push_back(path.substr(begin, i - begin));
      begin = i + 1;
    } else {
      depth += path[i] == '(' ? 1 : path[i] == ')' ? -1 : 0;
    }
  }
  return parts;
}

/// "head" of "transpose(jvp(whale:split:4:2:head))"; nothing of a function that
/// is compiled, and of what JAX calls its own loops and calls.
static std::string_view ownName(std::string_view part) {
  static constexpr std::array functions = {"jit", "pjit", "pmap", "shard_map"};
  static constexpr std::array calls = {"while",
                                       "body",
                                       "cond",
                                       "scan",
                                       "closed_call",
                                       "core_call",
                                       "checkpoint",
                                       "remat",
                                       "rematted_computation",
                                       "custom_jvp_call",
                                       "custom_vjp_call",
                                       "custom_vjp_call_jaxpr"};
  while (part.ends_with(')') && part.find('(') != part.npos) {
    size_t open = part.find('(');
    if (std::ranges::find(functions, part.substr(0, open)) != functions.end())
      return {};
    part = part.substr(open + 1, part.size() - open - 2);
  }
  if (part.starts_with("whale:")) {
    // whale:KIND:COUNT:ID:NAME
    for (int i = 0; i < 4 && !part.empty(); ++i) {
      size_t colon = part.find(':');
      part = colon == part.npos ? std::string_view() : part.substr(colon + 1);
    }
    return part;
  }
  return std::ranges::find(calls, part) == calls.end() ? part
                                                       : std::string_view();
}

ShownLabel showLabel(const std::string &label, const std::string &line) {
  // What an operation is called inside of its modules, and bytes that a bar
  // has room for.
  constexpr size_t mostNames = 3, longest = 60;
  if (label.find('/') == label.npos)
    return {label, ""};
  ShownLabel shown;
  size_t transposed = label.find("transpose("), traced = label.find("jvp(");
  shown.phase = transposed < traced           ? "backward"
                : traced != std::string::npos ? "forward"
                                              : "update";
  std::vector<std::string_view> names;
  for (std::string_view part : componentsOf(label))
    if (std::string_view name = ownName(part); !name.empty())
      names.push_back(name);
  size_t first = names.size() > mostNames ? names.size() - mostNames : 0;
  for (size_t i = first; i < names.size(); ++i)
    shown.name += (i > first ? "/" : "") + std::string(names[i]);
  if (shown.name.size() > longest) {
    size_t cut = shown.name.size() - longest;
    // Not inside of a character.
    while (cut < shown.name.size() && (shown.name[cut] & 0xC0) == 0x80)
      ++cut;
    shown.name = "..." + shown.name.substr(cut);
  }
  if (shown.name.empty())
    shown.name = label.substr(label.rfind('/') + 1);
  if (!line.empty())
    shown.name += " (" + line + ")";
  return shown;
}

const char *colorOf(const std::string &phase) {
  return phase == "forward"    ? "thread_state_running"
         : phase == "backward" ? "rail_animation"
         : phase == "update"   ? "rail_idle"
                               : nullptr;
}

/// The names of the TaskGraphs that a plan puts on a device, in order.
static std::vector<std::string> graphsOn(const nlohmann::json &plan,
                                         int64_t device) {
  std::vector<std::string> names;
  auto graphs = plan.find("task_graphs");
  if (!plan.is_object() || graphs == plan.end())
    return names;
  for (const nlohmann::json &graph : *graphs)
    for (const nlohmann::json &group :
         graph.value("devices", nlohmann::json::array()))
      if (std::ranges::find(group, nlohmann::json(device)) != group.end()) {
        auto name = graph.value("name", std::string());
        if (std::ranges::find(names, name) == names.end())
          names.push_back(std::move(name));
      }
  return names;
}

std::vector<std::string> nameRanks(const format::Program &program) {
  constexpr size_t mostGraphs = 3;
  nlohmann::json plan;
  try {
    plan = system::parseJson<nlohmann::json>(program.plan);
  } catch (const nlohmann::json::exception &) {
    // It is for people, and may be anything.
  }
  std::vector<std::string> names;
  for (const format::Rank &rank : program.ranks) {
    std::string &name = names.emplace_back(
        "rank " + std::to_string(names.size()) + ": " + rank.kind + " " +
        std::to_string(rank.device) + " of node " + std::to_string(rank.node));
    std::vector<std::string> graphs;
    try {
      graphs = graphsOn(plan, rank.device);
    } catch (const nlohmann::json::exception &) {
      // As above.
    }
    for (size_t i = 0; i < std::min(graphs.size(), mostGraphs); ++i)
      name += ", " + graphs[i];
    if (graphs.size() > mostGraphs)
      name += " and " + std::to_string(graphs.size() - mostGraphs) + " more";
  }
  return names;
}

} // namespace whale
