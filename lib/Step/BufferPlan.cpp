//===- BufferPlan.cpp - Memory of values ------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Merges values into classes that share a buffer, in descending order of the
// cost of a copy: results in donated arguments, partial updates, loop-carried
// values, the parts of packs and unpacks (which become ranges of the whole's
// buffer), then all other operations that can run in place. The remaining
// classes get an offset in the arena; repeated results take turns in slots
// (BufferTurns.h) or, if that wastes much, large ones have places of their own.
// Values that could not be merged are copied.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/BufferPlan.h"

#include "BufferArena.h"
#include "BufferLayouts.h"
#include "BufferSharing.h"
#include "BufferTurns.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace whale {

/// Where an arena wastes much, large results are given places of their own, if
/// that makes no more than about so many requests: packing is quadratic in
/// them.
static constexpr size_t mostRequests = 8192;

/// An argument, and the result that should be in its buffer.
using Alias = BufferPlanner::Alias;

class BufferPlanner::Implementation {
public:
  explicit Implementation(const BufferFunction &function)
      : function(function), liveness(function) {}

  llvm::SmallVector<Alias> grant(llvm::ArrayRef<Alias> aliases);
  BufferPlan run();
  SegmentPlan runSegment(llvm::ArrayRef<unsigned> mayOverwrite);

private:
  std::vector<Alias> findAliases(llvm::ArrayRef<unsigned> mayOverwrite) const;
  void share(llvm::ArrayRef<Alias> aliases);
  void assign();
  void request();
  void place(int64_t limit);
  bool isWasteful();
  unsigned classOf(unsigned value) const { return sharing->classOf(value); }
  SharedBuffer &shared(unsigned number) { return (*sharing)[number]; }
  void placeResults();
  void assignBuffers();
  unsigned bufferOfClass(unsigned c);
  void requestArena(unsigned c, unsigned buffer);
  unsigned bufferOfRange(unsigned whole, int64_t offset, int64_t bytes);
  void copies();
  std::vector<BufferCopy> sequence(llvm::ArrayRef<CarryMove> moves,
                                   int64_t point);
  std::vector<BufferCopy> sequence(std::vector<BufferCopy> pending,
                                   int64_t point);
  void updateCopies(const BufferRegion &region, unsigned &instr);

  const BufferFunction &function;
  BufferLiveness liveness;
  std::optional<BufferSharing> sharing;
  /// The aliases that were asked for.
  llvm::SmallVector<Alias> wanted;
  /// The arguments whose buffers results have.
  llvm::BitVector taken;
  /// By class: its buffer.
  std::map<unsigned, unsigned> bufferIndex;
  /// By class, offset and bytes: the buffer of a range.
  std::map<std::tuple<unsigned, int64_t, int64_t>, unsigned> rangeIndex;
  std::optional<BufferTurns> turns;
  /// Whether large values take turns.
  bool largeTakeTurns = true;
  std::vector<ArenaRequest> requests;
  /// By request: the buffers that begin where it is.
  std::vector<llvm::SmallVector<unsigned, 1>> requestBuffers;
  BufferPlan plan;
  BufferLayouts layouts{function, liveness, plan};
};

using Planner = BufferPlanner::Implementation;

void Planner::placeResults() {
  const auto &results = function.body.yields;
  plan.resultBuffer.resize(results.size());
  for (auto [k, value] : llvm::enumerate(results)) {
    if (plan.alias[k])
      continue;
    SharedBuffer &c = shared(classOf(value));
    if (!c.space) {
      c.space = BufferSpace::Result;
      c.index = k;
    }
  }
}

/// The times that are in the first, but not in the second.
static TimeIntervals without(const TimeIntervals &times,
                             const TimeIntervals &others) {
  TimeIntervals rest;
  for (auto [begin, end] : times) {
    for (auto [from, to] : others) {
      if (to <= begin || end <= from)
        continue;
      if (begin < from)
        rest.push_back({begin, from});
      begin = std::min(to, end);
    }
    if (begin < end)
      rest.push_back({begin, end});
  }
  return rest;
}

unsigned Planner::bufferOfRange(unsigned whole, int64_t offset, int64_t bytes) {
  unsigned base = bufferOfClass(whole);
  auto [it, isNew] = rangeIndex.try_emplace({whole, offset, bytes},
                                            unsigned(plan.buffers.size()));
  if (isNew) {
    PlannedBuffer range = plan.buffers[base];
    range.offset += offset;
    range.bytes = bytes;
    range.whole = base;
    plan.buffers.push_back(range);
  }
  return it->second;
}

