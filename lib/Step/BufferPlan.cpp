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
// values, then all other operations that can run in place. The remaining
// classes get an offset in the arena; results of several calls of one segment
// share a few buffers in turn. Values that could not be merged are copied.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/BufferPlan.h"

#include "BufferArena.h"
#include "BufferLiveness.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>

namespace whale {
namespace {

/// An argument, and the result that should be in its buffer.
using Alias = std::pair<unsigned, unsigned>;

/// Roots that share a buffer; `intervals` ascend.
struct SharedBuffer {
  std::vector<LiveInterval> intervals;
  int64_t bytes = 0;
  unsigned type = 0;
  bool readOnly = false;
  std::optional<BufferSpace> space;
  unsigned index = 0;
  int64_t offset = 0;

  /// The intervals, shortened where one member passes the buffer to the next.
  TimeIntervals times() const;
};

class Planner {
public:
  explicit Planner(const BufferFunction &function)
      : function(function), liveness(function) {}

  BufferPlan run(llvm::ArrayRef<Alias> aliases);
  SegmentPlan runSegment(llvm::ArrayRef<unsigned> mayOverwrite);

private:
  std::vector<Alias> findAliases(llvm::ArrayRef<unsigned> mayOverwrite) const;
  void assign(llvm::ArrayRef<Alias> wanted);
  void makeClasses();
  bool merge(unsigned a, unsigned b, bool always = false);
  bool conflict(const SharedBuffer &a, const SharedBuffer &b) const;
  unsigned classOf(unsigned value) const {
    return classes[liveness.root(value)];
  }
  void mergeWishes(const std::vector<BufferLiveness::Wish> &wishes);
  void placeResults();
  void takeTurns();
  void assignBuffers();
  unsigned bufferOfClass(unsigned c);
  void copies();
  std::vector<BufferCopy> sequence(llvm::ArrayRef<CarryMove> moves,
                                   int64_t point);
  void updateCopies(const BufferRegion &region, unsigned &instr);

