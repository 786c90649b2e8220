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
#include <unordered_map>

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
  /// What a rank computes: how long alone, and how much memory that moves.
  struct Computation {
    double seconds = 0, bytes = 0;
    void add(const Computation &other) {
      seconds = std::min(mostTimes, seconds + other.seconds);
      bytes = std::min(mostTimes, bytes + other.bytes);
    }
    Computation times(double count) const {
      return {std::min(mostTimes, count * seconds),
              std::min(mostTimes, count * bytes)};
    }
  };
  Computation computationOf(const std::vector<format::Instruction> &list,
                            const format::Body &body);
  Computation computationOf(const format::Instruction &instruction,
                            const format::Body &body);
  void placeOnHost();
  void addStart(const format::Start &start, double runs);
  void addCopy(const format::Start &start, const format::Collective &collective,
               double runs);
  size_t hostLink(const HostMemory &host);
  double countOnNode() const;
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
  /// By number of the group.
  using Prices = std::map<size_t, Price>;
  const Prices &pricesOf(const format::Collective &collective);
  void assumePeak(const OpCost &cost);
  double tripsOf(const format::While &loop);
  void describe(ModelledRanks &ranks) const;

  const format::Program &program;
  const Cluster &cluster;
  std::unique_ptr<CostModel> model;
  AlikeRanks alike;
  ModelledStep step;
  std::unordered_map<const format::Collective *, Prices> prices;
  static constexpr size_t kNoExchange = static_cast<size_t>(-1);
  /// A use of a channel.
  struct Use {
    /// Of `step.exchanges`.
    size_t exchange;
    /// By number of the group.
    std::map<size_t, size_t> transfers;
  };
  /// By channel, in their order.
  std::unordered_map<int64_t, std::vector<Use>> known;
  size_t transferCount = 0;
  SharedLinks links;
  /// Of `links`, by the number of the node.
  std::map<size_t, size_t> hosts;
  /// Of the links between hosts and devices, by the number of the node.
  std::map<size_t, size_t> hostLinks;
  std::vector<RankQueue> queues;

  // Of the ranks at hand.
  ModelledRanks *current = nullptr;
  int64_t rank = 0;
  RankQueue queue;
  /// By function.
  std::map<int64_t, Computation> runs;
  /// How often each channel was used.
  std::unordered_map<int64_t, size_t> uses;
  /// Parts of the queue, by numbers of starts.
  std::unordered_map<int64_t, size_t> partOf;
};

} // namespace