unsigned Planner::bufferOfClass(unsigned c) {
  if (shared(c).whole)
    return bufferOfRange(*shared(c).whole, shared(c).offset, shared(c).bytes);
  auto [it, isNew] = bufferIndex.try_emplace(c, plan.buffers.size());
  if (!isNew)
    return it->second;
  const SharedBuffer &from = shared(c);
  PlannedBuffer buffer;
  buffer.space = from.space.value_or(BufferSpace::Arena);
  buffer.index = from.index;
  buffer.offset = from.offset;
  buffer.bytes = from.bytes;
  plan.buffers.push_back(buffer);
  if (buffer.space == BufferSpace::Arena)
    requestArena(c, it->second);
  return it->second;
}

/// Requests bytes of the arena for the buffer of a class, unless its slot has
/// them.
void Planner::requestArena(unsigned c, unsigned buffer) {
  const SharedBuffer &from = shared(c);
  TurnSlot *slot = turns->slotOf(c);
  if (slot && slot->request) {
    requestBuffers[*slot->request].push_back(buffer);
    return;
  }
  ArenaRequest request{from.bytes, from.times()};
  if (slot) {
    slot->request = requests.size();
    request.bytes = slot->bytes;
    for (unsigned other : slot->classes)
      if (other != c)
        llvm::append_range(request.intervals, shared(other).times());
    llvm::sort(request.intervals);
  }
  for (unsigned number : from.pieces) {
    const SharedBuffer &piece = shared(number);
    request.parts.push_back(
        {piece.offset, piece.bytes, without(piece.times(), request.intervals)});
  }
  requests.push_back(std::move(request));
  requestBuffers.push_back({buffer});
}

void Planner::assignBuffers() {
  plan.bufferOf.resize(function.values.size());
  // Arguments come first, so that buffer i is argument i.
  for (unsigned arg : function.body.args)
    bufferOfClass(classOf(arg));
  for (size_t v = 0; v < function.values.size(); ++v)
    plan.bufferOf[v] = bufferOfClass(classOf(v));
  for (auto [k, value] : llvm::enumerate(function.body.yields)) {
    unsigned source = plan.bufferOf[value];
    const PlannedBuffer &buffer = plan.buffers[source];
    if (plan.alias[k]) {
      plan.resultBuffer[k] = plan.bufferOf[function.body.args[*plan.alias[k]]];
    } else if (buffer.space == BufferSpace::Result && buffer.index == k) {
      plan.resultBuffer[k] = source;
    } else {
      plan.resultBuffer[k] = plan.buffers.size();
      plan.buffers.push_back(
          {BufferSpace::Result, 0, unsigned(k), buffer.bytes});
    }
  }
}

// Orders parallel copies so that none overwrites a source of a later one; a
// cycle is broken with a temporary buffer.
std::vector<BufferCopy> Planner::sequence(llvm::ArrayRef<CarryMove> moves,
                                          int64_t point) {
  std::vector<BufferCopy> copies;
  for (const CarryMove &move : moves)
    copies.push_back({plan.bufferOf[move.src], plan.bufferOf[move.dst]});
  return sequence(std::move(copies), point);
}

std::vector<BufferCopy> Planner::sequence(std::vector<BufferCopy> pending,
                                          int64_t point) {
  std::vector<BufferCopy> ordered;
  llvm::erase_if(pending, [&](const BufferCopy &copy) {
    return copy.src == copy.dst || plan.buffers[copy.src].bytes == 0;
  });
  while (!pending.empty()) {
    auto ready = llvm::find_if(pending, [&](const BufferCopy &copy) {
      return llvm::none_of(pending, [&](const BufferCopy &other) {
        return other.src == copy.dst;
      });
    });
    if (ready != pending.end()) {
      ordered.push_back(*ready);
      pending.erase(ready);
      continue;
    }
    unsigned kept = pending.front().dst, spare = plan.buffers.size();
    int64_t bytes = plan.buffers[kept].bytes;
    plan.buffers.push_back({BufferSpace::Arena, 0, 0, bytes});
    requests.push_back({bytes, {{2 * point, 2 * point + 2}}});
    requestBuffers.push_back({spare});
    ordered.push_back({kept, spare});
    for (BufferCopy &copy : pending)
      if (copy.src == kept)
        copy.src = spare;
  }
  return ordered;
}

