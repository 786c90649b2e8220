//===- BufferPlan.cpp - Which value lives where -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values are merged into classes that share a buffer, in the order of what a
// copy would cost: results in donated arguments, partial updates, loop-carried
// values, then whatever may be done in place. Classes without a buffer get one
// in the arena. What could not be merged becomes copies.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/BufferPlan.h"

#include "BufferArena.h"
#include "BufferLiveness.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

namespace whale {
namespace {

/// Roots that share a buffer; `intervals` ascend.
struct SharedBuffer {
  std::vector<LiveInterval> intervals;
  int64_t bytes = 0;
  unsigned type = 0;
  bool readOnly = false;
  std::optional<BufferSpace> space;
  unsigned index = 0;
};

class Planner {
public:
  Planner(const BufferFunction &function,
          llvm::ArrayRef<std::pair<unsigned, unsigned>> aliases)
      : function(function), liveness(function), aliases(aliases) {}

  BufferPlan run();

private:
  void makeClasses();
  bool merge(unsigned a, unsigned b, bool always = false);
  bool conflict(const SharedBuffer &a, const SharedBuffer &b) const;
  unsigned classOf(unsigned value) const {
    return classes[liveness.root(value)];
  }
  void mergeWishes(const std::vector<BufferLiveness::Wish> &wishes);
  void placeResults();
  void assignBuffers();
  unsigned bufferOfClass(unsigned c);
  void copies();
  std::vector<BufferCopy> sequence(llvm::ArrayRef<CarryMove> moves,
                                   int64_t point);
  void updateCopies(const BufferRegion &region, unsigned &instr);

  const BufferFunction &function;
  BufferLiveness liveness;
  llvm::ArrayRef<std::pair<unsigned, unsigned>> aliases;
  /// By root: the class, and by class its contents.
  std::vector<unsigned> classes;
  std::vector<SharedBuffer> shared;
  std::vector<std::vector<unsigned>> members;
  std::map<unsigned, unsigned> bufferIndex;
  std::vector<ArenaRequest> requests;
  std::vector<unsigned> requestBuffer;
  BufferPlan plan;
};

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
}

// Whether two classes are ever alive at once, but for the points at which one
// member takes over another's buffer.
bool Planner::conflict(const SharedBuffer &a, const SharedBuffer &b) const {
  auto handsOver = [&](const LiveInterval &from, const LiveInterval &to) {
    return to.begin % 2 == 0 && from.end == to.begin + 2 &&
           liveness.permitted(to.begin / 2, to.root, from.root);
  };
  // Both the begins and the ends of a class ascend, so the intervals of `b`
  // that meet one of `a` are a window that moves on.
  size_t first = 0;
  for (const LiveInterval &x : a.intervals) {
    while (first < b.intervals.size() && b.intervals[first].end <= x.begin)
      ++first;
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
  std::vector<LiveInterval> both;
  std::merge(x.intervals.begin(), x.intervals.end(), y.intervals.begin(),
             y.intervals.end(), std::back_inserter(both),
             [](const LiveInterval &l, const LiveInterval &r) {
               return l.begin < r.begin;
             });
  x.intervals = std::move(both);
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

// Inner loops first: their copies would run the most often.
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

unsigned Planner::bufferOfClass(unsigned c) {
  auto [it, isNew] = bufferIndex.try_emplace(c, plan.buffers.size());
  if (!isNew)
    return it->second;
  const SharedBuffer &from = shared[c];
  PlannedBuffer buffer;
  buffer.space = from.space.value_or(BufferSpace::Arena);
  buffer.index = from.index;
  buffer.bytes = from.bytes;
  if (buffer.space == BufferSpace::Arena) {
    ArenaRequest request{from.bytes, {}};
    for (const LiveInterval &interval : from.intervals) {
      if (!request.intervals.empty() &&
          interval.begin <= request.intervals.back().second)
        request.intervals.back().second =
            std::max(request.intervals.back().second, interval.end);
      else
        request.intervals.push_back({interval.begin, interval.end});
    }
    requests.push_back(std::move(request));
    requestBuffer.push_back(plan.buffers.size());
  }
  plan.buffers.push_back(buffer);
  return it->second;
}

void Planner::assignBuffers() {
  plan.bufferOf.resize(function.values.size());
  // Arguments lead the list, so that their numbers are plain to see.
  for (unsigned arg : function.body.args)
    bufferOfClass(classOf(arg));
  for (size_t v = 0; v < function.values.size(); ++v)
    plan.bufferOf[v] = bufferOfClass(classOf(v));
  for (auto [k, value] : llvm::enumerate(function.body.yields)) {
    unsigned source = plan.bufferOf[value];
    const PlannedBuffer &buffer = plan.buffers[source];
    bool there = plan.alias[k] ||
                 (buffer.space == BufferSpace::Result && buffer.index == k);
    plan.resultBuffer[k] = there ? source : plan.buffers.size();
    if (!there)
      plan.buffers.push_back(
          {BufferSpace::Result, 0, unsigned(k), buffer.bytes});
  }
}

// Orders parallel copies so that none overwrites what a later one reads; a
// cycle goes through a buffer of its own.
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

// A partial update that did not get its operand's buffer starts from a copy.
void Planner::updateCopies(const BufferRegion &region, unsigned &next) {
  for (const BufferInstr &instr : region.instrs) {
    unsigned id = next++;
    for (const InPlace &pair : instr.inPlace) {
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

BufferPlan Planner::run() {
  makeClasses();
  for (auto [a, b] : liveness.fixed)
    merge(a, b, /*always=*/true);
  plan.alias.resize(function.body.yields.size());
  for (auto [argument, result] : aliases) {
    unsigned arg = function.body.args[argument];
    bool taken =
        llvm::is_contained(plan.alias, std::optional<unsigned>(argument));
    if (!taken && !plan.alias[result] &&
        merge(arg, function.body.yields[result]))
      plan.alias[result] = argument;
  }
  // The caller keeps an argument that no result takes over: it is not written.
  for (auto [argument, result] : aliases)
    if (!llvm::is_contained(plan.alias, std::optional<unsigned>(argument)))
      shared[classOf(function.body.args[argument])].readOnly = true;
  mergeWishes(liveness.requiredInPlace);
  mergeWishes(liveness.carries);
  mergeWishes(liveness.inits);
  mergeWishes(liveness.optionalInPlace);
  placeResults();
  assignBuffers();
  copies();
  std::vector<int64_t> offsets = packArena(requests, plan.arenaBytes);
  for (auto [offset, buffer] : llvm::zip_equal(offsets, requestBuffer))
    plan.buffers[buffer].offset = offset;
  return std::move(plan);
}

} // namespace

BufferPlan planBuffers(const BufferFunction &function,
                       llvm::ArrayRef<std::pair<unsigned, unsigned>> aliases) {
  return Planner(function, aliases).run();
}

} // namespace whale
