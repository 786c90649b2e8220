//===- Enumerate.cpp - All orders of a program's transfers ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a program, and which branch cases take. Out: whether all orders of
// instructions and transfers that waits allow end with the same results, or why
// one does not end.
//
// A depth-first search over states: for each rank its next instruction, how far
// its transfers are, and its memory as symbols. States with equal hashes are
// one. It stops at a fault, at a second result, or at the limit of states. An
// instruction that nothing else can notice is taken at once, without the other
// choices. Cost: exponential in what is in flight at a time; each state has its
// own copy of all memories.
//
//===----------------------------------------------------------------------===//

#include "Enumerate.h"

#include <algorithm>
#include <unordered_set>

namespace whale::transfers {

using namespace format;

namespace {

/// How far a rank's part of a transfer is.
enum class Stage : uint8_t { Open, Taken, Filled };

/// What is the same in all states.
struct Part {
  const Collective *channel;
  std::vector<Step::Ends> ends;
  /// Whom it exchanges data with there, by rank and the part of that rank. Of
  /// an all-reduce it is the whole group, in its order.
  std::vector<std::pair<int64_t, size_t>> peers;
  /// Of those, who takes from it.
  std::vector<std::pair<int64_t, size_t>> readers;
  /// What it fills, by part of the channel; null where that is nothing.
  std::vector<const std::vector<Cell> *> cells;
  bool hasCells = false;
  /// A local slice: only such ones before it hold it up, but it holds up all
  /// that are behind it.
  bool isLocal = false;
  /// Between host and device: only such ones hold it up, and nothing else is
  /// held up by it.
  bool isCopy = false;

  bool fills() const { return hasCells || isCopy || channel->isAllReduce(); }
};

struct Rank {
  std::vector<Step> steps;
  std::vector<Part> parts;
  std::vector<Range> results;
  Range decisions;
};

/// What a part has taken, by cell.
using Taken = std::vector<Contents>;

struct RankState {
  size_t next = 0, started = 0;
  std::vector<Stage> stages;
  std::vector<Taken> taken;
  Contents memory;
};

using State = std::vector<RankState>;

class Enumerator {
public:
  Enumerator(const format::Program &program, size_t branch, Names &names,
             const Limits &limits);

  Outcomes run();

private:
  void addPart(Rank &rank, int64_t number, const Step &step);
  void findPeers(int64_t number, Part &part, int64_t channel, size_t use);
  void checkSizes(int64_t number, const Part &part);

  template <typename Happen>
  void visit(const State &state, Happen happen);
  void expand(const State &state);
  void end(const State &state);
  bool isAtEnd(int64_t rank, const RankState &state) const {
    return state.next == ranks[rank].steps.size();
  }

  bool hasLeft(const State &state, int64_t rank, size_t part) const;
  bool hasReached(const State &state, int64_t rank, size_t part) const;
  bool hasBegun(const State &state, int64_t rank, size_t part) const;
  bool isUnnoticed(const State &state, int64_t rank) const;
  bool overlapsOpen(const State &state, int64_t rank, Range range,
                    bool isWritten) const;

  bool mayExecute(const State &state, int64_t rank) const;
  bool mayMove(const State &state, int64_t rank, size_t part) const;

  void execute(State &state, int64_t rank);
  void move(State &state, int64_t rank, size_t part);
  void compute(RankState &state, const Step &step);
  void spoil(State &state, int64_t rank, const Part &part);
  void take(State &state, int64_t rank, size_t part);
  void fill(State &state, int64_t rank, size_t part);

