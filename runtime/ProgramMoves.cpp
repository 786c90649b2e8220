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
// whether one lacks any compares the boxes of all ranks pairwise. What a move
// finds by the types of its arrays is kept for the next one of the same types.
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
    std::vector<ArrayContents> arrays,
    std::span<const std::shared_ptr<const ArrayType>> types,
    std::span<const std::optional<Ranks::ExchangeWay>> ways) {
  std::vector<Array> results(arrays.size());
  std::map<Ranks::ExchangeWay, Going> all;
  for (size_t i = 0; i < arrays.size(); ++i) {
    ArrayContents given = std::move(arrays[i]);
    const ArrayType &wanted = *types[i];
    if (!ways[i]) {
      results[i] = given.array().relayout(wanted.layout, wanted.ranks);
    } else {
      Going &going = all[*ways[i]];
      const ArrayType &type = *given.arrayType();
      going.numbers.push_back(i);
      going.moves.push_back(
          {byteSize(type.dtype), type.layout, type.ranks, wanted.layout});
      going.sources.push_back(given.release());
    }
  }
  for (auto &[way, going] : all) {
    std::vector<Ranks::Shards> shards =
        ranks().exchange(std::move(going.moves), std::move(going.sources), way);
    for (size_t i = 0; i < going.numbers.size(); ++i)
      results[going.numbers[i]] =
          Array::fromShards(types[going.numbers[i]], std::move(shards[i]));
  }
  return results;
}

std::optional<int64_t> Program::Engine::firstMissing(
    const Layout &layout,
    std::span<const std::shared_ptr<Buffer>> shards) const {
  for (int64_t rank : ranks().map().local)
    if (layout.boxes[rank] && !shards[rank])
      return rank;
  return std::nullopt;
}

/// Arrays that become others, each as the type beside it.
struct Program::Moves {
  void add(ArrayContents given, std::shared_ptr<const ArrayType> type,
           std::optional<Ranks::ExchangeWay> way) {
    arrays.push_back(std::move(given));
    types.push_back(std::move(type));
    ways.push_back(way);
  }

  std::vector<ArrayContents> arrays;
  std::vector<std::shared_ptr<const ArrayType>> types;
  std::vector<std::optional<Ranks::ExchangeWay>> ways;
};

Array Program::gather(const Array &array, bool everywhere,
                      const AskInterrupted &interrupted) const {
  Engine &engine = state->getEngine();
  const RankMap &map = engine.ranks().map();
  if (!engine.ranks().job()) {
    array.wait(interrupted);
    return array;
  }
  Layout wanted{array.layout().view, {}};
  wanted.boxes.resize(rankCount());
  for (int64_t rank : map.firstRanks(engine.ranks().job()->processes()))
    if (map.processOf[rank] == 0 || everywhere)
      wanted.boxes[rank] = Box::whole(wanted.view);
  auto type = std::make_shared<ArrayType>(ArrayType{
      array.dtype(), array.shape(), std::make_shared<Layout>(std::move(wanted)),
      engine.arrayRanks()});
  std::optional<Ranks::ExchangeWay> way;
  if (!array.isLaidOutAs(type->layout, type->ranks))
    way = engine.wayOf(array, Wanted::ByHost);
  Moves moves;
  moves.add(array.contents(), type, way);
  Array whole = moveInTurn(std::move(moves), interrupted)[0];
  return everywhere || map.process == 0 ? whole : Array();
}

/// Steps that were submitted before may move data, too: all processes do it in
/// one order.
std::vector<Array>
Program::moveInTurn(Moves given, const AskInterrupted &interrupted) const {
  Engine &engine = state->getEngine();
  std::vector<std::shared_ptr<Step>> before;
  for (const ArrayContents &array : given.arrays)
    if (const std::shared_ptr<Step> &step = array.step();
        step && (before.empty() || step != before.back()))
      before.push_back(step);
  // They are the turn's alone, so that what is moved is freed on the way.
  auto moves = std::make_shared<Moves>(std::move(given));
  auto moved = std::make_shared<std::vector<Array>>();
  engine.ranks().inTurn(
      [moves, moved, &engine, state = state](const AskInterrupted &isUnwanted) {
        for (const ArrayContents &array : moves->arrays)
          array.wait(isUnwanted);
        *moved = engine.relayout(std::move(moves->arrays), moves->types,
                                 moves->ways);
      },
      std::move(before), interrupted);
  return std::move(*moved);
}

/// So many lists of arrays have tables that are kept: there and back, for some
/// pairs of programs.
static constexpr size_t mostMoveTables = 8;

std::shared_ptr<const Program::MoveTable>
Program::State::moveTable(std::span<const Array> arrays,
                          std::span<const size_t> arguments) {
  auto isOfArray = [](const std::shared_ptr<const ArrayType> &type,
                      const Array &array) {
    return type == array.sharedType();
  };
  std::lock_guard lock(moveMutex);
  for (auto it = moveTables.begin(); it != moveTables.end(); ++it)
    if (std::ranges::equal((*it)->arguments, arguments) &&
        std::ranges::equal((*it)->from, arrays, isOfArray)) {
      moveTables.splice(moveTables.begin(), moveTables, it);
      return moveTables.front();
    }
  auto table = std::make_shared<MoveTable>();
  table->arguments.assign(arguments.begin(), arguments.end());
  std::string described = bound->title + ":";
  size_t processes = options.job ? options.job->processes() : 1;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Array &array = arrays[i];
    const ArrayType &wanted = *argumentTypes[arguments[i]];
    table->from.push_back(array.sharedType());
    MoveTable::Way &way = table->ways.emplace_back(MoveTable::Way::Exchange);
    if (array.isLaidOutAs(wanted.layout, wanted.ranks))
      way = MoveTable::Way::None;
    else if (array.isInFiles() || (processes > 1 && !array.ranks()))
      way = MoveTable::Way::Here;
    described +=
        ' ' + std::to_string(arguments[i]) + ' ' + array.layoutChecksum();
  }
  table->checksum = system::Checksum::of(described);
  moveTables.push_front(table);
  if (moveTables.size() > mostMoveTables)
    moveTables.pop_back();
  return table;
}

