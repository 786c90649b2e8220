//===- ProgramModel.cpp - A program in the model of a step ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/ProgramModel.h"

#include "AlikeRanks.h"
#include "whale/System/Error.h"

#include <algorithm>
#include <tuple>

namespace whale {
namespace {

/// More than any step takes; sums of such numbers are finite.
constexpr double mostTimes = 1e60;

class Modeller {
public:
  Modeller(const format::Program &program, const Cluster &cluster,
           CollectiveRule rule, bool joinsAlike)
      : program(program), cluster(cluster),
        model(createRooflineModel(cluster, rule)),
        alike(findAlikeRanks(program, cluster, *model, joinsAlike)) {}

  ModelledStep run();

private:
  void read(ModelledRanks &ranks);
  double secondsOf(const std::vector<format::Instruction> &list,
                   const format::Body &body);
  double secondsOf(const format::Instruction &instruction,
                   const format::Body &body);
  void addStart(const format::Start &start, double runs);
  void addInside(std::span<const format::Instruction> list, double runs);
  void add(QueueItem item, const format::Instruction *instruction) {
    queue.items.push_back(item);
    current->instructions.push_back(instruction);
  }
  /// Of one exchange in the groups of a channel that are alike.
  struct Price {
    LinkLoads loads;
    /// Of the groups, each alone, without the latency.
    double secondsAlone = 0;
    double sentBytes = 0;
  };
  const Price &priceOf(const format::Collective &collective, size_t group);
  void assumePeak(const OpCost &cost);
  double tripsOf(const format::While &loop);
  void describe(ModelledRanks &ranks) const;

  const format::Program &program;
  const Cluster &cluster;
  std::unique_ptr<CostModel> model;
  AlikeRanks alike;
  ModelledStep step;
  std::map<std::pair<const format::Collective *, size_t>, Price> prices;
  /// By channel, use of it, and number of the group.
  std::map<std::tuple<int64_t, size_t, size_t>, size_t> transfers;
  /// Of `step.exchanges`, by channel and use.
  std::map<std::pair<int64_t, size_t>, size_t> numbers;
  SharedLinks links;
  std::vector<RankQueue> queues;

