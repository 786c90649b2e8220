//===- Simulate.cpp - What a step takes on a cluster ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cost: reading the program, the model of the step (ProgramModel.h), and the
// buffers of each rank's class.
//
//===----------------------------------------------------------------------===//

#include "whale/Sim/Simulate.h"

#include "whale/ProgramFormat/ProgramPlace.h"
#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/Step/CriticalPath.h"
#include "whale/System/Error.h"
#include "whale/System/Io.h"
#include "whale/System/Json.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

namespace whale::sim {

namespace fs = std::filesystem;

/// What the plan says of the whole program.
static void readPlan(LoadedProgram &loaded) {
  auto plan = system::parseJson<nlohmann::json>(loaded.program.plan);
  if (!plan.is_object())
    return;
  if (auto samples = plan.find("samples");
      samples != plan.end() && samples->is_number_integer())
    loaded.samples = samples->get<int64_t>();
  auto devices = plan.find("devices");
  if (devices == plan.end() || !devices->is_array())
    return;
  for (const auto &device : *devices) {
    auto peak = device.find("peak_memory_bytes"), ranks = device.find("ranks");
    if (peak == device.end() || !peak->is_number_integer() ||
        ranks == device.end() || !ranks->is_array())
      continue;
    for (const auto &rank : *ranks)
      if (rank.is_number_integer())
        loaded.peakBytes[rank.get<int64_t>()] = peak->get<int64_t>();
  }
}

static LoadedProgram read(const std::string &path, const fs::path &directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error))
    throw system::Error(path + ": " +
                        (fs::exists(directory, error)
                             ? "is not a program directory"
                             : std::strerror(error ? error.value() : ENOENT)));
  fs::path file = directory / "manifest.json";
  LoadedProgram loaded;
  loaded.path = path;
  loaded.program = format::readProgram(
      system::MappedFile(file).text(), file.string(),
      [&](const std::string &name) {
        return std::string(system::MappedFile(directory / name).text());
      });
  if (loaded.program.cluster.empty()) {
    loaded.cluster =
        Cluster::ofRanks(static_cast<int64_t>(loaded.program.ranks.size()));
  } else {
    try {
      loaded.cluster = Cluster::parse(loaded.program.cluster);
    } catch (const ClusterError &error) {
      throw system::Error(file.string() + ": cluster: " + error.what());
    }
  }
  readPlan(loaded);
  return loaded;
}

LoadedProgram load(const std::string &path) {
  return format::readProgramDirectory(
      path, [&](const fs::path &directory) { return read(path, directory); });
}

std::optional<double> Simulation::samplesPerSecond() const {
  if (!program->samples || step.seconds <= 0)
    return std::nullopt;
  return static_cast<double>(*program->samples) / step.seconds;
}

/// What ranks wait for, by kind of collective.
static void addCollectives(Simulation &simulation) {
  const format::Program &program = simulation.program->program;
  auto all = static_cast<double>(program.ranks.size());
  for (const auto &[channel, use] : simulation.step.exchanges) {
    const format::Collective &collective = *program.channels.at(channel);
    CollectiveTimes &times = simulation.collectives[collective.kind];
    times.count += use.runs;
    times.bytes += use.sentBytes;
    if (!use.choice.empty())
      times.choices[std::string(use.choice)] += use.runs;
  }
  for (const ModelledRanks &ranks : simulation.step.ranks)
    for (size_t i = 0; i < ranks.items.size(); ++i)
      if (ranks.items[i].kind == QueueItem::Kind::Wait) {
        const ModelledPart &part = ranks.parts[ranks.items[i].part];
        simulation.collectives[program.channels.at(part.channel)->kind]
            .exposedSeconds += ranks.communicationIn(i) *
                               static_cast<double>(ranks.ranks.size()) / all;
      }
}

