//===- StepTimeline.cpp - What devices do in a modelled step --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/StepTimeline.h"

#include "whale/Report/TraceNames.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace whale {

using Json = StepTimeline::Json;

/// What a picture can show: of longer timelines neighbours become one.
static constexpr size_t mostPieces = 512;
/// Parts of a step.
static constexpr int64_t endOfStep = 100000;

std::string InstructionPhases::of(const format::Instruction &instruction) {
  if (instruction.origin)
    return showLabel(program.origins[*instruction.origin].label, "").phase;
  const auto *run = std::get_if<format::Run>(&instruction.operation);
  if (!run)
    return "";
  auto [known, isNew] = ofFunction.try_emplace(run->function);
  if (isNew)
    known->second = findOf(program.functions[run->function]);
  return known->second;
}

/// That of most of the function's work.
std::string InstructionPhases::findOf(const format::Function &function) {
  std::map<std::string, double> work;
  for (const format::Instruction &inner : function.instructions)
    if (inner.origin)
      if (std::optional<OpCost> cost = workOf(inner, function, program))
        work[of(inner)] += cost->flops + cost->bytes;
  auto most = std::ranges::max_element(
      work, {}, [](const auto &entry) { return entry.second; });
  return most == work.end() ? "" : most->first;
}

int64_t StepTimeline::scaled(double seconds) const {
  return std::llround(seconds / step.seconds * static_cast<double>(endOfStep));
}

/// Adds a piece, or makes the one before it longer where it goes on.
void StepTimeline::add(Json &list, const Period &period,
                       const std::string &name, std::optional<int64_t> moment) {
  if (period.end <= period.begin)
    return;
  auto [number, isNew] = numbers.try_emplace(name, numbers.size());
  if (isNew)
    names.push_back(name);
  Json piece = {scaled(period.begin), scaled(period.end), number->second};
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

Json StepTimeline::describeSeconds(const ModelledRanks &ranks) {
  return {{"ranks", ranks.ranks},
          {"compute_s", ranks.computeSeconds},
          {"communication_s", ranks.communicationSeconds},
          {"idle_s", ranks.idleSeconds}};
}

Json StepTimeline::describe(const ModelledRanks &ranks) {
  Json computed = Json::array(), transferred = Json::array();
  for (size_t i = 0; i < ranks.items.size(); ++i) {
    const format::Instruction *instruction = ranks.instructions[i];
    if (!instruction)
      continue;
    const auto *run = std::get_if<format::Run>(&instruction->operation);
    add(computed, ranks.times.items[i], phases.of(*instruction),
        run ? run->moment : std::nullopt);
  }
  for (size_t i = 0; i < ranks.parts.size(); ++i)
    add(transferred, ranks.times.parts[i],
        program.channels.at(ranks.parts[i].channel)->kind, std::nullopt);
  Json json = describeSeconds(ranks);
  json["computed"] = std::move(computed);
  json["transferred"] = std::move(transferred);
  return json;
}

void StepTimeline::addNames(Json &plan) {
  plan["timeline_names"] = names;
  plan["timeline_end"] = endOfStep;
}

/// The network if some group crosses it, else the first one's node.
static std::string linkOf(const format::Collective &channel,
                          const Cluster &cluster) {
  for (const format::Group &group : channel.groups)
    for (int64_t rank : group)
      if (!cluster.sameNode(rank, group.front()))
        return "network";
  return cluster.nodeOf(channel.groups.begin()->front()).name;
}

Json describeLinks(const format::Program &program, const Cluster &cluster,
                   const ModelledStep &step) {
  struct Link {
    std::string name;
    double count = 0, bytes = 0, seconds = 0;
  };
  std::map<std::string, Link> links;
  for (const auto &[number, exchange] : step.exchanges) {
    const format::Collective &channel = *program.channels.at(number);
    if (channel.groups.empty())
      continue;
    std::string name = linkOf(channel, cluster);
    Link &link = links[name];
    link.name = name;
    link.count += exchange.runs;
    link.bytes += exchange.sentBytes;
    link.seconds += exchange.secondsAlone;
  }
  std::vector<Link> order;
  for (auto &[name, link] : links)
    order.push_back(std::move(link));
  std::ranges::sort(order, [](const Link &a, const Link &b) {
    return std::pair(-a.seconds, a.name) < std::pair(-b.seconds, b.name);
  });
  Json list = Json::array();
  for (const Link &link : order)
    list.push_back({{"name", link.name},
                    {"count", std::llround(link.count)},
                    {"bytes", link.bytes},
                    {"seconds", link.seconds}});
  return list;
}

} // namespace whale