  // Of the ranks at hand.
  ModelledRanks *current = nullptr;
  int64_t rank = 0;
  RankQueue queue;
  std::map<int64_t, double> secondsOfRun;
  /// How often each channel was used.
  std::map<int64_t, size_t> uses;
  /// Parts of the queue, by numbers of starts.
  std::map<int64_t, size_t> partOf;
};

} // namespace

const Modeller::Price &Modeller::priceOf(const format::Collective &collective,
                                         size_t group) {
  auto [it, isNew] = prices.try_emplace({&collective, group});
  if (!isNew)
    return it->second;
  std::vector<Exchange> own;
  const std::map<int64_t, size_t> &numbers = alike.groups.at(&collective);
  std::vector<Exchange> all = exchangesOf(collective);
  auto exchange = all.begin();
  for (const format::Group &members : collective.groups) {
    if (numbers.at(members.front()) == group)
      own.push_back(std::move(*exchange));
    ++exchange;
  }
  it->second.loads = model->linkLoads(own);
  it->second.secondsAlone =
      model->exchangeSeconds(own.front()) - it->second.loads.latency;
  for (const Exchange &each : own)
    it->second.sentBytes += sentBytes(each);
  return it->second;
}

double Modeller::tripsOf(const format::While &loop) {
  if (loop.trips)
    return static_cast<double>(*loop.trips);
  step.assumptions.insert(
      "loops whose length depends on data turn once; --profile of a run says "
      "how often they do");
  return 1;
}

double Modeller::secondsOf(const format::Instruction &instruction,
                           const format::Body &body) {
  const auto &operation = instruction.operation;
  if (const auto *run = std::get_if<format::Run>(&operation)) {
    auto [it, isNew] = secondsOfRun.try_emplace(run->function);
    if (isNew) {
      const format::Function &function = program.functions[run->function];
      it->second = secondsOf(function.instructions, function);
    }
    return it->second;
  }
  if (const auto *loop = std::get_if<format::While>(&operation))
    return std::min(mostTimes, tripsOf(*loop) * (secondsOf(loop->cond, body) +
                                                 secondsOf(loop->body, body)));
  if (const auto *choice = std::get_if<format::Case>(&operation)) {
    step.assumptions.insert("of a branch the way that takes longest is taken");
    double most = 0;
    for (const auto &branch : choice->branches)
      most = std::max(most, secondsOf(branch, body));
    return most;
  }
  std::optional<OpCost> cost = workOf(instruction, body, program);
  if (!cost)
    return 0;
  assumePeak(*cost);
  return model->opSeconds(*cost, rank);
}

/// Products of a type whose peak the rank's kind doesn't have take that of f32.
void Modeller::assumePeak(const OpCost &cost) {
  bool isProduct = cost.opClass == OpClass::Matmul ||
                   cost.opClass == OpClass::Convolution ||
                   cost.opClass == OpClass::Attention;
  const DeviceKind &kind = cluster.kindOf(rank);
  if (isProduct && cost.dtype != "tf32" &&
      !kind.flops.contains(std::string(cost.dtype)))
    step.assumptions.insert(kind.name + " has no peak of its own for " +
                            std::string(cost.dtype) + ": that of f32 is taken");
}

double Modeller::secondsOf(const std::vector<format::Instruction> &list,
                           const format::Body &body) {
  double sum = 0;
  for (const format::Instruction &instruction : list)
    sum += secondsOf(instruction, body);
  return std::min(mostTimes, sum);
}

void Modeller::addStart(const format::Start &start, double runs) {
  size_t use = uses[start.channel]++;
  const format::Collective &collective = *program.channels.at(start.channel);
  auto groups = alike.groups.find(&collective);
  if (groups == alike.groups.end())
    return;
  auto group = groups->second.find(rank);
  if (group == groups->second.end())
    return;
  const Price &price = priceOf(collective, group->second);
  auto [transfer, isNew] = transfers.try_emplace(
      {start.channel, use, group->second}, transfers.size());
  if (isNew) {
    auto [number, isFirst] =
        numbers.try_emplace({start.channel, use}, step.exchanges.size());
    if (isFirst)
      step.exchanges.push_back(
          {start.channel, {runs, 0, 0, price.loads.choice}});
    double bytes = std::min(mostTimes, runs * price.sentBytes);
    ModelledExchange &exchange = step.exchanges[number->second].second;
    exchange.sentBytes += bytes;
    // Its groups go on side by side.
    exchange.secondsAlone = std::max(
        exchange.secondsAlone,
        std::min(mostTimes, runs * (price.loads.latency + price.secondsAlone)));
    step.sentBytes += bytes;
    SharedLinks::Cargo &cargo = links.cargos.emplace_back();
    cargo.secondsAlone = std::min(mostTimes, runs * price.secondsAlone);
    for (const LinkLoads::Load &load : price.loads.loads)
      cargo.loads.push_back(
          {load.link, std::min(mostTimes, runs * load.bytes)});
  }
  size_t part = queue.parts.size();
  partOf[start.transfer] = part;
  add({QueueItem::Kind::Start, part, 0}, nullptr);
  queue.parts.push_back(
      {transfer->second, std::min(mostTimes, runs * price.loads.latency)});
  current->parts.push_back({transfer->second, start.channel, runs});
}

/// What a loop or a branch exchanges.
void Modeller::addInside(std::span<const format::Instruction> list,
                         double runs) {
  for (const format::Instruction &instruction : list) {
    const auto &operation = instruction.operation;
    if (const auto *start = std::get_if<format::Start>(&operation)) {
      size_t before = queue.parts.size();
      addStart(*start, runs);
      if (queue.parts.size() > before)
        add({QueueItem::Kind::Wait, before, 0}, nullptr);
    } else if (const auto *loop = std::get_if<format::While>(&operation)) {
      double inner = std::min(mostTimes, runs * tripsOf(*loop));
      addInside(loop->cond, inner);
      addInside(loop->body, inner);
    } else if (const auto *choice = std::get_if<format::Case>(&operation)) {
      for (const auto &branch : choice->branches)
        addInside(branch, runs);
    }
  }
}

void Modeller::read(ModelledRanks &ranks) {
  current = &ranks;
  rank = ranks.ranks.front();
  queue = {};
  secondsOfRun.clear();
  uses.clear();
  partOf.clear();
  const format::RankClass &rankClass =
      program.classes[program.ranks[rank].rankClass];
  for (const format::Instruction &instruction : rankClass.instructions) {
    const auto &operation = instruction.operation;
    if (const auto *start = std::get_if<format::Start>(&operation)) {
      addStart(*start, 1);
    } else if (const auto *wait = std::get_if<format::Wait>(&operation)) {
      if (auto part = partOf.find(wait->transfer); part != partOf.end())
        add({QueueItem::Kind::Wait, part->second, 0}, nullptr);
    } else {
      if (double seconds = secondsOf(instruction, rankClass); seconds > 0)
        add({QueueItem::Kind::Compute, 0, seconds}, &instruction);
      if (!std::holds_alternative<format::Run>(operation))
        addInside({&instruction, 1}, 1);
    }
  }
  queue.overlapTax = cluster.kindOf(rank).overlapTax;
  ranks.items = queue.items;
  queues.push_back(std::move(queue));
}

double ModelledRanks::communicationIn(size_t item) const {
  const Period &wait = times.items[item];
  const Period &part = times.parts[items[item].part];
  return wait.end - std::clamp(part.begin, wait.begin, wait.end);
}

void Modeller::describe(ModelledRanks &ranks) const {
  for (size_t i = 0; i < ranks.items.size(); ++i) {
    const QueueItem &item = ranks.items[i];
    if (item.kind == QueueItem::Kind::Compute)
      ranks.computeSeconds +=
          ranks.times.items[i].end - ranks.times.items[i].begin;
    else if (item.kind == QueueItem::Kind::Wait)
      ranks.communicationSeconds += ranks.communicationIn(i);
  }
  ranks.idleSeconds = std::max(0.0, step.seconds - ranks.computeSeconds -
                                        ranks.communicationSeconds);
}

ModelledStep Modeller::run() {
  for (int64_t first : alike.first)
    step.ranks.emplace_back().ranks.push_back(first);
  for (size_t other = 0; other < alike.numbers.size(); ++other)
    if (auto &ranks = step.ranks[alike.numbers[other]].ranks;
        ranks.front() != static_cast<int64_t>(other))
      ranks.push_back(static_cast<int64_t>(other));
  links.bandwidths = model->linkBandwidths();
  for (ModelledRanks &ranks : step.ranks)
    read(ranks);
  std::optional<std::vector<RankTimes>> times = timeQueues(queues, links);
  if (!times)
    throw system::Error("ranks wait for one another in a circle");
  for (size_t i = 0; i < step.ranks.size(); ++i) {
    step.ranks[i].times = std::move((*times)[i]);
    step.seconds = std::max(step.seconds, step.ranks[i].times.seconds);
  }
  for (ModelledRanks &ranks : step.ranks)
    describe(ranks);
  return std::move(step);
}

ModelledStep modelStep(const format::Program &program, const Cluster &cluster,
                       CollectiveRule rule, bool joinsAlike) {
  if (cluster.devices.size() != program.ranks.size())
    throw system::Error("the cluster has " +
                        std::to_string(cluster.devices.size()) +
                        " devices, but the program " +
                        std::to_string(program.ranks.size()) + " ranks");
  return Modeller(program, cluster, rule, joinsAlike).run();
}

} // namespace whale
