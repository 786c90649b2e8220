//===- ProgramMoves.cpp - Arrays in the layouts of a program --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: arrays in any layout, of this program, another one or the host. Out: the
// same in the layouts of arguments, or whole in the first process or all.
//
// Cost: gathering and a change of layout between processes take a step's turn
// in the queue and move the elements that a process lacks, all arrays at once;
// whether one lacks any compares the boxes of all ranks pairwise.
//
//===----------------------------------------------------------------------===//

#include "ProgramState.h"
#include "whale/System/Checksum.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace whale::runtime {

/// Whether each process has all of an array, as far as its layout says: what
/// one process finds, all do.
static bool isInEachProcess(const Array &array, size_t processes) {
  const std::shared_ptr<const RankMap> &ranks = array.ranks();
  if (!ranks)
    return true;
  const std::vector<std::optional<Box>> &boxes = array.layout().boxes;
  std::vector<bool> isKnown(boxes.size());
  for (size_t rank = 0; rank < boxes.size(); ++rank) {
    if (!boxes[rank] || isKnown[rank])
      continue;
    // Whether each process has this box.
    std::vector<bool> isThere(processes);
    for (size_t other = rank; other < boxes.size(); ++other)
      if (boxes[other] == boxes[rank])
        isKnown[other] = isThere[ranks->processOf[other]] = true;
    if (!std::ranges::all_of(isThere, std::identity()))
      return false;
  }
  return true;
}

std::optional<Ranks::ExchangeWay> Program::Engine::wayOf(const Array &array,
                                                         Wanted wanted) const {
  if (wanted == Wanted::ByRanks && ranks().exchangesByGpus(array))
    return Ranks::ExchangeWay::Gpus;
  const Job *job = ranks().job();
  if (job && !isInEachProcess(array, static_cast<size_t>(job->processes())))
    return Ranks::ExchangeWay::Hosts;
  return std::nullopt;
}

namespace {
/// What goes one way.
struct Going {
  std::vector<size_t> numbers;
  std::vector<ArrayMove> moves;
  std::vector<Ranks::Shards> sources;
};
} // namespace

std::vector<Array> Program::Engine::relayout(
    std::vector<Array> arrays,
    std::span<const std::shared_ptr<const Layout>> layouts, Wanted wanted) {
  std::map<Ranks::ExchangeWay, Going> all;
  for (size_t i = 0; i < arrays.size(); ++i) {
    Array &array = arrays[i];
    if (array.isLaidOutAs(layouts[i], arrayRanks()))
      continue;
    std::optional<Ranks::ExchangeWay> way = wayOf(array, wanted);
    if (!way) {
      array = array.relayout(layouts[i], arrayRanks());
      continue;
    }
    Going &going = all[*way];
    going.numbers.push_back(i);
    going.moves.push_back({byteSize(array.dtype()), array.type().layout,
                           array.ranks(), layouts[i]});
    going.sources.push_back(array.heldShards());
  }
  for (auto &[way, going] : all) {
    std::vector<std::pair<DType, Shape>> types;
    for (size_t i : going.numbers) {
      types.emplace_back(arrays[i].dtype(), arrays[i].shape());
      arrays[i] = Array();
    }
    std::vector<Ranks::Shards> results =
        ranks().exchange(going.moves, std::move(going.sources), way);
    for (size_t i = 0; i < going.numbers.size(); ++i)
      arrays[going.numbers[i]] =
          Array::fromShards(types[i].first, types[i].second, going.moves[i].to,
                            std::move(results[i]), arrayRanks());
  }
  return arrays;
}

std::optional<int64_t> Program::Engine::firstMissing(
    const Layout &layout,
    std::span<const std::shared_ptr<Buffer>> shards) const {
  for (int64_t rank : ranks().map().local)
    if (layout.boxes[rank] && !shards[rank])
      return rank;
  return std::nullopt;
}

Array Program::gather(const Array &array, bool everywhere,
                      const AskInterrupted &interrupted) const {
  Engine &engine = state->getEngine();
  const RankMap &map = engine.ranks().map();
  if (!engine.ranks().job()) {
    array.wait(interrupted);
    return array;
  }
  auto wanted = std::make_shared<Layout>();
  wanted->view = array.layout().view;
  wanted->boxes.resize(rankCount());
  for (int64_t rank : map.firstRanks(engine.ranks().job()->processes()))
    if (map.processOf[rank] == 0 || everywhere)
      wanted->boxes[rank] = Box::whole(wanted->view);
  std::shared_ptr<const Layout> layout = wanted;
  Array whole = moveInTurn({array}, {layout}, interrupted, Wanted::ByHost)[0];
  return everywhere || map.process == 0 ? whole : Array();
}