  const format::Program &program;
  Limits limits;
  std::vector<Rank> ranks;
  /// By rank and channel, the parts in the order of their starts.
  std::vector<std::map<int64_t, std::vector<size_t>>> uses;
  std::unordered_set<Symbol> seen;
  std::vector<State> open;
  Outcomes outcomes;
};

} // namespace

//===----------------------------------------------------------------------===//
// What is the same in all states
//===----------------------------------------------------------------------===//

Enumerator::Enumerator(const format::Program &program, size_t branch,
                       Names &names, const Limits &limits)
    : program(program), limits(limits), ranks(program.ranks.size()),
      uses(program.ranks.size()) {
  State &first = open.emplace_back(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    Rank &rank = ranks[i];
    auto number = static_cast<int64_t>(i);
    RankMemory memory(program, number);
    rank.steps = transfers::expand(program, number, memory, branch, names);
    rank.decisions = memory.decisions();
    for (size_t result = 0; result < program.results.size(); ++result)
      if (auto range = memory.result(result))
        rank.results.push_back(*range);
    for (const Step &step : rank.steps)
      if (step.kind == Step::Start)
        addPart(rank, number, step);
    first[i].memory = memory.contents();
    first[i].stages.resize(rank.parts.size());
    first[i].taken.resize(rank.parts.size());
  }
  for (size_t i = 0; i < ranks.size(); ++i)
    for (auto &[channel, parts] : uses[i])
      for (size_t use = 0; use < parts.size(); ++use)
        findPeers(static_cast<int64_t>(i), ranks[i].parts[parts[use]], channel,
                  use);
  if (!outcomes.fault.empty())
    return;
  for (size_t i = 0; i < ranks.size(); ++i)
    for (const Part &part : ranks[i].parts)
      checkSizes(static_cast<int64_t>(i), part);
}

void Enumerator::addPart(Rank &rank, int64_t number, const Step &step) {
  uses[number][step.channel].push_back(rank.parts.size());
  Part &part = rank.parts.emplace_back();
  part.channel = program.channels.at(step.channel).get();
  part.ends = step.ends;
  for (const ChannelPart &tensor : part.channel->parts) {
    auto cells = tensor.cells.find(number);
    bool fills = cells != tensor.cells.end() && !cells->second->empty();
    part.cells.push_back(fills ? cells->second.get() : nullptr);
    part.hasCells |= fills;
  }
}

static bool takesFrom(const ChannelPart &tensor, int64_t rank, int64_t from) {
  auto cells = tensor.cells.find(rank);
  return cells != tensor.cells.end() &&
         std::ranges::any_of(*cells->second, [&](const Cell &cell) {
           return std::ranges::any_of(cell.from, [&](const auto &source) {
             return source.peer == from;
           });
         });
}
static bool takesFrom(const Collective &channel, int64_t rank, int64_t from) {
  return std::ranges::any_of(channel.parts, [&](const ChannelPart &tensor) {
    return takesFrom(tensor, rank, from);
  });
}

void Enumerator::findPeers(int64_t number, Part &part, int64_t channelNumber,
                           size_t use) {
  const Collective &channel = *part.channel;
  auto add = [&](int64_t peer, auto &list) {
    auto it = uses[peer].find(channelNumber);
    if (it == uses[peer].end() || it->second.size() <= use)
      outcomes.fault = "a peer has no such transfer";
    else
      list.emplace_back(peer, it->second[use]);
  };
  if (channel.isAllReduce()) {
    Group group = {number};
    for (const Group &some : channel.groups)
      if (std::ranges::find(some, number) != some.end())
        group = some;
    for (int64_t peer : group)
      add(peer, part.peers);
    return;
  }
  part.isLocal = channel.isLocalSlice();
  part.isCopy = channel.isHostCopy();
  if (part.isCopy)
    add(number, part.peers);
  for (int64_t peer : channel.participants) {
    bool isSource = takesFrom(channel, number, peer);
    bool isReader = takesFrom(channel, peer, number);
    if (isSource || isReader)
      add(peer, part.peers);
    if (isReader && peer != number)
      add(peer, part.readers);
  }
}

/// Whether buffers are given, and as large as the channel says.
void Enumerator::checkSizes(int64_t number, const Part &part) {
  const Collective &channel = *part.channel;
  for (size_t i = 0; i < channel.parts.size(); ++i) {
    const ChannelPart &tensor = channel.parts[i];
    auto isLike = [&](const std::optional<Range> &range,
                      const std::map<int64_t, Shape> &shapes, int64_t rank) {
      auto shape = shapes.find(rank);
      return range && shape != shapes.end() &&
             byteCount(tensor.dtype, shape->second) == range->bytes();
    };
    bool isWhole = channel.isAllReduce() || part.isCopy;
    if ((isWhole || part.cells[i]) &&
        !isLike(part.ends[i].dst, tensor.dstShapes, number))
      outcomes.fault = "a receiver has no such buffer";
    for (auto [peer, index] : part.peers)
      if ((isWhole || takesFrom(tensor, number, peer)) &&
          !isLike(ranks[peer].parts[index].ends[i].src, tensor.srcShapes, peer))
        outcomes.fault = "a sender has no such buffer";
  }
}

//===----------------------------------------------------------------------===//
// What may happen
//===----------------------------------------------------------------------===//

/// It is done with the rank's buffers.
bool Enumerator::hasLeft(const State &state, int64_t rank, size_t index) const {
  const Part &part = ranks[rank].parts[index];
  if (index >= state[rank].started ||
      (part.fills() && state[rank].stages[index] != Stage::Filled))
    return false;
  return std::ranges::all_of(part.readers, [&](const auto &reader) {
    return state[reader.first].stages[reader.second] != Stage::Open;
  });
}

/// It is, or was, at the head of the rank's queue.
bool Enumerator::hasReached(const State &state, int64_t rank,
                            size_t index) const {
  if (index >= state[rank].started)
    return false;
  const std::vector<Part> &parts = ranks[rank].parts;
  bool isLocal = parts[index].isLocal;
  for (size_t i = 0; i < index; ++i)
    if (parts[i].isCopy == parts[index].isCopy &&
        (parts[i].isLocal || !isLocal) && !hasLeft(state, rank, i))
      return false;
  return true;
}

bool Enumerator::hasBegun(const State &state, int64_t rank,
                          size_t index) const {
  return hasReached(state, rank, index) &&
         std::ranges::all_of(
             ranks[rank].parts[index].peers, [&](const auto &peer) {
               return hasReached(state, peer.first, peer.second);
             });
}

bool Enumerator::mayExecute(const State &state, int64_t rank) const {
  if (isAtEnd(rank, state[rank]))
    return false;
  const Step &step = ranks[rank].steps[state[rank].next];
  return step.kind != Step::Wait ||
         (step.transfer != Step::unknown &&
          hasLeft(state, rank, static_cast<size_t>(step.transfer)));
}

bool Enumerator::mayMove(const State &state, int64_t rank, size_t index) const {
  const Part &part = ranks[rank].parts[index];
  if (!part.fills())
    return false;
  switch (state[rank].stages[index]) {
  case Stage::Open:
    return hasBegun(state, rank, index);
  case Stage::Taken:
    return part.hasCells ||
           std::ranges::all_of(part.peers, [&](const auto &peer) {
             return state[peer.first].stages[peer.second] != Stage::Open;
           });
  case Stage::Filled:
    break;
  }
  return false;
}

/// Whether a transfer of the rank may yet notice that it uses these bytes.
bool Enumerator::overlapsOpen(const State &state, int64_t rank, Range range,
                              bool isWritten) const {
  for (size_t i = 0; i < state[rank].started; ++i) {
    const Part &part = ranks[rank].parts[i];
    bool overlaps = std::ranges::any_of(part.ends, [&](const auto &ends) {
      return (ends.dst && ends.dst->overlaps(range)) ||
             (isWritten && ends.src && ends.src->overlaps(range));
    });
    if (overlaps && !hasLeft(state, rank, i))
      return true;
  }
  return false;
}

/// Whether the next instruction of a rank gives the same now and after all that
/// may happen before it. Memory is the rank's own, but for open transfers.
bool Enumerator::isUnnoticed(const State &state, int64_t rank) const {
  const Step &step = ranks[rank].steps[state[rank].next];
  switch (step.kind) {
  case Step::Wait:
    return true;
  case Step::Start:
    return std::ranges::none_of(step.ends, [&](const auto &ends) {
      return ends.dst && overlapsOpen(state, rank, *ends.dst, true);
    });
  case Step::Compute:
  case Step::Copy:
    break;
  }
  return std::ranges::none_of(step.reads,
                              [&](Range range) {
                                return overlapsOpen(state, rank, range, false);
                              }) &&
         std::ranges::none_of(step.writes, [&](Range range) {
           return overlapsOpen(state, rank, range, true);
         });
}

//===----------------------------------------------------------------------===//
// What happens
//===----------------------------------------------------------------------===//

void Enumerator::compute(RankState &state, const Step &step) {
  if (step.kind == Step::Copy) {
    state.memory.write(step.writes[0].begin, state.memory.read(step.reads[0]));
    return;
  }
  Symbol symbol = combine({step.name});
  for (const Range &range : step.reads)
    symbol = combine({symbol, state.memory.read(range).hash()});
  for (size_t i = 0; i < step.writes.size(); ++i)
    state.memory.write(step.writes[i].begin,
                       Contents(combine({symbol, i}), step.writes[i].bytes()));
}

/// A transfer may fill its destination with anything before it is complete,
/// unless it or an earlier one is still to use what is there.
void Enumerator::spoil(State &state, int64_t rank, const Part &part) {
  const Collective &channel = *part.channel;
  Contents &memory = state[rank].memory;
  for (size_t i = 0; i < channel.parts.size(); ++i) {
    const ChannelPart &tensor = channel.parts[i];
    const std::optional<Range> &dst = part.ends[i].dst;
    auto isSent = [&](const auto &ends) {
      return ends.src && ends.src->overlaps(*dst);
    };
    if (!dst || std::ranges::any_of(part.ends, isSent) ||
        overlapsOpen(state, rank, *dst, true))
      continue;
    if (channel.isAllReduce() || part.isCopy)
      memory.write(dst->begin, Contents(garbage, dst->bytes()));
    else if (part.cells[i])
      for (const Cell &cell : *part.cells[i])
        writeBox(memory, dst->begin, tensor.dstShapes.at(rank), cell.dstStart,
                 cell.size, byteSize(tensor.dtype),
                 Contents(garbage, byteCount(tensor.dtype, cell.size)));
  }
}

void Enumerator::take(State &state, int64_t rank, size_t index) {
  const Part &part = ranks[rank].parts[index];
  const Collective &channel = *part.channel;
  RankState &self = state[rank];
  self.stages[index] = Stage::Taken;
  if (!part.hasCells) {
    self.taken[index] = {self.memory.read(*part.ends.front().src)};
    return;
  }
  auto takeCell = [&](size_t number, const Cell &cell) {
    const ChannelPart &tensor = channel.parts[number];
    Contents contents;
    Symbol symbol = combine(
        {static_cast<uint64_t>(tensor.reduction.value_or(Reduction::Sum))});
    for (const Cell::Contribution &from : cell.from) {
      auto peer = std::ranges::find(
          part.peers, from.peer, [](const auto &entry) { return entry.first; });
      const Part &its = ranks[from.peer].parts[peer->second];
      contents = readBox(state[from.peer].memory, its.ends[number].src->begin,
                         tensor.srcShapes.at(from.peer), from.start, cell.size,
                         byteSize(tensor.dtype));
      symbol = combine({symbol, contents.hash()});
    }
    if (cell.from.size() != 1)
      contents = Contents(symbol, byteCount(tensor.dtype, cell.size));
    self.taken[index].push_back(std::move(contents));
  };
  for (size_t i = 0; i < part.cells.size(); ++i)
    if (part.cells[i])
      for (const Cell &cell : *part.cells[i])
        takeCell(i, cell);
}

void Enumerator::fill(State &state, int64_t rank, size_t index) {
  const Part &part = ranks[rank].parts[index];
  const Collective &channel = *part.channel;
  RankState &self = state[rank];
  if (channel.isAllReduce()) {
    Symbol symbol =
        combine({static_cast<uint64_t>(*channel.parts.front().reduction)});
    for (auto [peer, peerIndex] : part.peers)
      symbol = combine({symbol, state[peer].taken[peerIndex][0].hash()});
    const Range &dst = *part.ends.front().dst;
    self.memory.write(dst.begin, Contents(symbol, dst.bytes()));
  } else if (part.isCopy) {
    self.memory.write(part.ends.front().dst->begin, self.taken[index][0]);
    self.taken[index].clear();
  } else {
    size_t next = 0;
    for (size_t i = 0; i < part.cells.size(); ++i) {
      if (!part.cells[i])
        continue;
      const ChannelPart &tensor = channel.parts[i];
      for (const Cell &cell : *part.cells[i])
        writeBox(self.memory, part.ends[i].dst->begin,
                 tensor.dstShapes.at(rank), cell.dstStart, cell.size,
                 byteSize(tensor.dtype), self.taken[index][next++]);
    }
    self.taken[index].clear();
  }
  self.stages[index] = Stage::Filled;
}

void Enumerator::move(State &state, int64_t rank, size_t index) {
  if (state[rank].stages[index] == Stage::Open)
    take(state, rank, index);
  else
    fill(state, rank, index);
}

void Enumerator::execute(State &state, int64_t rank) {
  RankState &self = state[rank];
  const Step &step = ranks[rank].steps[self.next++];
  switch (step.kind) {
  case Step::Wait:
    break;
  case Step::Start:
    spoil(state, rank, ranks[rank].parts[self.started]);
    ++self.started;
    break;
  case Step::Compute:
  case Step::Copy:
    compute(self, step);
    break;
  }
}

//===----------------------------------------------------------------------===//
// All orders
//===----------------------------------------------------------------------===//

static Symbol hashOf(const State &state) {
  Symbol hash = 0;
  for (const RankState &rank : state) {
    hash = combine({hash, rank.next, rank.memory.hash()});
    for (size_t i = 0; i < rank.started; ++i) {
      hash = combine({hash, static_cast<uint64_t>(rank.stages[i])});
      for (const Contents &contents : rank.taken[i])
        hash = combine({hash, contents.hash()});
    }
  }
  return hash;
}

/// Goes on from a state with what `happen` does, if nobody came there before.
template <typename Happen>
void Enumerator::visit(const State &state, Happen happen) {
  State next = state;
  happen(next);
  if (seen.insert(hashOf(next)).second)
    open.push_back(std::move(next));
}

/// What the ranks leave behind; transfers that go on may still change it.
void Enumerator::end(const State &state) {
  Symbol symbol = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Contents &memory = state[i].memory;
    symbol = combine({symbol, memory.read(ranks[i].decisions).hash()});
    for (const Range &range : ranks[i].results)
      symbol = combine({symbol, memory.read(range).hash()});
  }
  outcomes.results.insert(symbol);
}

