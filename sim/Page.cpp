//===- Page.cpp - Simulated steps as a page of HTML -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The page of a plan (PlanPage.h), in which times, memory and exchanges are the
// simulated ones.
//
//===----------------------------------------------------------------------===//

#include "Describe.h"
#include "whale/Report/PlanPage.h"
#include "whale/Step/StepTimeline.h"

#include <algorithm>
#include <cmath>

namespace whale::sim {

namespace {
/// What the program says of the parts of a step, with simulated numbers.
class PlanWriter {
public:
  explicit PlanWriter(const Simulation &simulation)
      : simulation(simulation), program(simulation.program->program),
        timeline(program, simulation.step) {}

  Json write();

private:
  Json describe(const ModelledRanks &ranks);
  Json memory(const ModelledRanks &ranks) const;

  const Simulation &simulation;
  const format::Program &program;
  StepTimeline timeline;
};
} // namespace

Json PlanWriter::memory(const ModelledRanks &ranks) const {
  Json list = Json::array();
  for (const MemoryPoint &point : memoryOverTime(simulation, ranks))
    list.push_back({timeline.scaled(point.seconds), point.bytes});
  return list;
}

Json PlanWriter::describe(const ModelledRanks &ranks) {
  int64_t first = ranks.ranks.front();
  const DeviceKind &kind = simulation.cluster.kindOf(first);
  RankBytes bytes = bytesOf(program, first);
  int64_t peak = simulation.peakBytes[first];
  Json held = Json::object();
  for (auto [what, count] :
       {std::pair{"arguments", bytes.arguments},
        {"results that replace no argument", bytes.results},
        {"constants", bytes.constants},
        {"activations and gradients", bytes.arena},
        {"scratch of products and convolutions",
         std::max(bytes.workspace, peak - bytes.total() + bytes.workspace)}})
    if (count > 0)
      held[what] = count;
  Json json = timeline.describe(ranks);
  json["kind"] = kind.name;
  json["memory_bytes"] = kind.memoryBytes;
  json["peak_memory_bytes"] = peak;
  json["memory"] = std::move(held);
  json["memory_over_time"] = memory(ranks);
  return json;
}

Json PlanWriter::write() {
  Json plan = system::parseJson<Json>(program.plan);
  if (!plan.is_object())
    plan = Json::object();
  plan["step_time_s"] = simulation.step.seconds;
  Json devices = Json::array();
  if (simulation.step.seconds > 0)
    for (const ModelledRanks &ranks : simulation.step.ranks)
      devices.push_back(describe(ranks));
  plan["devices"] = std::move(devices);
  timeline.addNames(plan);
  plan["links"] = describeLinks(program, simulation.cluster, simulation.step);
  Json collectives = Json::object();
  for (const auto &[kind, times] : simulation.collectives)
    collectives[kind] = {{"count", std::llround(times.count)},
                         {"bytes", times.bytes}};
  plan["collectives"] = std::move(collectives);
  plan["critical_path"] = describePath(simulation);
  plan["changes"] = describeChanges(simulation);
  return plan;
}

std::string toPage(const std::vector<Simulation> &simulations,
                   const std::vector<std::string> &clusterNames) {
  Json plan = PlanWriter(simulations.front()).write();
  if (simulations.size() > 1) {
    Json rows = Json::array();
    for (size_t i = 0; i < simulations.size(); ++i) {
      const Simulation &simulation = simulations[i];
      rows.push_back(
          {{"program", simulation.program->path},
           {"cluster", clusterNames[i]},
           {"step_time_s", simulation.step.seconds},
           {"samples_per_s", simulation.samplesPerSecond().value_or(0)},
           {"peak_memory_bytes", std::ranges::max(simulation.peakBytes)},
           {"fits", simulation.outOfMemory.empty()}});
    }
    plan["comparison"] = std::move(rows);
  }
  return makePlanPage(system::printJson(plan));
}

} // namespace whale::sim