// A partial update without its operand's buffer starts from a copy. What is in
// no range of a whole is copied there, or from there.
void Planner::updateCopies(const BufferRegion &region, unsigned &next) {
  for (const BufferInstr &instr : region.instrs) {
    unsigned id = next++;
    std::vector<BufferCopy> moved;
    for (const Piece &piece : piecesOf(function, instr)) {
      unsigned own = plan.bufferOf[piece.value];
      unsigned range = bufferOfRange(classOf(piece.whole), piece.offset,
                                     function.values[piece.value].bytes);
      moved.push_back(instr.kind == BufferInstr::Pack ? BufferCopy{own, range}
                                                      : BufferCopy{range, own});
    }
    if (!moved.empty())
      plan.before[id] = sequence(std::move(moved), liveness.pointBefore[id]);
    llvm::ArrayRef<InPlace> pairs = instr.inPlace;
    if (instr.kind == BufferInstr::Call)
      pairs = function.segments[instr.callee]->inPlace;
    for (const InPlace &pair : pairs) {
      if (!pair.required)
        continue;
      BufferCopy copy{plan.bufferOf[instr.operands[pair.operand]],
                      plan.bufferOf[instr.results[pair.result]]};
      if (copy.src != copy.dst && plan.buffers[copy.src].bytes)
        plan.before[id].push_back(copy);
    }
    for (const BufferRegion &inner : instr.regions)
      updateCopies(inner, next);
  }
}

void Planner::copies() {
  plan.before.resize(liveness.before.size());
  plan.layout.resize(liveness.before.size());
  plan.atEnd.resize(liveness.atEnd.size());
  for (size_t i = 0; i < plan.before.size(); ++i)
    plan.before[i] = sequence(liveness.before[i], liveness.pointBefore[i]);
  for (size_t i = 0; i < plan.atEnd.size(); ++i)
    plan.atEnd[i] = sequence(liveness.atEnd[i], liveness.pointAtEnd[i]);
  unsigned next = 0;
  updateCopies(function.body, next);
  for (auto [k, value] : llvm::enumerate(function.body.yields)) {
    unsigned source = plan.bufferOf[value], target = plan.resultBuffer[k];
    if (source != target && plan.buffers[source].bytes)
      plan.atEnd[0].push_back({source, target});
  }
}

// Decides which results take the buffers of arguments.
void Planner::share(llvm::ArrayRef<Alias> aliases) {
  wanted.assign(aliases.begin(), aliases.end());
  llvm::SmallVector<unsigned> written;
  for (const Alias &alias : wanted)
    written.push_back(alias.first);
  sharing.emplace(function, liveness, written);
  turns.emplace(function, *sharing);
  for (auto [a, b] : liveness.fixed)
    sharing->merge(a, b, /*always=*/true);
  plan.alias.assign(function.body.yields.size(), std::nullopt);
  taken.clear();
  taken.resize(function.body.args.size());
  for (auto [argument, result] : wanted) {
    unsigned arg = function.body.args[argument];
    unsigned value = function.body.yields[result];
    // An empty share is never written, so any result may alias it.
    bool isEmpty =
        function.values[value].bytes == 0 && function.values[arg].bytes == 0;
    if (!taken[argument] && !plan.alias[result] &&
        (isEmpty || sharing->merge(arg, value))) {
      plan.alias[result] = argument;
      taken.set(argument);
    }
  }
}

// Computes the rest of the plan except for offsets in the arena.
void Planner::assign() {
  // An argument whose buffer no result reuses belongs to the caller: never
  // write it.
  for (auto [argument, result] : wanted)
    if (!taken[argument])
      shared(classOf(function.body.args[argument])).readOnly = true;
  sharing->merge(liveness.requiredInPlace);
  sharing->merge(liveness.carries);
  sharing->merge(liveness.inits);
  sharing->placePieces();
  sharing->merge(liveness.optionalInPlace);
  placeResults();
  turns->run(largeTakeTurns);
  assignBuffers();
  copies();
}

llvm::SmallVector<Alias> Planner::grant(llvm::ArrayRef<Alias> aliases) {
  share(aliases);
  llvm::SmallVector<Alias> granted(aliases);
  llvm::erase_if(granted, [&](const Alias &alias) {
    return plan.alias[alias.second] != alias.first;
  });
  return granted;
}

/// Whether the arena is much larger than it would be if bytes could move.
bool Planner::isWasteful() {
  // A slot is as large as its largest value.
  std::vector<ArenaRequest> exact = requests;
  for (const TurnSlot &slot : turns->getSlots())
    for (auto [i, c] : llvm::enumerate(slot.classes)) {
      const SharedBuffer &own = shared(c);
      ArenaRequest &request =
          i == 0 ? exact[*slot.request] : exact.emplace_back();
      request = {own.bytes, own.times()};
    }
  int64_t least = mostAlive(exact, layouts.getCalls(), function.alignment);
  return plan.arenaBytes - least > least / kWasteShare;
}

/// Requests places in the arena for everything.
void Planner::request() {
  assign();
  layouts.request(requests, requestBuffers);
}

