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

#include <algorithm>
#include <cmath>

namespace whale::sim {

namespace {
/// What the program says of the parts of a step, with simulated numbers.
class PlanWriter {
public:
  explicit PlanWriter(const Simulation &simulation)
      : simulation(simulation), program(simulation.program->program) {}

  Json write();

private:
  Json describe(const ModelledRanks &ranks);
  Json computed(const ModelledRanks &ranks);
  Json transferred(const ModelledRanks &ranks);
  Json memory(const ModelledRanks &ranks) const;
  int64_t scaled(double seconds) const {
    return std::llround(seconds / simulation.step.seconds *
                        static_cast<double>(end));
  }
  void add(Json &list, const Period &period, const std::string &name,
           std::optional<int64_t> moment);

  /// What a picture can show: beyond it neighbours become one.
  static constexpr size_t mostPieces = 512;
  /// Parts of a step.
  static constexpr int64_t end = 100000;

  const Simulation &simulation;
  const format::Program &program;
  Json names = Json::array();
};
} // namespace

/// Adds a piece, or makes the one before it longer where it goes on.
void PlanWriter::add(Json &list, const Period &period, const std::string &name,
                     std::optional<int64_t> moment) {
  if (period.end <= period.begin)
    return;
  auto found = std::ranges::find(names, Json(name));
  auto number = found - names.begin();
  if (found == names.end())
    names.push_back(name);
  Json piece = {scaled(period.begin), scaled(period.end), number};
  if (moment)
    piece.push_back(*moment);
  if (!list.empty()) {
    Json &last = list.back();
    bool isSame = last.size() == piece.size() && last[2] == piece[2] &&
                  (!moment || last[3] == piece[3]);
    if ((isSame && last[1] == piece[0]) || list.size() >= mostPieces) {
      last[1] = piece[1];
      return;
    }
  }
  list.push_back(std::move(piece));
}

Json PlanWriter::computed(const ModelledRanks &ranks) {
  Json list = Json::array();
  for (size_t i = 0; i < ranks.items.size(); ++i)
    if (const format::Instruction *instruction = ranks.instructions[i]) {
      const auto *run = std::get_if<format::Run>(&instruction->operation);
      std::string phase = phaseOf(program, *instruction);
      add(list, ranks.times.items[i], phase.empty() ? "computing" : phase,
          run ? run->moment : std::nullopt);
    }
  return list;
}

Json PlanWriter::transferred(const ModelledRanks &ranks) {
  Json list = Json::array();
  for (size_t i = 0; i < ranks.parts.size(); ++i)
    add(list, ranks.times.parts[i],
        program.channels.at(ranks.parts[i].channel)->kind, std::nullopt);
  return list;
}

Json PlanWriter::memory(const ModelledRanks &ranks) const {
  Json list = Json::array();
  for (const MemoryPoint &point : memoryOverTime(simulation, ranks))
    list.push_back({scaled(point.seconds), point.bytes});
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
  return {{"ranks", ranks.ranks},
          {"kind", kind.name},
          {"memory_bytes", kind.memoryBytes},
          {"peak_memory_bytes", peak},
          {"memory", std::move(held)},
          {"compute_s", ranks.computeSeconds},
          {"communication_s", ranks.communicationSeconds},
          {"idle_s", ranks.idleSeconds},
          {"computed", computed(ranks)},
          {"transferred", transferred(ranks)},
          {"memory_over_time", memory(ranks)}};
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
  plan["timeline_names"] = std::move(names);
  plan["timeline_end"] = end;
  // Those of the cluster that it was compiled for.
  plan.erase("links");
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
