//===- ModelStep.cpp - A profile in the model of a step ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the times of all instructions of a profile, the program, and the links
// that were emulated. Out: the seconds of a step by the model of queues
// (QueueModel.h). Writes down each rank's list of instructions as a queue of
// the model. A function's run takes the mean over its runs; a loop or a case
// takes what it took in a step as a whole. Cost: linear in the instructions of
// all ranks, with look-ups for each start and wait; what transfers take on
// links is computed once for each collective; then the model's.
//
//===----------------------------------------------------------------------===//

#include "executor/ModelStep.h"

#include "transport/LinkTimes.h"
#include "whale/Step/QueueModel.h"

#include <algorithm>
#include <span>

namespace whale::runtime {

namespace {

/// What the model needs of a collective, by participant.
struct Links {
  /// The seconds of its part, and the number of its group.
  std::map<int64_t, double> seconds;
  std::map<int64_t, size_t> groupOf;
};

class Modeler {
public:
  Modeler(const Profile &profile, const BoundProgram &program,
          const Network &network)
      : profile(profile), program(program), network(network) {}

  std::optional<double> run();

private:
  bool addRank(int64_t rank);
  void addStart(const Start &start);
  bool addSeconds(std::span<const Instruction> list, double &seconds);
  const Links &linksOf(int64_t channel);
  void compute(double seconds) {
    queue->items.push_back({QueueItem::Kind::Compute, 0, seconds});
  }
  /// Of all steps.
  const Profile::Spent &spentIn(const Instruction &instruction) const {
    return profile.ranks[rank][instruction.number];
  }

  const Profile &profile;
  const BoundProgram &program;
  const Network &network;
  std::map<const Collective *, Links> links;
  /// Transfers by channel, use of it, and group.
  std::map<std::tuple<int64_t, size_t, size_t>, size_t> transfers;

  // Of the rank at hand.
  int64_t rank = 0;
  RankQueue *queue = nullptr;
  /// How often each channel was used.
  std::map<int64_t, size_t> uses;
  /// The parts of transfers, by their numbers; those with nobody have none.
  std::map<int64_t, size_t> parts;
};

} // namespace

const Links &Modeler::linksOf(int64_t channel) {
  const Collective &collective = *program.program.channels.at(channel);
  auto [it, isNew] = links.try_emplace(&collective);
  if (!isNew)
    return it->second;
  Links &result = it->second;
  if (network)
    result.seconds = linkSeconds(collective, network);
  size_t number = 0;
  for (const Group &group : collective.groups) {
    for (int64_t member : group)
      result.groupOf[member] = number;
    ++number;
  }
  return result;
}

void Modeler::addStart(const Start &start) {
  const Links &all = linksOf(start.channel);
  size_t use = uses[start.channel]++;
  auto group = all.groupOf.find(rank);
  if (group == all.groupOf.end())
    return;
  size_t transfer =
      transfers
          .try_emplace({start.channel, use, group->second}, transfers.size())
          .first->second;
  auto seconds = all.seconds.find(rank);
  parts[start.transfer] = queue->parts.size();
  queue->items.push_back({QueueItem::Kind::Start, queue->parts.size(), 0});
  queue->parts.push_back(
      {transfer, seconds == all.seconds.end() ? 0 : seconds->second});
}

/// Adds what all instructions of a list took; false if the model has no time
/// for them.
bool Modeler::addSeconds(std::span<const Instruction> list, double &seconds) {
  return std::ranges::all_of(list, [&](const Instruction &instruction) {
    const auto &operation = instruction.operation;
    if (std::holds_alternative<Start>(operation) ||
        std::holds_alternative<Wait>(operation) ||
        std::holds_alternative<Run>(operation))
      return false;
    if (const auto *loop = std::get_if<While>(&operation))
      return addSeconds(loop->cond, seconds) && addSeconds(loop->body, seconds);
    if (const auto *choice = std::get_if<Case>(&operation))
      return std::ranges::all_of(choice->branches, [&](const auto &branch) {
        return addSeconds(branch, seconds);
      });
    seconds += spentIn(instruction).seconds;
    return true;
  });
}

bool Modeler::addRank(int64_t number) {
  rank = number;
  uses.clear();
  parts.clear();
  const BoundClass &rankClass = program.boundClassOf(rank);
  // Of another process.
  if (profile.ranks[rank].empty())
    return false;
  auto steps = static_cast<double>(profile.steps);
  std::map<const BoundFunction *, double> runs, secondsOfRun;
  for (const Instruction &instruction : rankClass.instructions)
    if (const auto *run = std::get_if<Run>(&instruction.operation))
      ++runs[run->function];
  for (auto [function, count] : runs) {
    double seconds = 0;
    if (!addSeconds(function->instructions, seconds))
      return false;
    secondsOfRun[function] = seconds / count / steps;
  }
  for (const Instruction &instruction : rankClass.instructions) {
    const auto &operation = instruction.operation;
    double seconds = 0;
    if (const auto *start = std::get_if<Start>(&operation)) {
      addStart(*start);
    } else if (const auto *wait = std::get_if<Wait>(&operation)) {
      const Profile::Spent &spent = spentIn(instruction);
      seconds = spent.seconds - spent.waitedSeconds - spent.linkSeconds;
      seconds = std::max(0.0, seconds / steps);
      if (auto part = parts.find(wait->transfer); part != parts.end())
        queue->items.push_back({QueueItem::Kind::Wait, part->second, seconds});
      else
        compute(seconds);
    } else if (const auto *run = std::get_if<Run>(&operation)) {
      compute(secondsOfRun.at(run->function));
    } else {
      if (!addSeconds({&instruction, 1}, seconds))
        return false;
      compute(seconds / steps);
    }
  }
  return true;
}

std::optional<double> Modeler::run() {
  if (profile.steps == 0)
    return std::nullopt;
  std::vector<RankQueue> queues(profile.ranks.size());
  for (size_t number = 0; number < queues.size(); ++number) {
    queue = &queues[number];
    if (!addRank(static_cast<int64_t>(number)))
      return std::nullopt;
  }
  std::optional<std::vector<double>> seconds = rankSeconds(queues);
  if (!seconds || seconds->empty())
    return std::nullopt;
  return std::ranges::max(*seconds);
}

std::optional<double> modelSeconds(const Profile &profile,
                                   const BoundProgram &program,
                                   const Network &network) {
  return Modeler(profile, program, network).run();
}

} // namespace whale::runtime
