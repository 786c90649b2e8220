//===- PlanRead.cpp - The parts of a plan that reports show ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanRead.h"

#include <algorithm>
#include <iterator>

namespace whale::report {

std::vector<int64_t> Work::devices() const {
  std::vector<int64_t> all;
  for (const std::vector<int64_t> &group : groups)
    all.insert(all.end(), group.begin(), group.end());
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

double Work::shareOf(int64_t device) const {
  size_t number = 0;
  for (const std::vector<int64_t> &group : groups)
    for (int64_t other : group) {
      if (other == device)
        return shares.size() == 1       ? shares.front()
               : number < shares.size() ? shares[number]
                                        : 0;
      ++number;
    }
  return 0;
}

/// The elements of a list, if it is there.
static const Json &list(const Json &json, const char *name) {
  static const Json none = Json::array();
  auto found = json.find(name);
  return found == json.end() || found->is_null() ? none : *found;
}

static std::string text(const Json &json, const char *name) {
  auto found = json.find(name);
  return found == json.end() || found->is_null() ? ""
                                                 : found->get<std::string>();
}

/// "#whale.split<devices = 2, scope = 1>" -> "split".
static std::string kindOf(std::string strategy) {
  strategy.erase(std::min(strategy.find('<'), strategy.size()));
  return strategy.substr(strategy.rfind('.') + 1);
}

static void readWork(const Json &json, Plan &plan) {
  static constexpr const char *phases[] = {"forward", "backward", "apply"};
  for (const Json &graph : list(json, "task_graphs")) {
    std::string name = text(graph, "name");
    auto found = std::ranges::find(plan.work, name, &Work::name);
    if (found == plan.work.end()) {
      plan.work.emplace_back().name = name;
      found = std::prev(plan.work.end());
    }
    if (graph.contains("strategy"))
      found->strategy = kindOf(text(graph, "strategy"));
    if (graph.contains("devices"))
      found->groups = graph["devices"].get<decltype(found->groups)>();
    if (graph.contains("shares"))
      found->shares = graph["shares"].get<std::vector<double>>();
    const auto *phase = std::ranges::find(phases, text(graph, "phase"));
    if (phase != std::end(phases))
      found->flops[phase - phases] += graph.value("flops", 0.0);
  }
}

static std::vector<Piece> readPieces(const Json &json, const char *name,
                                     const Json &names, double scale) {
  std::vector<Piece> pieces;
  for (const Json &piece : list(json, name)) {
    size_t what = piece.at(2).get<size_t>();
    pieces.push_back({piece.at(0).get<double>() / scale,
                      piece.at(1).get<double>() / scale,
                      what < names.size() ? names[what].get<std::string>() : "",
                      piece.size() > 3 ? piece[3].get<int64_t>() : -1});
  }
  return pieces;
}

static void readDevices(const Json &json, Plan &plan) {
  const Json &names = list(json, "timeline_names");
  double scale = json.value("timeline_end", 1.0);
  for (const Json &entry : list(json, "devices")) {
    Devices &devices = plan.devices.emplace_back();
    devices.ranks = entry.value("ranks", devices.ranks);
    devices.kind = text(entry, "kind");
    devices.memoryBytes = entry.value("memory_bytes", 0.0);
    devices.neededBytes = entry.value("peak_memory_bytes", 0.0);
    if (auto held = entry.find("memory"); held != entry.end())
      for (const auto &[what, bytes] : held->items())
        devices.held.push_back({what, bytes.get<double>()});
    devices.computeSeconds = entry.value("compute_s", 0.0);
    devices.communicationSeconds = entry.value("communication_s", 0.0);
    devices.idleSeconds = entry.value("idle_s", 0.0);
    devices.computed = readPieces(entry, "computed", names, scale);
    devices.transferred = readPieces(entry, "transferred", names, scale);
    for (const Json &point : list(entry, "memory_over_time"))
      devices.memory.emplace_back(point.at(0).get<double>() / scale,
                                  point.at(1).get<double>());
  }
}

Plan readPlan(std::string_view source) {
  Json json = system::parseJson<Json>(source);
  Plan plan;
  if (!json.is_object())
    return plan;
  readWork(json, plan);
  readDevices(json, plan);
  if (auto kinds = json.find("collectives"); kinds != json.end())
    for (const auto &[kind, total] : kinds->items())
      plan.collectives.push_back({kind, total.at("count").get<int64_t>(),
                                  total.at("bytes").get<double>(), 0});
  for (const Json &link : list(json, "links"))
    plan.links.push_back({text(link, "name"), link.value("count", int64_t(0)),
                          link.value("bytes", 0.0),
                          link.value("seconds", 0.0)});
  for (const Json &argument : list(json, "arguments"))
    plan.arguments.push_back({text(argument, "label"),
                              text(argument, "placement"),
                              argument.value("bytes", 0.0)});
  for (const Json &share : list(json, "critical_path"))
    plan.criticalPath.push_back(
        {text(share, "what"), share.value("seconds", 0.0)});
  for (const Json &change : list(json, "changes"))
    plan.changes.push_back(
        {text(change, "what"), change.value("step_time_s", 0.0)});
  for (const Json &row : list(json, "comparison"))
    plan.comparison.push_back(
        {text(row, "program"), text(row, "cluster"),
         row.value("step_time_s", 0.0), row.value("samples_per_s", 0.0),
         row.value("peak_memory_bytes", 0.0), row.value("fits", true)});
  plan.stepSeconds = json.value("step_time_s", 0.0);
  plan.samples = json.value("samples", int64_t(0));
  plan.microBatches = json.value("micro_batches", int64_t(0));
  return plan;
}

} // namespace whale::report
