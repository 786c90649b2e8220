//===- Trace.cpp - A simulated step as a trace ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A process for ranks that do the same, in it a track for each queue, as
// whale-run --trace has it. Bars of computing are named by their origin.
//
//===----------------------------------------------------------------------===//

#include "whale/Report/TextTable.h"
#include "whale/Sim/Simulate.h"
#include "whale/System/Json.h"

namespace whale::sim {

using Json = nlohmann::ordered_json;

namespace {
enum Track { Compute, Communication };

class Writer {
public:
  explicit Writer(const Simulation &simulation)
      : program(simulation.program->program), simulation(simulation) {}

  std::string write();

private:
  void add(const ModelledRanks &ranks);
  void addMemory(const ModelledRanks &ranks);
  void name(int64_t process, const char *what, std::optional<Track> track,
            const std::string &name);
  void bar(int64_t process, Track track, const std::string &name,
           const Period &period, Json fields);
  std::string nameOf(const format::Instruction &instruction) const;

  const format::Program &program;
  const Simulation &simulation;
  Json events = Json::array();
};
} // namespace

void Writer::name(int64_t process, const char *what, std::optional<Track> track,
                  const std::string &name) {
  Json event = {{"ph", "M"}, {"pid", process}, {"name", what}};
  if (track)
    event["tid"] = static_cast<int>(*track);
  event["args"] = {{"name", name}};
  events.push_back(std::move(event));
}

void Writer::bar(int64_t process, Track track, const std::string &name,
                 const Period &period, Json fields) {
  constexpr double microseconds = 1e6;
  Json event = {{"ph", "X"},
                {"pid", process},
                {"tid", static_cast<int>(track)},
                {"name", name},
                {"ts", period.begin * microseconds},
                {"dur", (period.end - period.begin) * microseconds}};
  if (!fields.empty())
    event["args"] = std::move(fields);
  events.push_back(std::move(event));
}

std::string Writer::nameOf(const format::Instruction &instruction) const {
  if (instruction.origin)
    if (const format::Origin &origin = program.origins[*instruction.origin];
        !origin.label.empty())
      return origin.label;
  const auto &operation = instruction.operation;
  if (const auto *kernel = std::get_if<format::Kernel>(&operation))
    return kernel->symbol;
  if (const auto *call = std::get_if<format::Call>(&operation))
    return call->function;
  if (const auto *run = std::get_if<format::Run>(&operation))
    return "segment " + std::to_string(run->function);
  if (std::holds_alternative<format::Matmul>(operation))
    return "matmul";
  if (std::holds_alternative<format::Convolution>(operation))
    return "convolution";
  if (std::holds_alternative<format::Copy>(operation))
    return "copy";
  return std::holds_alternative<format::While>(operation) ? "loop" : "branch";
}

void Writer::add(const ModelledRanks &ranks) {
  int64_t process = ranks.ranks.front();
  name(process, "process_name", std::nullopt,
       describeDevices(ranks.ranks) + " (" +
           simulation.cluster.kindOf(process).name + ")");
  name(process, "thread_name", Compute, "compute");
  name(process, "thread_name", Communication, "communication");
  for (size_t i = 0; i < ranks.items.size(); ++i) {
    const format::Instruction *instruction = ranks.instructions[i];
    if (!instruction)
      continue;
    Json fields = Json::object();
    if (instruction->flops)
      fields["flops"] = *instruction->flops;
    if (const auto *run = std::get_if<format::Run>(&instruction->operation);
        run && run->moment)
      fields["micro-batch"] = *run->moment;
    if (instruction->origin)
      if (const auto &lines = program.origins[*instruction->origin].lines;
          !lines.empty())
        fields["lines"] = lines;
    bar(process, Compute, nameOf(*instruction), ranks.times.items[i],
        std::move(fields));
  }
  for (size_t i = 0; i < ranks.parts.size(); ++i) {
    const ModelledPart &part = ranks.parts[i];
    bar(process, Communication, program.channels.at(part.channel)->kind,
        ranks.times.parts[i], {{"channel", part.channel}, {"runs", part.runs}});
  }
}

void Writer::addMemory(const ModelledRanks &ranks) {
  constexpr double microseconds = 1e6;
  for (const MemoryPoint &point : memoryOverTime(simulation, ranks))
    events.push_back({{"name", "memory"},
                      {"ph", "C"},
                      {"pid", ranks.ranks.front()},
                      {"ts", point.seconds * microseconds},
                      {"args", {{"bytes", point.bytes}}}});
}

std::string Writer::write() {
  for (const ModelledRanks &ranks : simulation.step.ranks) {
    add(ranks);
    addMemory(ranks);
  }
  return system::printJson(Json{{"traceEvents", std::move(events)}}) + "\n";
}

std::string toTrace(const Simulation &simulation) {
  return Writer(simulation).write();
}

} // namespace whale::sim
