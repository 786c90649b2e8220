//===- BufferVerifierCalls.cpp - Runs calls of segments on symbols --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks calls: runs the segment in the buffers that the call passes. Calls
// with the same buffers behave the same, so each combination is run once.
//
//===----------------------------------------------------------------------===//

#include "BufferVerifier.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace whale {

/// The byte ranges of a segment's locals at these offsets.
static TimeIntervals findRanges(const SegmentPlan &segment,
                                llvm::ArrayRef<int64_t> offsets) {
  TimeIntervals ranges, merged;
  for (auto [local, offset] : llvm::zip_equal(segment.locals, offsets))
    if (local.bytes)
      ranges.push_back({offset, offset + local.bytes});
  llvm::sort(ranges);
  for (auto [begin, end] : ranges) {
    if (!merged.empty() && begin <= merged.back().second)
      merged.back().second = std::max(merged.back().second, end);
    else
      merged.push_back({begin, end});
  }
  return merged;
}

void BufferVerifier::collectLocals() {
  for (auto [s, segment] : llvm::enumerate(function.segments)) {
    std::vector<TimeIntervals> &ofLayouts = localRanges.emplace_back();
    for (const std::vector<int64_t> &offsets : plan.locals[s])
      ofLayouts.push_back(findRanges(*segment, offsets));
  }
}

void BufferVerifier::eraseLocals(unsigned segment, unsigned layout) {
  for (auto [begin, end] : localRanges[segment][layout])
    erase(BufferSpace::Arena, 0, begin, end);
}

// Calls differ in the locations of the segment's buffers. In the arena the
// offsets matter; outside it, only which of the buffers are equal.
bool BufferVerifier::call(const BufferInstr &instr, Ids ids) {
  const SegmentPlan &segment = *function.segments[instr.callee];
  const unsigned layout = plan.layout[ids.instr];
  if (!updates(instr, segment.inPlace))
    return false;
  std::vector<unsigned> operands;
  for (unsigned operand : instr.operands)
    operands.push_back(plan.bufferOf[operand]);
  for (const InPlace &pair : segment.inPlace)
    operands[pair.operand] = plan.bufferOf[instr.results[pair.result]];
  // Copies to the operands' buffers may have overwritten other operands.
  for (auto [value, buffer] : llvm::zip_equal(instr.operands, operands))
    if (buffer == plan.bufferOf[value] && !read(value, "a call reads"))
      return false;
  std::vector<unsigned> passed = operands;
  for (unsigned result : instr.results)
    passed.push_back(plan.bufferOf[result]);
  std::vector<int64_t> locations{instr.callee, layout};
  std::map<std::pair<BufferSpace, unsigned>, int64_t> others;
  for (unsigned number : passed) {
    const PlannedBuffer &b = plan.buffers[number];
    bool part = b.space == BufferSpace::Part;
    BufferSpace space = part ? BufferSpace::Argument : b.space;
    int64_t other =
        others.try_emplace({space, b.index}, others.size()).first->second;
    locations.push_back(space == BufferSpace::Arena ? b.offset
                                                    : -1 - 2 * other - part);
  }
  if (ran.insert(std::move(locations)).second) {
    BufferPlan there = segment.plan;
    there.alias = plan.alias;
    for (PlannedBuffer &b : there.buffers) {
      int64_t bytes = b.bytes;
      if (b.space == BufferSpace::Arena)
        b.offset = plan.locals[instr.callee][layout][b.index];
      else if (b.space == BufferSpace::Argument)
        b = plan.buffers[operands[b.index]];
      else if (b.space == BufferSpace::Result)
        b = plan.buffers[plan.bufferOf[instr.results[b.index]]];
      else
        // Distinct from the caller's constants, which may be passed.
        b.index += function.values.size();
      if (b.bytes != bytes)
        return fail("a call passes a buffer of another size");
      if (!isInside(b))
        return fail("a local is outside the arena");
    }
    if (auto wrong = BufferVerifier(*segment.function, there).runCall())
      return fail("in a call of segment " + llvm::Twine(instr.callee) + ": " +
                  *wrong);
  }
  eraseLocals(instr.callee, layout);
  return results(instr);
}

std::optional<std::string> BufferVerifier::runCall() {
  collectConstants();
  for (unsigned arg : function.body.args) {
    const PlannedBuffer &b = plan.buffers[plan.bufferOf[arg]];
    if (b.bytes == 0)
      continue;
    Held &held = memory[address(plan.bufferOf[arg])];
    held.end = b.offset + b.bytes;
    held.values.insert(arg);
  }
  if (!region(function.body, {0, 0}) || !copyAll(plan.atEnd[0]))
    return error;
  for (auto [k, value] : llvm::enumerate(function.body.yields))
    if (plan.buffers[plan.resultBuffer[k]].bytes &&
        !find(plan.resultBuffer[k], value))
      return "result " + std::to_string(k) + " is not in its buffer";
  return std::nullopt;
}

std::optional<std::string> verifySegmentPlan(const SegmentPlan &segment) {
  BufferPlan plan = segment.plan;
  std::vector<int64_t> offsets;
  for (const SegmentPlan::Local &local : segment.locals) {
    offsets.push_back(plan.arenaBytes);
    plan.arenaBytes += llvm::alignTo(local.bytes, segment.function->alignment);
  }
  for (PlannedBuffer &buffer : plan.buffers)
    if (buffer.space == BufferSpace::Arena) {
      if (buffer.index >= segment.locals.size() ||
          buffer.bytes > segment.locals[buffer.index].bytes)
        return "a buffer is larger than its local";
      buffer.offset = offsets[buffer.index];
    }
  return BufferVerifier(*segment.function, plan).run();
}

} // namespace whale
