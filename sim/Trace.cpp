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

#include "Describe.h"
#include "whale/Report/TextTable.h"
#include "whale/Report/TraceNames.h"
#include "whale/Step/StepTimeline.h"

namespace whale::sim {

namespace {
enum Track { Compute, Communication };

class Writer {
public:
  explicit Writer(const Simulation &simulation)
      : program(simulation.program->program), simulation(simulation),
        names(nameRanks(program)), phases(program) {}

  std::string write();

private:
  void add(const ModelledRanks &ranks);
  void addMemory(const ModelledRanks &ranks);
  void name(int64_t process, const char *what, std::optional<Track> track,
            const std::string &name);
  void bar(int64_t process, Track track, const std::string &name,
           const Period &period, Json fields);

  const format::Program &program;
  const Simulation &simulation;
  std::vector<std::string> names;
  InstructionPhases phases;
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
                {"cat", track == Compute ? "compute" : "communication"},
                {"ts", period.begin * microseconds},
                {"dur", (period.end - period.begin) * microseconds}};
  if (!fields.empty())
    event["args"] = std::move(fields);
  events.push_back(std::move(event));
}

/// What an instruction that no operation of the step names is called.
static std::string describe(const format::Instruction &instruction) {
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
  std::string others;
  if (ranks.ranks.size() > 1)
    others = "; like it: " +
             describeRanges({ranks.ranks.begin() + 1, ranks.ranks.end()});
  name(process, "process_name", std::nullopt, names[process] + others);
  name(process, "thread_name", Compute, "compute");
  name(process, "thread_name", Communication, "communication");
  for (size_t i = 0; i < ranks.items.size(); ++i) {
    const format::Instruction *instruction = ranks.instructions[i];
    if (!instruction)
      continue;
    std::string what = describe(*instruction);
    Json fields = {{"instruction", what}};
    ShownLabel shown = {what, phases.of(*instruction)};
    if (instruction->origin) {
      const format::Origin &origin = program.origins[*instruction->origin];
      shown = showLabel(origin.label,
                        origin.lines.empty() ? "" : origin.lines.front());
      fields["label"] = origin.label;
      if (!origin.lines.empty())
        fields["lines"] = origin.lines;
    }
    if (!shown.phase.empty())
      fields["phase"] = shown.phase;
    if (instruction->flops)
      fields["flops"] = *instruction->flops;
    if (const auto *run = std::get_if<format::Run>(&instruction->operation);
        run && run->moment)
      fields["micro_batch"] = *run->moment;
    bar(process, Compute, shown.name.empty() ? what : shown.name,
        ranks.times.items[i], std::move(fields));
    if (const char *color = colorOf(shown.phase))
      events.back()["cname"] = color;
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