const Modeller::Prices &
Modeller::pricesOf(const format::Collective &collective) {
  auto [it, isNew] = prices.try_emplace(&collective);
  if (!isNew)
    return it->second;
  std::map<size_t, std::vector<Exchange>> alikes;
  const auto &numbers = alike.groups.at(&collective);
  std::vector<Exchange> all = exchangesOf(collective);
  auto exchange = all.begin();
  for (const format::Group &members : collective.groups)
    alikes[numbers.at(members.front())].push_back(std::move(*exchange++));
  for (const auto &[group, own] : alikes) {
    Price &price = it->second[group];
    price.loads = model->linkLoads(own);
    price.secondsAlone =
        model->exchangeSeconds(own.front()) - price.loads.latency;
    for (const Exchange &each : own)
      price.sentBytes += sentBytes(each);
  }
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

Modeller::Computation
Modeller::computationOf(const format::Instruction &instruction,
                        const format::Body &body) {
  const auto &operation = instruction.operation;
  if (const auto *run = std::get_if<format::Run>(&operation)) {
    auto [it, isNew] = runs.try_emplace(run->function);
    if (isNew) {
      const format::Function &function = program.functions[run->function];
      it->second = computationOf(function.instructions, function);
    }
    return it->second;
  }
  if (const auto *loop = std::get_if<format::While>(&operation)) {
    Computation turn = computationOf(loop->cond, body);
    turn.add(computationOf(loop->body, body));
    return turn.times(tripsOf(*loop));
  }
  if (const auto *choice = std::get_if<format::Case>(&operation)) {
    step.assumptions.insert("of a branch the way that takes longest is taken");
    Computation longest;
    for (const auto &branch : choice->branches)
      if (Computation own = computationOf(branch, body);
          own.seconds > longest.seconds)
        longest = own;
    return longest;
  }
  std::optional<OpCost> cost = workOf(instruction, body, program);
  if (!cost)
    return {};
  assumePeak(*cost);
  return {model->opSeconds(*cost, rank), cost->bytes};
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

Modeller::Computation
Modeller::computationOf(const std::vector<format::Instruction> &list,
                        const format::Body &body) {
  Computation sum;
  for (const format::Instruction &instruction : list)
    sum.add(computationOf(instruction, body));
  return sum;
}

void Modeller::addStart(const format::Start &start, double runs) {
  size_t use = uses[start.channel]++;
  const format::Collective &collective = *program.channels.at(start.channel);
  if (collective.isHostCopy())
    return addCopy(start, collective, runs);
  auto groups = alike.groups.find(&collective);
  if (groups == alike.groups.end())
    return;
  auto group = groups->second.find(rank);
  if (group == groups->second.end())
    return;
  const Price &price = pricesOf(collective).at(group->second);
  // Uses that ranks before were in no group of are not there yet.
  std::vector<Use> &known = this->known[start.channel];
  while (known.size() <= use)
    known.push_back({kNoExchange, {}});
  Use &own = known[use];
  auto [transfer, isNew] =
      own.transfers.try_emplace(group->second, transferCount);
  if (isNew) {
    ++transferCount;
    if (own.exchange == kNoExchange) {
      own.exchange = step.exchanges.size();
      step.exchanges.push_back(
          {start.channel, {runs, 0, 0, price.loads.choice}});
    }
    double bytes = std::min(mostTimes, runs * price.sentBytes);
    ModelledExchange &exchange = step.exchanges[own.exchange].second;
    exchange.sentBytes += bytes;
    // Its groups go on side by side.
    exchange.secondsAlone = std::max(
        exchange.secondsAlone,
        std::min(mostTimes, runs * (price.loads.latency + price.secondsAlone)));
    step.sentBytes += bytes;
    SharedLinks::Cargo &cargo = links.cargos.emplace_back();
    cargo.secondsAlone = std::min(mostTimes, runs * price.secondsAlone);
    cargo.loads.reserve(price.loads.loads.size());
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

/// How many of the ranks at hand are on a node.
double Modeller::countOnNode() const {
  return static_cast<double>(
      std::ranges::count_if(current->ranks, [&](int64_t other) {
        return cluster.sameNode(other, rank);
      }));
}

/// The link that the node's devices share to copy from and to their host.
size_t Modeller::hostLink(const HostMemory &host) {
  auto [link, isNew] =
      hostLinks.try_emplace(alike.nodes[rank], links.bandwidths.size());
  if (isNew)
    links.bandwidths.push_back(host.bandwidth);
  return link->second;
}

/// Ranks that are alike copy at the same time, over one link.
void Modeller::addCopy(const format::Start &start,
                       const format::Collective &collective, double runs) {
  const format::ChannelPart &tensor = collective.parts.front();
  double bytes = static_cast<double>(
      format::elementCount(tensor.dstShapes.at(rank)) * byteSize(tensor.dtype));
  SharedLinks::Cargo &cargo = links.cargos.emplace_back();
  if (const std::optional<HostMemory> &host = cluster.nodeOf(rank).host)
    cargo.loads.push_back(
        {hostLink(*host), std::min(mostTimes, runs * bytes * countOnNode())});
  else
    step.assumptions.insert("nodes whose 'host' the cluster file leaves out "
                            "copy from and to it in no time");
  size_t part = queue.parts.size(), transfer = transferCount++;
  partOf[start.transfer] = part;
  add({QueueItem::Kind::Start, part, 0}, nullptr);
  queue.parts.push_back({transfer, 0, /*isCopy=*/true});
  current->parts.push_back({transfer, start.channel, runs});
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
  runs.clear();
  uses.clear();
  partOf.clear();
  const format::RankClass &rankClass =
      program.classes[program.ranks[rank].rankClass];
  queue.items.reserve(rankClass.instructions.size());
  for (const format::Instruction &instruction : rankClass.instructions) {
    const auto &operation = instruction.operation;
    if (const auto *start = std::get_if<format::Start>(&operation)) {
      addStart(*start, 1);
    } else if (const auto *wait = std::get_if<format::Wait>(&operation)) {
      if (auto part = partOf.find(wait->transfer); part != partOf.end())
        add({QueueItem::Kind::Wait, part->second, 0}, nullptr);
    } else {
      Computation own = computationOf(instruction, rankClass);
      if (own.seconds > 0)
        add({QueueItem::Kind::Compute, 0, own.seconds, QueueItem::kNoSignal,
             own.bytes},
            &instruction);
      if (!std::holds_alternative<format::Run>(operation))
        addInside({&instruction, 1}, 1);
    }
  }
  queue.overlapTax = cluster.kindOf(rank).overlapTax;
  placeOnHost();
  queue.items.shrink_to_fit();
  queue.parts.shrink_to_fit();
  ranks.instructions.shrink_to_fit();
  ranks.parts.shrink_to_fit();
  queues.push_back(std::move(queue));
}

/// Ranks that are no GPUs share what their node has. Of nodes that are alike
/// one stands for all.
void Modeller::placeOnHost() {
  const NodeGroup &node = cluster.nodeOf(rank);
  if (!cluster.kindOf(rank).arch.empty() ||
      (!node.cores && !node.memoryBandwidth))
    return;
  auto [host, isNew] = hosts.try_emplace(alike.nodes[rank], links.hosts.size());
  if (isNew) {
    SharedLinks::Host &limits = links.hosts.emplace_back();
    if (node.cores)
      limits.cores = static_cast<double>(*node.cores);
    if (node.memoryBandwidth)
      limits.memoryBandwidth = *node.memoryBandwidth;
  }
  queue.host = host->second;
  queue.ranksOnHost = countOnNode();
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
    step.ranks[i].items = std::move(queues[i].items);
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
