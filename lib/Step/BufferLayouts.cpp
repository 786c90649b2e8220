//===- BufferLayouts.cpp - Where the locals of calls are --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the calls of each segment in a schedule, with the buffers of their
// operands and results, and the requests for these. Out: a layout of its locals
// for each call, requests for the locals and, once these have offsets, the
// offsets of the locals in each layout.
//
// Each layout asks for places of its own for the large locals of a segment; the
// small ones are at the same places in all of them. Linear in calls and in what
// they read and write, times the logarithm.
//
//===----------------------------------------------------------------------===//

#include "BufferLayouts.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

namespace whale {

/// How many places the locals of one segment have in all layouts: packing is
/// quadratic in them. With more layouts, what one call frees is also less of
/// what is alive.
static constexpr size_t mostPlaces = 2048;

/// Whether all the time from `begin` to `end` is in the intervals.
static bool isAlive(const TimeIntervals &intervals, int64_t begin,
                    int64_t end) {
  auto next = llvm::upper_bound(intervals, std::pair(begin, INT64_MAX));
  if (next == intervals.begin())
    return false;
  int64_t reached = std::prev(next)->second;
  for (; reached < end && next != intervals.end() && next->first <= reached;
       ++next)
    reached = std::max(reached, next->second);
  return reached >= end;
}

void BufferLayouts::findCalls(const BufferRegion &region, unsigned &next) {
  for (const BufferInstr &instr : region.instrs) {
    if (instr.kind == BufferInstr::Call)
      calls[instr.callee].push_back({&instr, next});
    ++next;
    for (const BufferRegion &inner : instr.regions)
      findCalls(inner, next);
  }
}

/// Returns the requests in which operands die in a call, or results are born.
std::set<size_t>
BufferLayouts::findTurnover(llvm::ArrayRef<ArenaRequest> requests,
                            const BufferInstr &call, int64_t begin) const {
  int64_t end = begin + function.segments[call.callee]->duration;
  std::set<size_t> found;
  auto see = [&](unsigned value) {
    unsigned buffer = plan.bufferOf[value];
    while (plan.buffers[buffer].whole)
      buffer = *plan.buffers[buffer].whole;
    auto request = requestOf.find(buffer);
    if (request != requestOf.end() &&
        !isAlive(requests[request->second].intervals, begin, end))
      found.insert(request->second);
  };
  for (unsigned value : call.operands)
    see(value);
  for (unsigned value : call.results)
    see(value);
  return found;
}

// With one layout, the locals are nowhere where an operand of any call is
// before it dies in the call, or a result before it is born. With more, they
// can be where those of their own call are: calls in which the same large
// buffers die or are born have one layout. That is done where it may save 1 %
// of `peak`, what is alive at once besides locals.
void BufferLayouts::choose(unsigned segment,
                           llvm::ArrayRef<ArenaRequest> requests,
                           int64_t peak) {
  std::map<std::vector<size_t>, unsigned> layouts;
  std::vector<unsigned> chosen;
  int64_t freed = 0, local = 0;
  for (auto [call, begin] :
       llvm::zip_equal(calls[segment], liveness.calls[segment])) {
    int64_t sum = 0, largest = 0;
    std::vector<size_t> large;
    std::set<size_t> turnover = findTurnover(requests, *call.instr, begin);
    for (size_t request : turnover) {
      sum += requests[request].bytes;
      largest = std::max(largest, requests[request].bytes);
    }
    for (size_t request : turnover)
      if (isLarge(requests[request].bytes, largest))
        large.push_back(request);
    freed = std::max(freed, sum);
    chosen.push_back(
        layouts.try_emplace(std::move(large), layouts.size()).first->second);
  }
  for (const SegmentPlan::Local &own : function.segments[segment]->locals)
    local += own.bytes;
  size_t places = layouts.size() * function.segments[segment]->locals.size();
  if (places > mostPlaces || std::min(freed, local) < peak / 100)
    chosen.assign(chosen.size(), 0);
  for (auto [call, begin, layout] :
       llvm::zip_equal(calls[segment], liveness.calls[segment], chosen)) {
    plan.layout[call.number] = layout;
    if (begins[segment].size() <= layout)
      begins[segment].emplace_back();
    begins[segment][layout].push_back(begin);
  }
}

// Small locals have one place in all layouts.
void BufferLayouts::request(
    std::vector<ArenaRequest> &requests,
    llvm::ArrayRef<llvm::SmallVector<unsigned, 1>> buffers) {
  for (auto [r, placed] : llvm::enumerate(buffers))
    for (unsigned buffer : placed)
      requestOf[buffer] = r;
  const int64_t peak = mostAlive(requests, {}, function.alignment);
  size_t count = function.segments.size();
  calls.resize(count);
  begins.resize(count);
  localRequests.resize(count);
  unsigned next = 0;
  findCalls(function.body, next);
  for (unsigned s = 0; s < count; ++s) {
    choose(s, requests, peak);
    arenaCalls.push_back({function.segments[s]->duration, liveness.calls[s]});
  }
  for (unsigned s = 0; s < count; ++s) {
    llvm::ArrayRef<SegmentPlan::Local> locals = function.segments[s]->locals;
    int64_t largest = 0;
    for (const SegmentPlan::Local &local : locals)
      largest = std::max(largest, local.bytes);
    auto first = unsigned(arenaCalls.size());
    auto &layouts = localRequests[s];
    layouts.resize(std::max<size_t>(begins[s].size(), 1));
    if (layouts.size() > 1)
      for (llvm::ArrayRef<int64_t> times : begins[s])
        arenaCalls.push_back({function.segments[s]->duration, times, s});
    for (const SegmentPlan::Local &local : locals) {
      bool isDivided = layouts.size() > 1 && isLarge(local.bytes, largest);
      for (auto [l, own] : llvm::enumerate(layouts)) {
        if (isDivided || l == 0)
          requests.push_back(
              {local.bytes, local.alive, isDivided ? first + unsigned(l) : s});
        own.push_back(requests.size() - 1);
      }
    }
  }
}

void BufferLayouts::placeLocals(unsigned segment,
                                llvm::ArrayRef<int64_t> offsets) {
  auto &layouts = plan.locals.emplace_back();
  std::vector<unsigned> numbers;
  for (llvm::ArrayRef<size_t> locals : localRequests[segment]) {
    std::vector<int64_t> own;
    for (size_t request : locals)
      own.push_back(offsets[request]);
    numbers.push_back(llvm::find(layouts, own) - layouts.begin());
    if (numbers.back() == layouts.size())
      layouts.push_back(std::move(own));
  }
  for (const Call &call : calls[segment]) {
    unsigned &layout = plan.layout[call.number];
    layout = numbers[layout];
  }
}

void BufferLayouts::place(llvm::ArrayRef<int64_t> offsets) {
  for (unsigned s = 0; s < function.segments.size(); ++s)
    placeLocals(s, offsets);
}

} // namespace whale
