//===- BufferBuilder.h - Programs for tests of the buffer planner -*- C++ -*-=//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions for tests of the buffer planner, built value by value, and random
// ones. Whatever a test plans with a builder is also verified: a plan is run on
// symbols, so that each read must find its value, and each alias that the
// planner granted must be in the plan.
//
// RandomBuffers draws instructions, views, calls, branches and loops of up to
// three levels, over values of mostly 64 bytes, so that they compete for the
// same places. It finds wrong plans; how small an arena is, and when nothing is
// copied, only tests by hand can say.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_STEP_BUFFERBUILDER_H
#define WHALE_UNITTESTS_STEP_BUFFERBUILDER_H

#include "whale/Step/BufferPlan.h"

#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <random>

namespace whale {

/// Builds functions value by value.
struct BufferBuilder {
  BufferFunction function;

  unsigned value(int64_t bytes, bool constant = false) {
    function.values.push_back({bytes, constant});
    return function.values.size() - 1;
  }
  unsigned argument(int64_t bytes) {
    function.body.args.push_back(value(bytes));
    return function.body.args.back();
  }
  unsigned op(BufferRegion &region, llvm::ArrayRef<unsigned> operands,
              int64_t bytes, llvm::ArrayRef<InPlace> inPlace = {}) {
    BufferInstr instr;
    instr.operands.assign(operands.begin(), operands.end());
    instr.results.push_back(value(bytes));
    instr.inPlace.assign(inPlace.begin(), inPlace.end());
    region.instrs.push_back(instr);
    return instr.results[0];
  }
  unsigned op(llvm::ArrayRef<unsigned> operands, int64_t bytes,
              llvm::ArrayRef<InPlace> inPlace = {}) {
    return op(function.body, operands, bytes, inPlace);
  }
  unsigned constant(int64_t bytes) {
    BufferInstr instr;
    instr.results.push_back(value(bytes, true));
    function.body.instrs.push_back(instr);
    return instr.results[0];
  }
  unsigned view(BufferRegion &region, unsigned operand) {
    unsigned result = op(region, {operand}, function.values[operand].bytes);
    region.instrs.back().kind = BufferInstr::View;
    return result;
  }
  /// The bytes from `offset` on of an argument.
  unsigned part(BufferRegion &region, unsigned argument, int64_t offset,
                int64_t bytes) {
    unsigned result = op(region, {argument}, bytes);
    region.instrs.back().kind = BufferInstr::View;
    region.instrs.back().offset = offset;
    return result;
  }
  unsigned pack(BufferRegion &region, llvm::ArrayRef<unsigned> parts) {
    int64_t bytes = 0;
    for (unsigned part : parts)
      bytes += function.values[part].bytes;
    unsigned whole = op(region, parts, bytes);
    region.instrs.back().kind = BufferInstr::Pack;
    return whole;
  }
  llvm::SmallVector<unsigned, 2> unpack(BufferRegion &region, unsigned whole,
                                        llvm::ArrayRef<int64_t> bytes) {
    BufferInstr instr;
    instr.kind = BufferInstr::Unpack;
    instr.operands = {whole};
    for (int64_t part : bytes)
      instr.results.push_back(value(part));
    region.instrs.push_back(instr);
    return instr.results;
  }
  /// An operation in place on the parts side by side.
  llvm::SmallVector<unsigned, 2> together(BufferRegion &region,
                                          llvm::ArrayRef<unsigned> parts) {
    llvm::SmallVector<int64_t> bytes;
    for (unsigned part : parts)
      bytes.push_back(function.values[part].bytes);
    unsigned whole = pack(region, parts);
    whole = op(region, {whole}, function.values[whole].bytes, {{0, 0}});
    return unpack(region, whole, bytes);
  }
  llvm::SmallVector<unsigned, 2> call(BufferRegion &region, unsigned callee,
                                      llvm::ArrayRef<unsigned> operands) {
    const BufferFunction &segment = *function.segments[callee]->function;
    BufferInstr instr;
    instr.kind = BufferInstr::Call;
    instr.callee = callee;
    instr.operands.assign(operands.begin(), operands.end());
    for (unsigned result : segment.body.yields)
      instr.results.push_back(value(segment.values[result].bytes));
    region.instrs.push_back(instr);
    return instr.results;
  }
  llvm::SmallVector<unsigned, 2> call(unsigned callee,
                                      llvm::ArrayRef<unsigned> operands) {
    return call(function.body, callee, operands);
  }
  /// A loop without a body yet; the condition reads carried value 0.
  BufferInstr loop(llvm::ArrayRef<unsigned> inits) {
    BufferInstr instr;
    instr.kind = BufferInstr::While;
    instr.operands.assign(inits.begin(), inits.end());
    instr.regions.resize(2);
    for (unsigned init : inits) {
      int64_t bytes = function.values[init].bytes;
      instr.regions[0].args.push_back(value(bytes));
      instr.regions[1].args.push_back(value(bytes));
      instr.results.push_back(value(bytes));
    }
    unsigned predicate = op(instr.regions[0], {instr.regions[0].args[0]}, 1);
    instr.regions[0].yields.push_back(predicate);
    return instr;
  }
  void results(llvm::ArrayRef<unsigned> values) {
    function.body.yields.assign(values.begin(), values.end());
  }
  BufferPlan plan(llvm::ArrayRef<std::pair<unsigned, unsigned>> aliases = {}) {
    BufferPlan plan = planBuffers(function, aliases);
    std::optional<std::string> error = verifyBufferPlan(function, plan);
    EXPECT_FALSE(error) << *error;
    size_t granted = 0;
    for (auto [argument, result] : BufferPlanner(function).grant(aliases)) {
      EXPECT_EQ(plan.alias[result], argument);
      ++granted;
    }
    EXPECT_EQ(granted,
              plan.alias.size() - llvm::count(plan.alias, std::nullopt));
    return plan;
  }
  SegmentPlan planSegment(llvm::ArrayRef<unsigned> mayOverwrite = {}) {
    SegmentPlan plan = whale::planSegment(function, mayOverwrite);
    std::optional<std::string> error = verifySegmentPlan(plan);
    EXPECT_FALSE(error) << *error;
    return plan;
  }
};

inline size_t copyCount(const BufferPlan &plan) {
  size_t count = 0;
  for (const auto &copies : plan.before)
    count += copies.size();
  for (const auto &copies : plan.atEnd)
    count += copies.size();
  return count;
}

/// Random programs with nested loops and branches; with calls if the function
/// has segments, with parts of argument `whole` (of 128 bytes) if there is one.
struct RandomBuffers {
  BufferBuilder b;
  std::mt19937 engine;
  unsigned pick(unsigned count) { return engine() % count; }