/// Places all requests in an arena of fewer bytes than `limit`, if it can.
void Planner::place(int64_t limit) {
  std::vector<int64_t> offsets = packArena(
      requests, layouts.getCalls(), function.alignment, plan.arenaBytes, limit,
      largeTakeTurns ? ArenaOrder::Turns : ArenaOrder::Lives);
  for (auto [r, buffers] : llvm::enumerate(requestBuffers))
    for (unsigned buffer : buffers)
      plan.buffers[buffer].offset = offsets[r];
  for (PlannedBuffer &buffer : plan.buffers)
    if (buffer.whole && buffer.space == BufferSpace::Arena)
      buffer.offset += plan.buffers[*buffer.whole].offset;
  layouts.place(offsets);
}

// Slots of large values may be alive at the same time in pairs, and never all
// of them; places of their own then waste less.
BufferPlan Planner::run() {
  request();
  place(/*limit=*/INT64_MAX);
  if (turns->getLargeCount() == 0 ||
      requests.size() + turns->getLargeCount() > mostRequests || !isWasteful())
    return std::move(plan);
  Implementation other(function);
  other.largeTakeTurns = false;
  other.share(wanted);
  other.request();
  if (other.requests.size() > mostRequests)
    return std::move(plan);
  other.place(plan.arenaBytes);
  bool isBetter = other.plan.arenaBytes < plan.arenaBytes;
  return std::move(isBetter ? other.plan : plan);
}

/// Returns pairs of an operand and a result that is computed from it in place:
/// through updates and loop-carried values first, then through other in-place
/// operations. An operand whose live range merely ends before that of a result
/// starts isn't paired with it: whether they share a buffer is decided by the
/// callers, which then needn't copy it.
std::vector<Alias>
Planner::findAliases(llvm::ArrayRef<unsigned> mayOverwrite) const {
  llvm::IntEqClasses related(function.values.size());
  std::vector<Alias> found;
  auto relate = [&](llvm::ArrayRef<BufferLiveness::Wish> wishes) {
    for (const BufferLiveness::Wish &wish : wishes)
      related.join(wish.a, wish.b);
  };
  auto collect = [&] {
    for (unsigned operand : mayOverwrite) {
      unsigned root = liveness.root(function.body.args[operand]);
      for (auto [k, value] : llvm::enumerate(function.body.yields))
        if (related.findLeader(root) ==
            related.findLeader(liveness.root(value)))
          found.push_back({operand, unsigned(k)});
    }
  };
  for (auto [carry, other] : liveness.fixed)
    related.join(carry, other);
  for (const auto *wishes :
       {&liveness.requiredInPlace, &liveness.carries, &liveness.inits})
    relate(*wishes);
  collect();
  relate(liveness.optionalInPlace);
  collect();
  return found;
}

SegmentPlan Planner::runSegment(llvm::ArrayRef<unsigned> mayOverwrite) {
  share(findAliases(mayOverwrite));
  assign();
  SegmentPlan segment;
  segment.function = &function;
  segment.duration = liveness.end;
  for (auto [request, buffers] : llvm::zip_equal(requests, requestBuffers)) {
    for (unsigned buffer : buffers)
      plan.buffers[buffer].index = segment.locals.size();
    segment.locals.push_back({request.bytes, std::move(request.intervals)});
  }
  for (unsigned argument : function.body.args)
    segment.operandEnd.push_back(liveness.intervals(argument).back().end);
  for (auto [k, value] : llvm::enumerate(function.body.yields)) {
    bool there = plan.resultBuffer[k] == plan.bufferOf[value];
    // Values in other buffers are copied to the result at the end.
    segment.resultAlive.push_back(
        there ? shared(classOf(value)).times()
              : TimeIntervals{{segment.duration - 2, segment.duration}});
    if (!plan.alias[k])
      continue;
    // The buffer passes to the result when the call begins.
    segment.operandEnd[*plan.alias[k]] = 2;
    segment.inPlace.push_back({unsigned(k), *plan.alias[k], true});
  }
  segment.plan = std::move(plan);
  return segment;
}

BufferPlanner::BufferPlanner(const BufferFunction &function)
    : implementation(std::make_unique<Implementation>(function)) {}
BufferPlanner::BufferPlanner(BufferPlanner &&) = default;
BufferPlanner::~BufferPlanner() = default;

llvm::SmallVector<Alias> BufferPlanner::grant(llvm::ArrayRef<Alias> aliases) {
  return implementation->grant(aliases);
}

BufferPlan BufferPlanner::plan() { return implementation->run(); }

BufferPlan planBuffers(const BufferFunction &function,
                       llvm::ArrayRef<Alias> aliases) {
  BufferPlanner planner(function);
  planner.grant(aliases);
  return planner.plan();
}

SegmentPlan planSegment(const BufferFunction &function,
                        llvm::ArrayRef<unsigned> mayOverwrite) {
  return Planner(function).runSegment(mayOverwrite);
}

} // namespace whale
