//===- Report.cpp - A simulated step as text and JSON ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Describe.h"
#include "whale/Report/TextTable.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

namespace whale::sim {

Json describePath(const Simulation &simulation) {
  Json path = Json::array();
  for (const PathShare &share : simulation.criticalPath)
    path.push_back({{"what", share.what}, {"seconds", share.seconds}});
  return path;
}

Json describeChanges(const Simulation &simulation) {
  Json changes = Json::array();
  for (const Change &change : simulation.changes)
    changes.push_back({{"what", change.what}, {"step_time_s", change.seconds}});
  return changes;
}

Json describeTaskGraphUses(const Simulation &simulation) {
  Json graphs = Json::array();
  for (const TaskGraphUse &use : simulation.taskGraphs) {
    Json shares = Json::array();
    for (const RankShare &each : use.shares)
      shares.push_back({{"ranks", each.ranks}, {"share", each.share}});
    graphs.push_back({{"name", use.name},
                      {"flops", use.flops},
                      {"bytes", use.bytes},
                      {"compute_s", use.computeSeconds},
                      {"communication_bytes", use.sentBytes},
                      {"exposed_s", use.exposedSeconds},
                      {"shares", std::move(shares)}});
  }
  return graphs;
}

static const char *nameOf(CollectiveRule rule) {
  return rule == CollectiveRule::Own ? "own" : "nccl";
}

template <typename T>
static Json orNull(const std::optional<T> &value) {
  return value ? Json(*value) : Json();
}

/// By rank: those that do the same as it.
static std::vector<const ModelledRanks *> byRank(const Simulation &simulation) {
  std::vector<const ModelledRanks *> list(simulation.peakBytes.size());
  for (const ModelledRanks &ranks : simulation.step.ranks)
    for (int64_t rank : ranks.ranks)
      list[rank] = &ranks;
  return list;
}

std::string toJson(const Simulation &simulation) {
  const ModelledStep &step = simulation.step;
  Json devices = Json::array();
  std::vector<const ModelledRanks *> ranksOf = byRank(simulation);
  for (size_t rank = 0; rank < ranksOf.size(); ++rank) {
    const ModelledRanks &ranks = *ranksOf[rank];
    const DeviceKind &kind =
        simulation.cluster.kindOf(static_cast<int64_t>(rank));
    devices.push_back({{"rank", rank},
                       {"kind", kind.name},
                       {"compute_s", ranks.computeSeconds},
                       {"communication_s", ranks.communicationSeconds},
                       {"idle_s", ranks.idleSeconds},
                       {"peak_memory_bytes", simulation.peakBytes[rank]},
                       {"memory_bytes", kind.memoryBytes}});
  }
  Json collectives = Json::object();
  for (const auto &[kind, times] : simulation.collectives) {
    collectives[kind] = {{"count", times.count},
                         {"bytes", times.bytes},
                         {"exposed_s", times.exposedSeconds},
                         {"share", step.seconds > 0
                                       ? times.exposedSeconds / step.seconds
                                       : 0.0}};
    if (!times.choices.empty())
      collectives[kind]["algorithms"] = times.choices;
  }
  Json memory = Json::array();
  for (const ModelledRanks &ranks : step.ranks) {
    Json points = Json::array();
    for (const MemoryPoint &point : memoryOverTime(simulation, ranks))
      points.push_back({point.seconds, point.bytes});
    memory.push_back({{"ranks", ranks.ranks}, {"points", std::move(points)}});
  }
  Json root = {{"program", simulation.program->path},
               {"step_time_s", step.seconds},
               {"samples", orNull(simulation.program->samples)},
               {"samples_per_s", orNull(simulation.samplesPerSecond())},
               {"communication_bytes", step.sentBytes},
               {"collective_rule", nameOf(simulation.rule)},
               {"bubble", simulation.bubble},
               {"energy_j", orNull(simulation.energy)},
               {"out_of_memory", simulation.outOfMemory},
               {"assumptions", step.assumptions},
               {"collectives", std::move(collectives)},
               {"critical_path", describePath(simulation)},
               {"changes", describeChanges(simulation)},
               {"task_graphs", describeTaskGraphUses(simulation)},
               {"devices", std::move(devices)},
               {"memory_over_time", std::move(memory)}};
  return system::printJson(root, 1) + "\n";
}

static std::string percent(double part, double whole) {
  char text[16];
  std::snprintf(text, sizeof(text), "%.1f%%",
                whole > 0 ? 100 * part / whole : 0.0);
  return text;
}

static std::string rateOf(const Simulation &simulation) {
  std::optional<double> rate = simulation.samplesPerSecond();
  return rate ? withPrefix(*rate, "samples/s") : "";
}

static int64_t mostBytes(const Simulation &simulation,
                         const std::vector<int64_t> &ranks) {
  int64_t most = 0;
  for (int64_t rank : ranks)
    most = std::max(most, simulation.peakBytes[rank]);
  return most;
}

/// Which algorithms they take, and how often if these are several.
static std::string describeChoices(const CollectiveTimes &times) {
  std::string text;
  for (const auto &[choice, count] : times.choices)
    text += (text.empty() ? "" : ", ") + choice +
            (times.choices.size() > 1 ? " " + withPrefix(count, "") : "");
  return text;
}

/// Of the critical path, in text.
static constexpr size_t mostShares = 8;

/// A row for each TaskGraph.
static std::string taskGraphTable(const Simulation &simulation) {
  double seconds = simulation.step.seconds;
  std::vector<std::vector<std::string>> rows = {
      {"task graph", "devices", "of it each", "FLOPs", "reads and writes",
       "computes", "sent by all", "exposed"}};
  for (const TaskGraphUse &use : simulation.taskGraphs) {
    std::vector<int64_t> devices;
    double least = 1, most = 0;
    for (const RankShare &each : use.shares) {
      devices.insert(devices.end(), each.ranks.begin(), each.ranks.end());
      least = std::min(least, each.share);
      most = std::max(most, each.share);
    }
    std::ranges::sort(devices);
    std::string share = percent(most, 1);
    if (percent(least, 1) != share)
      share = percent(least, 1) + " to " + share;
    rows.push_back(
        {use.name, describeRanges(devices), share, withPrefix(use.flops, ""),
         describeBytes(use.bytes), percent(use.computeSeconds, seconds),
         describeBytes(use.sentBytes), percent(use.exposedSeconds, seconds)});
  }
  return alignColumns(std::move(rows));
}

std::string toText(const Simulation &simulation) {
  const ModelledStep &step = simulation.step;
  std::string text = "a step takes " + describeSeconds(step.seconds);
  if (std::string rate = rateOf(simulation); !rate.empty())
    text += ", " + rate;
  text += "; ranks send " + describeBytes(step.sentBytes) +
          "; they are idle for " + percent(simulation.bubble, 1) +
          " of their time\n\n";
  std::vector<std::vector<std::string>> rows = {
      {"devices", "kind", "computes", "communicates", "idle", "memory", "of"}};
  for (const ModelledRanks &ranks : step.ranks) {
    const DeviceKind &kind = simulation.cluster.kindOf(ranks.ranks.front());
    rows.push_back(
        {describeRanges(ranks.ranks), kind.name,
         percent(ranks.computeSeconds, step.seconds),
         percent(ranks.communicationSeconds, step.seconds),
         percent(ranks.idleSeconds, step.seconds),
         describeBytes(static_cast<double>(mostBytes(simulation, ranks.ranks))),
         describeBytes(static_cast<double>(kind.memoryBytes))});
  }
  text += alignColumns(std::move(rows));
  if (!simulation.collectives.empty()) {
    rows = {{"collective", "count", "sent by all", "exposed",
             simulation.rule == CollectiveRule::Own ? "as Whale's transports do"
                                                    : "as NCCL does"}};
    for (const auto &[kind, times] : simulation.collectives)
      rows.push_back({kind, withPrefix(times.count, ""),
                      describeBytes(times.bytes),
                      percent(times.exposedSeconds, step.seconds),
                      describeChoices(times)});
    text += "\n" + alignColumns(std::move(rows));
  }
  if (!simulation.taskGraphs.empty())
    text += "\n" + taskGraphTable(simulation);
  rows = {{"critical path", "of the step"}};
  for (const PathShare &share : simulation.criticalPath)
    if (rows.size() <= mostShares)
      rows.push_back({share.what, percent(share.seconds, step.seconds)});
  text += "\n" + alignColumns(std::move(rows));
  rows = {{"what would help", "a step then takes"}};
  for (const Change &change : simulation.changes)
    rows.push_back(
        {change.what, describeSeconds(change.seconds) + ", " +
                          percent(step.seconds - change.seconds, step.seconds) +
                          " less"});
  if (rows.size() > 1)
    text += "\n" + alignColumns(std::move(rows));
  if (!simulation.outOfMemory.empty())
    text +=
        "\nout of memory: " + describeDevices(simulation.outOfMemory) + "\n";
  for (const std::string &assumption : step.assumptions)
    text += "\nassumed: " + assumption + "\n";
  return text;
}

std::string compare(const std::vector<Simulation> &simulations,
                    const std::vector<std::string> &clusterNames) {
  std::vector<size_t> order(simulations.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) {
    return std::tuple(!simulations[i].outOfMemory.empty(),
                      simulations[i].step.seconds, i);
  });
  std::vector<std::vector<std::string>> rows = {
      {"program", "cluster", "step", "rate", "idle", "sent", "memory", "fits"}};
  for (size_t i : order) {
    const Simulation &simulation = simulations[i];
    int64_t most = std::ranges::max(simulation.peakBytes);
    rows.push_back({simulation.program->path, clusterNames[i],
                    describeSeconds(simulation.step.seconds),
                    rateOf(simulation), percent(simulation.bubble, 1),
                    describeBytes(simulation.step.sentBytes),
                    describeBytes(static_cast<double>(most)),
                    simulation.outOfMemory.empty()
                        ? "yes"
                        : "not on " + describeDevices(simulation.outOfMemory)});
  }
  return alignColumns(std::move(rows));
}

} // namespace whale::sim