/// What processes call the preparation of a move.
static constexpr const char *moveName = "a move of arrays";

std::vector<Array> Program::move(std::span<const Array> arrays,
                                 std::span<const size_t> arguments,
                                 const AskInterrupted &interrupted) const {
  const std::shared_ptr<Job> &job = state->options.job;
  Engine &engine = state->getEngine();
  const std::vector<int64_t> &local = engine.ranks().map().local;
  Moves moves;
  // Until all have found nothing wrong, nobody gives anything up.
  auto prepare = [&] {
    if (arguments.size() != arrays.size())
      throw Error("as many arrays as arguments expected");
    std::shared_ptr<Step> checked;
    for (size_t i = 0; i < arrays.size(); ++i)
      checkArgument(this->arguments().at(arguments[i]), arrays[i], checked);
    std::shared_ptr<const MoveTable> table =
        state->moveTable(arrays, arguments);
    // Given back at once, but all could be had: large ones as they will be, of
    // which the memory may still be there, the others together.
    constexpr int64_t large = 1 << 20;
    std::vector<std::shared_ptr<Buffer>> memory;
    int64_t rest = 0;
    for (size_t i = 0; i < arrays.size(); ++i) {
      const std::shared_ptr<const ArrayType> &type =
          state->argumentTypes[arguments[i]];
      ArrayContents contents = arrays[i].contents();
      contents.wait(interrupted);
      if (table->ways[i] != MoveTable::Way::Exchange) {
        // What may be in files that are damaged is read now; memory of the
        // caller's does not stay.
        if (table->ways[i] == MoveTable::Way::Here)
          contents = arrays[i].relayout(type->layout, type->ranks).contents();
        moves.add(contents.array().share(type->layout, type->ranks), type,
                  std::nullopt);
        continue;
      }
      Ranks::ExchangeWay way = engine.ranks().exchangesByGpus(arrays[i])
                                   ? Ranks::ExchangeWay::Gpus
                                   : Ranks::ExchangeWay::Hosts;
      moves.add(std::move(contents), type, way);
      for (int64_t rank : local) {
        const std::optional<Box> &box = type->layout->boxes[rank];
        int64_t bytes = box ? box->elements() * byteSize(type->dtype) : 0;
        if (bytes >= large || way == Ranks::ExchangeWay::Gpus)
          memory.push_back(
              engine.ranks().exchangeMemory(rank, way).allocate(bytes));
        else
          rest += bytes;
      }
    }
    memory.push_back(Buffer::allocate(rest));
    return table->checksum;
  };
  std::vector<std::string> all = job ? job->together(moveName, prepare)
                                     : std::vector<std::string>{prepare()};
  if (std::ranges::count(all, all[0]) != std::ssize(all))
    all = job->together("other moves of arrays",
                        [&] { return describeMove(arrays, arguments); });
  for (size_t process = 1; process < all.size(); ++process)
    if (all[process] != all[0])
      throw Error("process " + std::to_string(process) +
                  " moves other arrays than process 0: " + all[process] +
                  " instead of " + all[0]);
  // All go by the same way.
  auto byGpus = std::optional(Ranks::ExchangeWay::Gpus);
  if (std::ranges::find(moves.ways, byGpus) != moves.ways.end()) {
    auto refusal = std::make_shared<std::string>();
    engine.ranks().inTurn(
        [refusal, &engine, state = state](const AskInterrupted &) {
          *refusal = engine.ranks().connectExchange();
        },
        {}, interrupted);
    if (!refusal->empty())
      throw Error(*refusal);
  }
  // The contents go on; the caller's handles have nothing any more.
  for (const Array &array : arrays)
    array.donate("moved to another program");
  return moveInTurn(std::move(moves), interrupted);
}

void Program::refuseMove(const std::string &why) const {
  if (!state->options.job)
    return;
  try {
    state->options.job->together(moveName,
                                 [&]() -> std::string { throw Error(why); });
  } catch (const Error &) {
    // The caller says it here.
  }
}

std::string Program::describeMove(std::span<const Array> arrays,
                                  std::span<const size_t> arguments) const {
  std::string text = state->bound->title + ": ";
  for (size_t i = 0; i < arrays.size(); ++i)
    text += this->arguments()[arguments[i]].name + " " +
            arrays[i].layoutChecksum() + "; ";
  return text;
}

Array Program::place(size_t argument, const Array &array) const {
  const Parameter &parameter = state->bound->program.arguments.at(argument);
  std::shared_ptr<Step> checked;
  checkArgument(parameter, array, checked);
  std::shared_ptr<const RankMap> ranks = state->getEngine().arrayRanks();
  Array placed = array.relayout(parameter.layout, ranks);
  // In its own layout already, it may be memory of the caller.
  return placed.share(parameter.layout, ranks).array();
}

} // namespace whale::runtime