  const BufferFunction &function;
  BufferLiveness liveness;
  std::vector<Alias> aliases;
  /// By root: its class; by class: its buffer.
  std::vector<unsigned> classes;
  std::vector<SharedBuffer> shared;
  std::vector<std::vector<unsigned>> members;
  std::map<unsigned, unsigned> bufferIndex;
  std::vector<ArenaRequest> requests;
  std::vector<unsigned> requestBuffer;
  BufferPlan plan;
};

TimeIntervals SharedBuffer::times() const {
  TimeIntervals times;
  for (const LiveInterval &interval : intervals) {
    if (!times.empty() && interval.begin <= times.back().second)
      times.back().second = std::max(times.back().second, interval.end);
    else
      times.push_back({interval.begin, interval.end});
  }
  return times;
}

void Planner::makeClasses() {
  size_t count = function.values.size();
  classes.resize(count);
  shared.resize(count);
  members.resize(count);
  for (size_t v = 0; v < count; ++v) {
    classes[v] = v;
    members[v] = {unsigned(v)};
    shared[v].bytes = function.values[v].bytes;
    shared[v].type = function.values[v].type;
    shared[v].intervals = liveness.intervals(v);
    if (function.values[v].constant) {
      shared[v].readOnly = true;
      shared[v].space = BufferSpace::Constant;
      shared[v].index = v;
    }
  }
  for (auto [i, arg] : llvm::enumerate(function.body.args)) {
    SharedBuffer &c = shared[arg];
    c.space = BufferSpace::Argument;
    c.index = i;
    c.readOnly = llvm::none_of(
        aliases, [&](const auto &pair) { return pair.first == i; });
  }
  for (size_t v = 0; v < count; ++v) {
    const BufferLiveness::Part *part = liveness.part(v);
    if (!part)
      continue;
    assert(shared[part->argument].space == BufferSpace::Argument);
    shared[v].readOnly = true;
    shared[v].space = BufferSpace::Part;
    shared[v].index = shared[part->argument].index;
    shared[v].offset = part->offset;
  }
}

// Whether two classes are ever alive at once, except at points at which a
// member of one is permitted to use the other's buffer.
bool Planner::conflict(const SharedBuffer &a, const SharedBuffer &b) const {
  auto handsOver = [&](const LiveInterval &from, const LiveInterval &to) {
    return to.begin % 2 == 0 && from.end == to.begin + 2 &&
           liveness.permitted(to.begin / 2, to.root, from.root);
  };
  // The starts of a class's intervals ascend, so the intervals of `b` that
  // overlap one of `a` form a sliding window.
  size_t first = 0;
  for (const LiveInterval &x : a.intervals) {
    while (first < b.intervals.size() && b.intervals[first].end <= x.begin)
      ++first;
    if (first == b.intervals.size())
      break;
    for (size_t j = first; j < b.intervals.size(); ++j) {
      const LiveInterval &y = b.intervals[j];
      if (y.begin >= x.end)
        break;
      if (!handsOver(x, y) && !handsOver(y, x))
        return true;
    }
  }
  return false;
}

bool Planner::merge(unsigned a, unsigned b, bool always) {
  unsigned ca = classOf(a), cb = classOf(b);
  if (ca == cb)
    return true;
  SharedBuffer &x = shared[ca], &y = shared[cb];
  if (!always) {
    if (x.readOnly || y.readOnly || (x.space && y.space) ||
        x.bytes != y.bytes || x.type != y.type || conflict(x, y))
      return false;
  }
  // The common case: one class ends before the other begins.
  auto earlier = [](const LiveInterval &l, const LiveInterval &r) {
    return l.begin < r.begin;
  };
  std::vector<LiveInterval> &into = x.intervals, &from = y.intervals;
  if (into.empty() || from.empty() || !earlier(from.front(), into.back())) {
    llvm::append_range(into, from);
  } else if (earlier(from.back(), into.front())) {
    into.insert(into.begin(), from.begin(), from.end());
  } else {
    std::vector<LiveInterval> both;
    std::merge(into.begin(), into.end(), from.begin(), from.end(),
               std::back_inserter(both), earlier);
    into = std::move(both);
  }
  if (y.space) {
    x.space = y.space;
    x.index = y.index;
  }
  for (unsigned member : members[cb])
    classes[member] = ca;
  llvm::append_range(members[ca], members[cb]);
  members[cb].clear();
  y = {};
  return true;
}

// Inner loops first: their copies would run most often.
void Planner::mergeWishes(const std::vector<BufferLiveness::Wish> &wishes) {
  std::map<unsigned, std::vector<BufferLiveness::Wish>, std::greater<>> byDepth;
  for (const BufferLiveness::Wish &wish : wishes)
    byDepth[wish.depth].push_back(wish);
  for (const auto &[depth, group] : byDepth)
    for (const BufferLiveness::Wish &wish : group)
      merge(wish.a, wish.b);
}

void Planner::placeResults() {
  const auto &results = function.body.yields;
  plan.resultBuffer.resize(results.size());
  for (auto [k, value] : llvm::enumerate(results)) {
    if (plan.alias[k])
      continue;
    SharedBuffer &c = shared[classOf(value)];
    if (!c.space) {
      c.space = BufferSpace::Result;
      c.index = k;
    }
  }
}

// The values of one result of a segment at different calls differ only in time:
// they share as few buffers as their live ranges allow; each takes the first
// free one. This avoids packing the arena separately for each call.
void Planner::takeTurns() {
  if (function.segments.empty())
    return;
  // Whether it is a call, its segment or group, and the index of the result.
  using Use = std::tuple<bool, unsigned, size_t>;
  std::vector<std::pair<unsigned, Use>> users;
  std::vector<bool> known(shared.size());
  for (const BufferInstr &instr : function.body.instrs) {
    bool call = instr.kind == BufferInstr::Call;
    if (!call && !instr.group)
      continue;
    for (auto [k, result] : llvm::enumerate(instr.results)) {
      unsigned c = classOf(result);
      if (known[c] || shared[c].space || shared[c].intervals.empty())
        continue;
      known[c] = true;
      users.push_back({c, {call, call ? instr.callee : *instr.group, k}});
    }
  }
  auto birth = [&](unsigned c) { return shared[c].intervals.front().begin; };
  llvm::sort(users, [&](const auto &a, const auto &b) {
    return std::pair(birth(a.first), a.first) <
           std::pair(birth(b.first), b.first);
  });
  struct Slot {
    unsigned sharedBuffer;
    int64_t end;
  };
  std::map<std::tuple<Use, int64_t, unsigned>, std::vector<Slot>> slots;
  for (auto [c, use] : users) {
    auto &known = slots[{use, shared[c].bytes, shared[c].type}];
    int64_t end = shared[c].times().back().second;
    auto free = llvm::find_if(
        known, [&](const Slot &slot) { return slot.end <= birth(c); });
    if (free == known.end()) {
      known.push_back({c, end});
      continue;
    }
    merge(free->sharedBuffer, c, /*always=*/true);
    free->end = end;
  }
}

unsigned Planner::bufferOfClass(unsigned c) {
  auto [it, isNew] = bufferIndex.try_emplace(c, plan.buffers.size());
  if (!isNew)
    return it->second;
  const SharedBuffer &from = shared[c];
  PlannedBuffer buffer;
  buffer.space = from.space.value_or(BufferSpace::Arena);
  buffer.index = from.index;
  buffer.offset = from.offset;
  buffer.bytes = from.bytes;
  if (buffer.space == BufferSpace::Arena) {
    requests.push_back({from.bytes, from.times()});
    requestBuffer.push_back(plan.buffers.size());
  }
  plan.buffers.push_back(buffer);
  return it->second;
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
  std::vector<BufferCopy> pending, ordered;
  for (const CarryMove &move : moves) {
    BufferCopy copy{plan.bufferOf[move.src], plan.bufferOf[move.dst]};
    if (copy.src != copy.dst && plan.buffers[copy.src].bytes)
      pending.push_back(copy);
  }
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
    requestBuffer.push_back(spare);
    ordered.push_back({kept, spare});
    for (BufferCopy &copy : pending)
      if (copy.src == kept)
        copy.src = spare;
  }
  return ordered;
}

// A partial update without its operand's buffer starts from a copy.
void Planner::updateCopies(const BufferRegion &region, unsigned &next) {
  for (const BufferInstr &instr : region.instrs) {
    unsigned id = next++;
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

// Computes the whole plan except for offsets in the arena.
void Planner::assign(llvm::ArrayRef<Alias> wanted) {
  aliases = wanted.vec();
  makeClasses();
  for (auto [a, b] : liveness.fixed)
    merge(a, b, /*always=*/true);
  plan.alias.resize(function.body.yields.size());
  for (auto [argument, result] : aliases) {
    unsigned arg = function.body.args[argument];
    bool taken =
        llvm::is_contained(plan.alias, std::optional<unsigned>(argument));
    unsigned value = function.body.yields[result];
    // An empty share is never written, so any result may alias it.
    bool isEmpty =
        function.values[value].bytes == 0 && function.values[arg].bytes == 0;
    if (!taken && !plan.alias[result] && (isEmpty || merge(arg, value)))
      plan.alias[result] = argument;
  }
  // An argument whose buffer no result reuses belongs to the caller: never
  // write it.
  for (auto [argument, result] : aliases)
    if (!llvm::is_contained(plan.alias, std::optional<unsigned>(argument)))
      shared[classOf(function.body.args[argument])].readOnly = true;
  mergeWishes(liveness.requiredInPlace);
  mergeWishes(liveness.carries);
  mergeWishes(liveness.inits);
  mergeWishes(liveness.optionalInPlace);
  placeResults();
  takeTurns();
  assignBuffers();
  copies();
}

BufferPlan Planner::run(llvm::ArrayRef<Alias> wanted) {
  assign(wanted);
  std::vector<ArenaCalls> calls;
  for (auto [s, segment] : llvm::enumerate(function.segments)) {
    calls.push_back({segment->duration, liveness.calls[s]});
    for (const SegmentPlan::Local &local : segment->locals)
      requests.push_back({local.bytes, local.alive, unsigned(s)});
  }
  std::vector<int64_t> packed = packArena(requests, calls, plan.arenaBytes);
  llvm::ArrayRef<int64_t> offsets = packed;
  for (unsigned buffer : requestBuffer) {
    plan.buffers[buffer].offset = offsets.front();
    offsets = offsets.drop_front();
  }
  for (const SegmentPlan *segment : function.segments) {
    size_t count = segment->locals.size();
    plan.locals.push_back(offsets.take_front(count).vec());
    offsets = offsets.drop_front(count);
  }
  return std::move(plan);
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
  assign(findAliases(mayOverwrite));
  SegmentPlan segment;
  segment.function = &function;
  segment.duration = liveness.end;
  for (auto [request, buffer] : llvm::zip_equal(requests, requestBuffer)) {
    plan.buffers[buffer].index = segment.locals.size();
    segment.locals.push_back({request.bytes, std::move(request.intervals)});
  }
  for (unsigned argument : function.body.args)
    segment.operandEnd.push_back(liveness.intervals(argument).back().end);
  for (auto [k, value] : llvm::enumerate(function.body.yields)) {
    bool there = plan.resultBuffer[k] == plan.bufferOf[value];
    // Values in other buffers are copied to the result at the end.
    segment.resultAlive.push_back(
        there ? shared[classOf(value)].times()
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

} // namespace

BufferPlan planBuffers(const BufferFunction &function,
                       llvm::ArrayRef<std::pair<unsigned, unsigned>> aliases) {
  return Planner(function).run(aliases);
}

SegmentPlan planSegment(const BufferFunction &function,
                        llvm::ArrayRef<unsigned> mayOverwrite) {
  return Planner(function).runSegment(mayOverwrite);
}

} // namespace whale