  void fill(BufferRegion &region, std::vector<unsigned> visible, int depth) {
    unsigned count = 2 + pick(6);
    for (unsigned i = 0; i < count; ++i) {
      if (whole && pick(8) == 0)
        visible.push_back(b.part(region, *whole, 64 * pick(2), 64));
      size_t segments = b.function.segments.size();
      if (segments && pick(3) == 0) {
        unsigned callee = pick(segments);
        llvm::SmallVector<unsigned> operands;
        for (size_t o = b.function.segments[callee]->operandEnd.size(); o--;)
          operands.push_back(any(visible));
        llvm::append_range(visible, b.call(region, callee, operands));
        continue;
      }
      if (packs && pick(4) == 0) {
        llvm::SmallVector<unsigned> parts;
        for (unsigned p = 0, n = 1 + pick(3); p < n; ++p)
          parts.push_back(any(visible));
        llvm::append_range(visible, b.together(region, parts));
        continue;
      }
      unsigned kind = pick(depth < 3 ? 8 : 6);
      if (kind == 6) {
        BufferInstr instr;
        instr.kind = BufferInstr::Case;
        instr.operands = {any(visible)};
        instr.regions.resize(1 + pick(3));
        unsigned results = 1 + pick(2);
        for (BufferRegion &way : instr.regions)
          nested(way, visible, results, depth);
        for (unsigned r = 0; r < results; ++r)
          instr.results.push_back(b.value(64));
        region.instrs.push_back(instr);
        visible.insert(visible.end(), instr.results.begin(),
                       instr.results.end());
      } else if (kind == 7) {
        llvm::SmallVector<unsigned> inits;
        for (unsigned c = 0, n = 1 + pick(4); c < n; ++c)
          inits.push_back(any(visible));
        BufferInstr instr = b.loop(inits);
        nested(instr.regions[1], visible, inits.size(), depth);
        region.instrs.push_back(instr);
        visible.insert(visible.end(), instr.results.begin(),
                       instr.results.end());
      } else if (kind == 5) {
        visible.push_back(b.view(region, any(visible)));
      } else {
        llvm::SmallVector<unsigned> operands{any(visible), any(visible)};
        llvm::SmallVector<InPlace> inPlace;
        if (kind < 4)
          inPlace.push_back({0, kind % 2, kind < 2});
        visible.push_back(b.op(region, operands, 64, inPlace));
      }
    }
    last = visible;
  }
  void nested(BufferRegion &region, std::vector<unsigned> visible,
              unsigned yields, int depth) {
    visible.insert(visible.end(), region.args.begin(), region.args.end());
    fill(region, visible, depth + 1);
    std::vector<unsigned> all = last;
    for (unsigned y = 0; y < yields; ++y)
      region.yields.push_back(any(all));
  }
  unsigned any(const std::vector<unsigned> &values) {
    return values[pick(values.size())];
  }
  /// Makes a function of three arguments and three results, and plans it.
  void planFunction() {
    std::vector<unsigned> visible;
    for (int a = 0; a < 3; ++a)
      visible.push_back(b.argument(64));
    visible.push_back(b.constant(64));
    fill(b.function.body, visible, 0);
    std::vector<unsigned> all = last;
    for (int r = 0; r < 3; ++r)
      b.function.body.yields.push_back(any(all));
    std::pair<unsigned, unsigned> aliases[] = {{0, 0}, {1, 2}};
    b.plan(aliases);
  }
  std::vector<unsigned> last;
  std::optional<unsigned> whole;
  /// Whether values are packed and unpacked.
  bool packs = false;
};

} // namespace whale

#endif // WHALE_UNITTESTS_STEP_BUFFERBUILDER_H