/// Steps that were submitted before may move data, too: all processes do it in
/// one order.
std::vector<Array>
Program::moveInTurn(std::vector<Array> arrays,
                    std::vector<std::shared_ptr<const Layout>> layouts,
                    const AskInterrupted &interrupted, Wanted wanted) const {
  Engine &engine = state->getEngine();
  std::vector<std::shared_ptr<Step>> before;
  for (const Array &array : arrays)
    before.push_back(array.step());
  // It is the turn's alone, so that what is moved is freed on the way.
  auto moved = std::make_shared<std::vector<Array>>(std::move(arrays));
  engine.ranks().inTurn(
      [moved, layouts = std::move(layouts), &engine, wanted,
       state = state](const AskInterrupted &isUnwanted) {
        for (const Array &array : *moved)
          array.wait(isUnwanted);
        *moved = engine.relayout(std::move(*moved), layouts, wanted);
      },
      std::move(before), interrupted);
  return std::move(*moved);
}

std::vector<Array> Program::move(std::span<const Array> arrays,
                                 std::span<const size_t> arguments,
                                 const AskInterrupted &interrupted) const {
  const std::shared_ptr<Job> &job = state->options.job;
  Engine &engine = state->getEngine();
  const std::shared_ptr<const RankMap> ranks = engine.arrayRanks();
  std::vector<std::shared_ptr<const Layout>> layouts;
  std::vector<Array> taken;
  std::string described;
  // Until all have found nothing wrong, nobody gives anything up.
  auto prepare = [&] {
    std::vector<Parameter> parameters;
    for (size_t argument : arguments)
      parameters.push_back(this->arguments().at(argument));
    checkArguments(parameters, arrays);
    // Given back at once, but all could be had: large ones as they will be, of
    // which the memory may still be there, the others together.
    constexpr int64_t large = 1 << 20;
    std::vector<std::shared_ptr<Buffer>> memory;
    int64_t rest = 0;
    for (size_t i = 0; i < arrays.size(); ++i) {
      const std::shared_ptr<const Layout> &layout = parameters[i].layout;
      layouts.push_back(layout);
      described += parameters[i].name + " " + arrays[i].layoutChecksum() + "; ";
      arrays[i].wait(interrupted);
      std::optional<Ranks::ExchangeWay> way;
      if (!arrays[i].isLaidOutAs(layout, ranks))
        way = engine.wayOf(arrays[i], Wanted::ByRanks);
      if (way) {
        taken.push_back(arrays[i]);
        for (int64_t rank : engine.ranks().map().local) {
          const std::optional<Box> &box = layout->boxes[rank];
          int64_t bytes =
              box ? box->elements() * byteSize(parameters[i].dtype) : 0;
          if (bytes >= large || way == Ranks::ExchangeWay::Gpus)
            memory.push_back(
                engine.ranks().exchangeMemory(rank, *way).allocate(bytes));
          else
            rest += bytes;
        }
        continue;
      }
      // What may be in files that are damaged is read now; memory of the
      // caller's does not stay.
      Array own = arrays[i].relayout(layout, ranks);
      taken.push_back(own.share(layout, ranks).array());
    }
    memory.push_back(Buffer::allocate(rest));
    described = state->bound->title + ": " + described;
    return system::Checksum::of(described);
  };
  std::vector<std::string> all =
      job ? job->together("a move of arrays", prepare)
          : std::vector<std::string>{prepare()};
  if (std::ranges::count(all, all[0]) != std::ssize(all))
    all = job->together("other moves of arrays", [&] { return described; });
  for (size_t process = 1; process < all.size(); ++process)
    if (all[process] != all[0])
      throw Error("process " + std::to_string(process) +
                  " moves other arrays than process 0: " + all[process] +
                  " instead of " + all[0]);
  // The contents go on; the caller's handles have nothing any more.
  for (Array &array : taken)
    array = array.contents().array();
  for (const Array &array : arrays)
    array.donate("moved to another program");
  return moveInTurn(std::move(taken), std::move(layouts), interrupted,
                    Wanted::ByRanks);
}

Array Program::place(size_t argument, const Array &array) const {
  const Parameter &parameter = state->bound->program.arguments.at(argument);
  checkArguments(std::vector<Parameter>{parameter}, {&array, 1});
  std::shared_ptr<const RankMap> ranks = state->getEngine().arrayRanks();
  Array placed = array.relayout(parameter.layout, ranks);
  // In its own layout already, it may be memory of the caller.
  return placed.share(parameter.layout, ranks).array();
}

} // namespace whale::runtime