void Enumerator::expand(const State &state) {
  auto count = static_cast<int64_t>(ranks.size());
  auto visitNext = [&](int64_t rank) {
    visit(state, [&](State &next) { execute(next, rank); });
  };
  if (limits.isReduced)
    for (int64_t rank = 0; rank < count; ++rank)
      if (mayExecute(state, rank) && isUnnoticed(state, rank))
        return visitNext(rank);
  bool isAllAtEnd = true, goesOn = false;
  for (int64_t rank = 0; rank < count; ++rank) {
    isAllAtEnd &= isAtEnd(rank, state[rank]);
    if (mayExecute(state, rank)) {
      goesOn = true;
      visitNext(rank);
    }
    for (size_t part = 0; part < state[rank].started; ++part)
      if (mayMove(state, rank, part)) {
        goesOn |= !isAtEnd(rank, state[rank]);
        visit(state, [&](State &next) { move(next, rank, part); });
      }
  }
  if (isAllAtEnd)
    end(state);
  else if (!goesOn)
    outcomes.fault = "the ranks wait for one another";
}

/// One fault, or two results, are enough to know.
Outcomes Enumerator::run() {
  while (!open.empty() && outcomes.fault.empty() &&
         outcomes.results.size() < 2) {
    if (seen.size() > limits.states) {
      outcomes.isCut = true;
      break;
    }
    State state = std::move(open.back());
    open.pop_back();
    expand(state);
  }
  outcomes.states = seen.size();
  return outcomes;
}

Outcomes enumerate(const format::Program &program, size_t branch, Names &names,
                   const Limits &limits) {
  return Enumerator(program, branch, names, limits).run();
}

static int64_t count(const std::vector<Instruction> &list) {
  auto sum = static_cast<int64_t>(list.size());
  for (const Instruction &instruction : list) {
    if (const auto *loop = std::get_if<While>(&instruction.operation))
      sum += count(loop->cond) + count(loop->body);
    else if (const auto *choice = std::get_if<Case>(&instruction.operation))
      for (const auto &branch : choice->branches)
        sum += count(branch);
  }
  return sum;
}

int64_t countInstructions(const format::Program &program) {
  int64_t sum = 0;
  for (const RankClass &rankClass : program.classes)
    sum += count(rankClass.instructions) *
           static_cast<int64_t>(rankClass.ranks.size());
  return sum;
}

} // namespace whale::transfers
