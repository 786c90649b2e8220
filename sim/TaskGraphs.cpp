//===- TaskGraphs.cpp - What a step does for each TaskGraph ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions and starts of transfers name their TaskGraphs; those in a
// function, a loop or a branch that name none belong to that of what runs them.
// Cost: linear in the instructions of each kind of rank, and of each function
// once for each TaskGraph that runs it.
//
//===----------------------------------------------------------------------===//

#include "whale/Sim/Simulate.h"

#include <algorithm>

namespace whale::sim {

namespace {
/// FLOPs and bytes, and the seconds that they take by themselves.
struct Work {
  double flops = 0, bytes = 0, seconds = 0;

  void add(const Work &other, double times) {
    flops += times * other.flops;
    bytes += times * other.bytes;
    seconds += times * other.seconds;
  }
};

/// By TaskGraph.
using Works = std::map<int64_t, Work>;

/// What ranks that do the same do for each TaskGraph.
class RankWorks {
public:
  /// Of channels it notes in `graphOf` whose transfers they carry.
  RankWorks(const format::Program &program, const CostModel &model,
            int64_t rank, std::map<int64_t, int64_t> &graphOf)
      : program(program), model(model), rank(rank), graphOf(graphOf) {}

  Works of(const std::vector<format::Instruction> &list,
           const format::Body &body, int64_t graph);

private:
  Works of(const format::Instruction &instruction, const format::Body &body,
           int64_t graph);
  const Works &ofFunction(int64_t number, int64_t graph);

  const format::Program &program;
  const CostModel &model;
  int64_t rank;
  std::map<int64_t, int64_t> &graphOf;
  /// By function and the TaskGraph that runs it.
  std::map<std::pair<int64_t, int64_t>, Works> functions;
};
} // namespace

/// Of instructions that belong to none.
static constexpr int64_t noGraph = -1;

static void add(Works &sum, const Works &other, double times = 1) {
  for (const auto &[graph, work] : other)
    sum[graph].add(work, times);
}

static double secondsOf(const Works &works) {
  double seconds = 0;
  for (const auto &[graph, work] : works)
    seconds += work.seconds;
  return seconds;
}

const Works &RankWorks::ofFunction(int64_t number, int64_t graph) {
  auto known = functions.find({number, graph});
  if (known != functions.end())
    return known->second;
  const format::Function &function = program.functions[number];
  return functions[{number, graph}] =
             of(function.instructions, function, graph);
}

Works RankWorks::of(const format::Instruction &instruction,
                    const format::Body &body, int64_t graph) {
  graph = instruction.taskGraph.value_or(graph);
  const auto &operation = instruction.operation;
  if (const auto *start = std::get_if<format::Start>(&operation)) {
    graphOf.try_emplace(start->channel, graph);
    return {};
  }
  if (const auto *run = std::get_if<format::Run>(&operation))
    return ofFunction(run->function, graph);
  if (const auto *loop = std::get_if<format::While>(&operation)) {
    Works works;
    auto trips = static_cast<double>(loop->trips.value_or(1));
    for (const auto *list : {&loop->cond, &loop->body})
      add(works, of(*list, body, graph), trips);
    return works;
  }
  if (const auto *choice = std::get_if<format::Case>(&operation)) {
    Works longest;
    for (const auto &branch : choice->branches)
      if (Works own = of(branch, body, graph);
          secondsOf(own) > secondsOf(longest))
        longest = std::move(own);
    return longest;
  }
  std::optional<OpCost> cost = workOf(instruction, body, program);
  if (!cost)
    return {};
  return {{graph, {cost->flops, cost->bytes, model.opSeconds(*cost, rank)}}};
}

Works RankWorks::of(const std::vector<format::Instruction> &list,
                    const format::Body &body, int64_t graph) {
  Works works;
  for (const format::Instruction &instruction : list)
    add(works, of(instruction, body, graph));
  return works;
}

/// Divides the work by what each rank does of it, by FLOPs if there are any.
static void addShares(TaskGraphUse &use) {
  for (RankShare &each : use.shares) {
    double all = use.flops > 0 ? use.flops : use.bytes;
    double own = use.flops > 0 ? each.flops : each.bytes;
    each.share = all > 0 ? own / all : 0;
  }
}

std::vector<TaskGraphUse> describeTaskGraphs(const Simulation &simulation) {
  const format::Program &program = simulation.program->program;
  std::vector<TaskGraphUse> uses(program.taskGraphs.size());
  for (size_t i = 0; i < uses.size(); ++i)
    uses[i].name = program.taskGraphs[i];
  auto model = createRooflineModel(simulation.cluster, simulation.rule);
  std::map<int64_t, int64_t> graphOf;
  for (const ModelledRanks &ranks : simulation.step.ranks) {
    int64_t first = ranks.ranks.front();
    const format::RankClass &rankClass =
        program.classes[program.ranks[first].rankClass];
    Works works = RankWorks(program, *model, first, graphOf)
                      .of(rankClass.instructions, rankClass, noGraph);
    for (const auto &[graph, work] : works) {
      if (graph == noGraph)
        continue;
      TaskGraphUse &use = uses[graph];
      auto count = static_cast<double>(ranks.ranks.size());
      use.flops += count * work.flops;
      use.bytes += count * work.bytes;
      use.computeSeconds = std::max(use.computeSeconds, work.seconds);
      use.shares.push_back({ranks.ranks, work.flops, work.bytes, 0});
    }
  }
  auto useOf = [&](int64_t channel) -> TaskGraphUse * {
    auto graph = graphOf.find(channel);
    return graph == graphOf.end() || graph->second == noGraph
               ? nullptr
               : &uses[graph->second];
  };
  for (const auto &[channel, exchange] : simulation.step.exchanges)
    if (TaskGraphUse *use = useOf(channel))
      use->sentBytes += exchange.sentBytes;
  for (const ModelledRanks &ranks : simulation.step.ranks) {
    std::map<TaskGraphUse *, double> exposed;
    for (size_t i = 0; i < ranks.items.size(); ++i)
      if (ranks.items[i].kind == QueueItem::Kind::Wait)
        exposed[useOf(ranks.parts[ranks.items[i].part].channel)] +=
            ranks.communicationIn(i);
    for (const auto &[use, seconds] : exposed)
      if (use)
        use->exposedSeconds = std::max(use->exposedSeconds, seconds);
  }
  for (TaskGraphUse &use : uses)
    addShares(use);
  std::erase_if(uses, [](const TaskGraphUse &use) {
    return use.shares.empty() && use.sentBytes == 0;
  });
  return uses;
}

} // namespace whale::sim