/// The first line of the user's program that an instruction is from.
static std::string lineOf(const format::Program &program,
                          const format::Instruction &instruction) {
  if (!instruction.origin)
    return "no line";
  const format::Origin &origin = program.origins[*instruction.origin];
  if (!origin.lines.empty())
    return origin.lines.front();
  return origin.label.empty() ? "no line" : origin.label;
}

namespace {
/// Adds up the critical path by what it consists of.
class PathShares {
public:
  explicit PathShares(const Simulation &simulation)
      : program(simulation.program->program), step(simulation.step) {}

  std::vector<PathShare> find();

private:
  void add(const format::Instruction &instruction, double seconds);

  const format::Program &program;
  const ModelledStep &step;
  std::map<std::string, double> shares;
};
} // namespace

/// A function's run is that of its instructions, in proportion to their work.
void PathShares::add(const format::Instruction &instruction, double seconds) {
  const auto *run = std::get_if<format::Run>(&instruction.operation);
  if (!run) {
    shares[lineOf(program, instruction)] += seconds;
    return;
  }
  const format::Function &function = program.functions[run->function];
  auto workIn = [&](const format::Instruction &inner) {
    std::optional<OpCost> cost = workOf(inner, function, program);
    return cost ? cost->flops + cost->bytes : 0;
  };
  double all = 0;
  for (const format::Instruction &inner : function.instructions)
    all += workIn(inner);
  if (all <= 0)
    shares[lineOf(program, instruction)] += seconds;
  else
    for (const format::Instruction &inner : function.instructions)
      if (double part = workIn(inner); part > 0)
        shares[lineOf(program, inner)] += seconds * part / all;
}

std::vector<PathShare> PathShares::find() {
  for (const PathPiece &piece : findCriticalPath(step)) {
    const ModelledRanks &ranks = step.ranks[piece.ranks];
    if (piece.item)
      add(*ranks.instructions[*piece.item], piece.seconds);
    else
      shares[program.channels.at(ranks.parts[*piece.part].channel)->kind] +=
          piece.seconds;
  }
  std::vector<PathShare> list;
  for (const auto &[what, seconds] : shares)
    list.insert(std::ranges::upper_bound(list, seconds, std::greater(),
                                         &PathShare::seconds),
                {what, seconds});
  return list;
}

/// Of a step; the seconds for which each rank computes at its kind's power.
static std::optional<double> energyOf(const Simulation &simulation) {
  double joules = 0;
  for (const ModelledRanks &ranks : simulation.step.ranks) {
    double watts = simulation.cluster.kindOf(ranks.ranks.front()).powerW;
    if (watts <= 0)
      return std::nullopt;
    joules +=
        watts * ranks.computeSeconds * static_cast<double>(ranks.ranks.size());
  }
  return joules;
}

Simulation simulate(const LoadedProgram &program, const Cluster &cluster,
                    CollectiveRule rule) {
  Simulation result;
  result.program = &program;
  result.cluster = cluster;
  result.rule = rule;
  try {
    result.step = modelStep(program.program, result.cluster, rule);
  } catch (const system::Error &error) {
    throw system::Error(program.path + ": " + error.what());
  }
  for (size_t rank = 0; rank < program.program.ranks.size(); ++rank) {
    auto number = static_cast<int64_t>(rank);
    auto known = program.peakBytes.find(number);
    result.peakBytes.push_back(known == program.peakBytes.end()
                                   ? bytesOf(program.program, number).total()
                                   : known->second);
    if (result.peakBytes.back() > result.cluster.kindOf(number).memoryBytes)
      result.outOfMemory.push_back(number);
  }
  addCollectives(result);
  result.criticalPath = PathShares(result).find();
  result.taskGraphs = describeTaskGraphs(result);
  double idle = 0;
  for (const ModelledRanks &ranks : result.step.ranks)
    idle += ranks.idleSeconds * static_cast<double>(ranks.ranks.size());
  if (result.step.seconds > 0)
    result.bubble = idle / result.step.seconds /
                    static_cast<double>(program.program.ranks.size());
  result.energy = energyOf(result);
  return result;
}

} // namespace whale::sim
