//===- Report.cpp - What an executor says of its steps ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Progress while a step runs, for the job that watches it; afterwards what was
// computed and moved, and how long it took, for statistics, traces, profiles.
//
// Cost: progress, asked for at each heartbeat, searches the instructions of a
// waiting rank for the label of its transfer, and walks all cells of the
// collective to find its peers. A trace finds the peers of each transfer of
// each rank in this way, and keeps texts for each instruction; times are
// fetched from the device for 4096 instructions at once. A profile copies the
// times of all ranks after each step. Memory is counted by sorting a rank's
// arguments and results.
//
//===----------------------------------------------------------------------===//

#include "executor/DescribeProfile.h"
#include "executor/Executor.h"
#include "executor/ModelStep.h"
#include "transport/Peers.h"
#include "whale/ProgramFormat/LiveBytes.h"
#include "whale/Report/TraceNames.h"

#include <algorithm>
#include <set>

namespace whale::runtime {

/// "ranks 1, 3 and others".
static std::string listOf(const std::vector<int64_t> &ranks) {
  constexpr size_t most = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(most, ranks.size()); ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text + (ranks.size() > most ? " and others" : "");
}

/// The label of the first wait for a channel, also inside loops and cases.
static const std::string *
findLabel(const std::vector<Instruction> &instructions, int64_t channel) {
  auto among =
      [&](std::initializer_list<const std::vector<Instruction> *> all) {
        const std::string *found = nullptr;
        for (const std::vector<Instruction> *list : all)
          found = found ? found : findLabel(*list, channel);
        return found;
      };
  for (const Instruction &instruction : instructions) {
    const std::string *found = nullptr;
    const auto &operation = instruction.operation;
    if (const auto *wait = std::get_if<Wait>(&operation))
      found = wait->channel == channel ? &instruction.label : nullptr;
    else if (const auto *loop = std::get_if<While>(&operation))
      found = among({&loop->cond, &loop->body});
    else if (const auto *choice = std::get_if<Case>(&operation))
      for (const std::vector<Instruction> &branch : choice->branches)
        found = found ? found : among({&branch});
    if (found)
      return found;
  }
  return nullptr;
}

std::string Executor::labelOf(int64_t rank, int64_t channel) const {
  const std::string *label =
      findLabel(program.boundClassOf(rank).instructions, channel);
  return label ? *label : program.program.channels.at(channel)->kind;
}

void Executor::report(Progress &result) const {
  result.isInStep = true;
  result.running = {program.title};
  const RankMap &map = shared->map();
  for (int64_t number : map.local) {
    const Instruction *current = shared->rank(number).current;
    if (!current)
      continue;
    std::string where = "rank " + std::to_string(number);
    std::optional<int64_t> channel = connections.awaited(number, *current);
    if (channel) {
      std::vector<int64_t> peers =
          peersOf(*program.program.channels.at(*channel), number);
      result.waiting = where + " waits in '" + labelOf(number, *channel) + "'" +
                       (peers.empty() ? "" : " for " + listOf(peers));
      std::set<int64_t> processes;
      for (int64_t peer : peers)
        if (!map.isLocal(peer))
          processes.insert(map.processOf[peer]);
      result.awaited.assign(processes.begin(), processes.end());
    } else {
      result.busy = where + " is in '" + current->label + "'";
    }
  }
}

std::string Executor::describe(const Profile &profile) {
  shared->threads().wait({});
  // All devices are equal, and measuring one takes a while.
  return describeProfile(
      profile, program, modelSeconds(profile, program, shared->options.network),
      [&](const Instruction &instruction) {
        return leastSeconds(shared->map().local.front(), instruction);
      },
      [&](const Instruction &instruction) {
        return states[shared->map().local.front()].device->algorithmOf(
            instruction);
      });
}

void Executor::addTo(Profile &profile, double seconds) {
  Profile step = {1, seconds, {}};
  step.ranks.reserve(states.size());
  for (Rank &rank : states)
    step.ranks.push_back(std::move(rank.spent));
  if (profile.steps == 0)
    profile = std::move(step);
  else
    profile.add(step);
}

int64_t Executor::residentBytes(int64_t rank, const Step &step,
                                bool inHost) const {
  std::vector<std::pair<const void *, int64_t>> memory;
  memory.reserve(step.arguments.size() + step.results.size());
  auto add = [&](const Bindings &bindings,
                 const std::vector<Parameter> &parameters) {
    for (size_t i = 0; i < bindings.size(); ++i)
      if (const auto &shard = bindings[i][rank];
          shard && parameters[i].isInHost == inHost)
        memory.emplace_back(shard->data.get(), shard->bytes);
  };
  add(step.arguments, program.program.arguments);
  add(step.results, program.program.results);
  std::ranges::sort(memory);
  int64_t bytes = 0;
  for (size_t i = 0; i < memory.size(); ++i)
    if (i == 0 || memory[i].first != memory[i - 1].first)
      bytes += memory[i].second;
  return bytes;
}

double Executor::leastSeconds(int64_t rank, const Instruction &instruction) {
  if (instruction.flops <= 0 && instruction.bytes <= 0)
    return 0;
  return states[rank].device->leastSeconds(instruction.flops, instruction.bytes,
                                           instruction.product);
}

void Executor::prepareTrace() {
  const format::Program &given = program.program;
  rankNames = nameRanks(given);
  arenaBytes.resize(given.classes.size());
  for (int64_t rank : shared->map().local) {
    int64_t number = given.ranks[rank].rankClass;
    const std::vector<Instruction> &list =
        program.boundClassOf(rank).instructions;
    std::vector<int64_t> bytes =
        format::findLiveBytesOfEach(given, given.classes[number]);
    if (arenaBytes[number].empty() && bytes.size() == list.size())
      for (size_t i = 0; i < list.size(); ++i)
        arenaBytes[number][list[i].number] = bytes[i];
  }
}

void Executor::measurePeaks() {
  runRanks([&](int64_t rank) {
    try {
      attach(rank);
      forEachExecuted(program.boundClassOf(rank),
                      [&](const Instruction &instruction) {
                        leastSeconds(rank, instruction);
                      });
    } catch (const std::exception &) {
      // It fails in the step, too, whose errors are reported.
    }
  });
}

std::string Executor::scopeOf(int64_t rank) const {
  const Instruction *run = states[rank].run;
  return run && run->label != run->detail ? run->label : "";
}

Trace::Cost Executor::costOf(int64_t rank, const Instruction &instruction) {
  Trace::Cost cost;
  cost.detail = instruction.detail;
  cost.algorithm = states[rank].device->algorithmOf(instruction);
  cost.flops = instruction.flops;
  cost.bytes = instruction.bytes;
  cost.leastSeconds = leastSeconds(rank, instruction);
  cost.lines = *instruction.lines;
  if (const Instruction *run = states[rank].run)
    cost.moment = std::get<Run>(run->operation).given->moment;
  cost.scope = scopeOf(rank);
  if (const auto *wait = std::get_if<Wait>(&instruction.operation)) {
    const format::Collective &collective =
        *program.program.channels.at(wait->channel);
    const Transfer &transfer = states[rank].transfers[wait->transfer];
    cost.exchange = {collective.kind,
                     transfer.traffic.sent,
                     transfer.traffic.received,
                     transfer.traffic.waitedSeconds,
                     transfer.begin,
                     transfer.startSeconds,
                     transfer.totalSeconds,
                     peersOf(collective, rank),
                     wait->channel,
                     receiversOf(collective, rank),
                     sendersOf(collective, rank)};
  }
  const Instruction *run = states[rank].run;
  const auto &held = arenaBytes[program.program.ranks[rank].rankClass];
  if (auto bytes = held.find((run ? *run : instruction).number);
      bytes != held.end())
    cost.arenaBytes = bytes->second;
  return cost;
}

/// Counts a run of an instruction, and says whether to time it: of what loops
/// run often some runs are enough, as the clock takes as long as a small
/// kernel.
bool Executor::countRun(int64_t rank, const Instruction &instruction) {
  constexpr int64_t few = 32, every = 16;
  Rank &self = states[rank];
  if (self.spent.empty())
    return true;
  int64_t before = self.spent[instruction.number].count++;
  bool isTimed = before < few || before % every == 0 || self.trace ||
                 std::holds_alternative<Wait>(instruction.operation);
  self.timedRuns[instruction.number] += isTimed;
  return isTimed;
}

/// Takes the runs that were not timed for such as were.
void Executor::scaleTimes(int64_t rank) {
  Rank &self = states[rank];
  for (size_t i = 0; i < self.spent.size(); ++i)
    if (self.timedRuns[i] < self.spent[i].count)
      self.spent[i].seconds *= static_cast<double>(self.spent[i].count) /
                               static_cast<double>(self.timedRuns[i]);
}

void Executor::note(int64_t rank, const Instruction &instruction, size_t begin,
                    size_t end) {
  Rank &self = states[rank];
  if (!self.spent.empty()) {
    Profile::Spent &spent = self.spent[instruction.number];
    if (const auto *wait = std::get_if<Wait>(&instruction.operation)) {
      const Transfer &transfer = self.transfers[wait->transfer];
      spent.seconds += transfer.startSeconds;
      spent.waitedSeconds += transfer.traffic.waitedSeconds;
      spent.linkSeconds += transfer.traffic.linkSeconds;
    }
  }
  self.timed.push_back({&instruction, begin, end});
  if (self.trace)
    self.costs.push_back(costOf(rank, instruction));
  constexpr size_t mostNoted = 4096;
  if (self.timed.size() == mostNoted)
    recordTimes(rank);
}

void Executor::recordTimes(int64_t rank) {
  Rank &self = states[rank];
  if (self.timed.empty())
    return;
  std::span<const Device::Clock::time_point> times =
      self.device->timesOfMarks();
  for (size_t i = 0; i < self.timed.size(); ++i) {
    const Instruction &instruction = *self.timed[i].instruction;
    auto begin = times[self.timed[i].begin], end = times[self.timed[i].end];
    if (!self.spent.empty())
      self.spent[instruction.number].seconds +=
          std::chrono::duration<double>(end - begin).count();
    if (self.trace)
      self.trace->add(rank, instruction.label, std::move(self.costs[i]),
                      std::holds_alternative<Wait>(instruction.operation)
                          ? Queue::Communication
                          : Queue::Compute,
                      begin, end);
  }
  self.timed.clear();
  self.costs.clear();
  self.device->clearMarks();
}

} // namespace whale::runtime
