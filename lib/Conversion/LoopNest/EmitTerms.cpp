//===- EmitTerms.cpp - The terms of sums in blocks ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a nest whose sums are formed as EmitSums.cpp says, and how far each group
// of its reduced dimensions is. Out: code that finds where in the loops the
// next terms are, computes them and adds them to the partial sums. Lanes whose
// terms are no single run of the loops take them from a small array that is
// filled before.
//
// Cost: a partial sum is loaded and stored once for several terms: up to kMost,
// or kMostAcross where operands are across the columns, with kMaxUnrolled
// operations in all, of which a function counts as kMathSize. A group of
// several loops takes a division for each but the first, an array of terms a
// store and a load for each term.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace whale;

/// Operations of the body, times the terms that are added at a time.
static constexpr int64_t kMaxUnrolled = 64;
/// Terms that are added at a time at most; where operands are across the
/// columns as many as fill a cache line.
static constexpr int64_t kMost = 8, kMostAcross = 16;
/// What a math function counts for.
static constexpr int64_t kMathSize = 64;

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

/// Sets the counters of some loops of a group to element `index` of these.
void LoopNest::setLoops(OpBuilder &b, ArrayRef<unsigned> numbers, Value index) {
  for (unsigned loop : llvm::reverse(numbers.drop_front())) {
    Value size = constantIndex(b, loc, loops[loop].size);
    counters[loop] = arith::RemUIOp::create(b, loc, index, size);
    index = arith::DivUIOp::create(b, loc, index, size);
  }
  counters[numbers.front()] = index;
}

/// Sets the counters of a group's loops to element `index` of it.
void LoopNest::setGroup(OpBuilder &b, unsigned number, Value index) {
  setLoops(b, groups[number].loops, index);
  groups[number].index = index;
}

/// Whether `access` goes through all loops of a group in steps of one size.
bool LoopNest::isOneRun(const Group &group, const Access &access) const {
  for (size_t i = 1; i < group.loops.size(); ++i)
    if (access.coefficients[loops[group.loops[i - 1]].lastDim] !=
        loops[group.loops[i]].size *
            access.coefficients[loops[group.loops[i]].lastDim])
      return false;
  return true;
}

/// The step of `access` along the elements of a group, by whose index it can be
/// found; 0 if it can't.
int64_t LoopNest::getGroupStride(const Group &group,
                                 const Access &access) const {
  return group.index && isOneRun(group, access)
             ? access.coefficients[loops[group.loops.back()].lastDim]
             : 0;
}

/// Whether `access` depends on the lane or the column.
bool LoopNest::variesInside(const Access &access) const {
  if (innerParallel && access.coefficients[loops.back().lastDim] != 0)
    return true;
  return order.lanes > 1 &&
         llvm::any_of(groups.back().loops, [&](unsigned loop) {
           return access.coefficients[loops[loop].lastDim] != 0;
         });
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

/// Computes `count` terms from element `first` of the last group on, one run of
/// its innermost loop after the other.
void LoopNest::keepTerms(OpBuilder &b, Value first, int64_t count) {
  SmallVector<Value> savedLoaded(loaded), savedCounters(counters);
  for (auto [place, group] : llvm::enumerate(ArrayRef(groups).drop_back()))
    setGroup(b, place, group.position);
  ArrayRef<unsigned> numbers = groups.back().loops;
  Value zero = constantIndex(b, loc, 0), one = constantIndex(b, loc, 1);
  Value size = constantIndex(b, loc, loops[numbers.back()].size);
  Value end =
      arith::AddIOp::create(b, loc, first, constantIndex(b, loc, count));
  Value firstRun = arith::DivUIOp::create(b, loc, first, size);
  Value lastRun = arith::DivUIOp::create(
      b, loc, arith::SubIOp::create(b, loc, end, one), size);
  makeFor(
      b, firstRun, arith::AddIOp::create(b, loc, lastRun, one), 1,
      [&](Value run) {
        setLoops(b, numbers.drop_back(), run);
        for (auto [read, access] : llvm::enumerate(reads))
          if (access.buffer != ~0u && !loaded[read] &&
              access.coefficients[loops[numbers.back()].lastDim] == 0)
            loaded[read] = load(b, access, loops.size(),
                                op.getRegionInputArgs()[read].getType());
        // Where the run begins after (or, below 0, before) the first term.
        Value start = arith::SubIOp::create(
            b, loc, arith::MulIOp::create(b, loc, run, size), first);
        Value from = arith::MaxSIOp::create(
            b, loc, zero, arith::SubIOp::create(b, loc, zero, start));
        Value to = arith::MinSIOp::create(
            b, loc, size,
            arith::SubIOp::create(b, loc, constantIndex(b, loc, count), start));
        makeFor(b, from, to, 1, [&](Value counter) {
          counters[numbers.back()] = counter;
          SmallVector<Value> neutral;
          for (Sum &sum : sums)
            neutral.push_back(makeNeutral(b, sum.combiner));
          Value place = arith::AddIOp::create(b, loc, start, counter);
          for (auto [sum, term] :
               llvm::zip_equal(sums, emitElement(b, loops.size(), neutral)))
            memref::StoreOp::create(b, loc, term, sum.terms, place);
        });
        loaded = savedLoaded;
      });
  loaded = savedLoaded;
  counters = savedCounters;
  for (Group &group : groups)
    group.index = {};
}

/// Adds `count` steps of the terms that are kept, from step `first` on.
void LoopNest::addKept(OpBuilder &b, Value first, int64_t count, int64_t lanes,
                       unsigned level, bool fresh) {
  Value start =
      arith::MulIOp::create(b, loc, first, constantIndex(b, loc, order.lanes));
  overSums(b, lanes, [&](Value lane, Value, Value place) {
    for (Sum &sum : sums) {
      Value value;
      if (!fresh)
        value = memref::LoadOp::create(b, loc, sum.arrays[level], place);
      for (int64_t step = 0; step < count; ++step) {
        Value from = arith::AddIOp::create(
            b, loc, arith::AddIOp::create(b, loc, start, lane),
            constantIndex(b, loc, step * order.lanes));
        Value term = memref::LoadOp::create(b, loc, sum.terms, from);
        value = value ? combine(b, sum.combiner, value, term) : term;
      }
      memref::StoreOp::create(b, loc, value, sum.arrays[level], place);
    }
  });
}

/// Adds the terms of `positions` of group `number` (in steps) to the first
/// `lanes` sums of `level`; `fresh` if these have no value yet.
void LoopNest::emitTerms(OpBuilder &b, unsigned number,
                         ArrayRef<Value> positions, int64_t lanes,
                         unsigned level, bool fresh) {
  unsigned last = groups.size() - 1;
  SmallVector<Value> savedLoaded(loaded), savedCounters(counters);
  Value savedPosition = groups[number].position;
  // What is the same in all of the inner loop is computed before it.
  struct Term {
    SmallVector<Value> counters, loaded, indices;
  };
  SmallVector<Term> terms;
  for (Value position : positions) {
    groups[number].position = position;
    for (auto [place, group] : llvm::enumerate(groups))
      if (place != last || order.lanes == 1)
        setGroup(b, place, group.position);
    for (auto [read, access] : llvm::enumerate(reads))
      if (access.buffer != ~0u && !loaded[read] && !variesInside(access))
        loaded[read] = load(b, access, loops.size(),
                            op.getRegionInputArgs()[read].getType());
    Term &term = terms.emplace_back();
    term.counters = counters;
    term.loaded = loaded;
    for (Group &group : groups)
      term.indices.push_back(group.index);
    if (order.lanes > 1) {
      Value index = arith::MulIOp::create(b, loc, groups[last].position,
                                          constantIndex(b, loc, order.lanes));
      setLoops(b, groups[last].loops, index);
      term.indices.back() = index;
      term.counters = counters;
    }
    loaded = savedLoaded;
    counters = savedCounters;
  }
  overSums(b, lanes, [&](Value lane, Value column, Value place) {
    SmallVector<Value> carried;
    for (Sum &sum : sums)
      carried.push_back(
          fresh ? makeNeutral(b, sum.combiner)
                : memref::LoadOp::create(b, loc, sum.arrays[level], place)
                      .getResult());
    for (Term &term : terms) {
      counters = term.counters;
      loaded = term.loaded;
      for (auto [group, index] : llvm::zip_equal(groups, term.indices))
        group.index = index;
      if (innerParallel)
        counters.back() = arith::AddIOp::create(b, loc, sumColumn, column);
      if (order.lanes > 1 && innerParallel) {
        setGroup(b, last,
                 arith::AddIOp::create(b, loc, term.indices.back(), lane));
      } else if (order.lanes > 1) {
        // The only loop, or all are seen as one.
        Value &inner = counters[groups[last].loops.back()];
        inner = arith::AddIOp::create(b, loc, inner, lane);
        groups[last].index =
            arith::AddIOp::create(b, loc, term.indices.back(), lane);
      }
      carried = emitElement(b, loops.size(), carried);
    }
    for (auto [sum, value] : llvm::zip_equal(sums, carried))
      memref::StoreOp::create(b, loc, value, sum.arrays[level], place);
  });
  loaded = savedLoaded;
  counters = savedCounters;
  groups[number].position = savedPosition;
  for (Group &group : groups)
    group.index = {};
}

/// The next `count` steps along group `number`, several at a time.
void LoopNest::emitRun(OpBuilder &b, unsigned number, int64_t count,
                       bool fresh) {
  if (keepsTerms && number + 1 == groups.size()) {
    keepTerms(b,
              arith::MulIOp::create(b, loc, groups[number].position,
                                    constantIndex(b, loc, order.lanes)),
              count * order.lanes);
    addKept(b, constantIndex(b, loc, 0), count, order.lanes, 0, fresh);
    return;
  }
  int64_t size = 0;
  op.getRegion().walk([&](Operation *inner) {
    if (isa_and_nonnull<math::MathDialect>(inner->getDialect()))
      size += kMathSize;
    else
      size += !isa<arith::ConstantOp, linalg::YieldOp>(inner);
  });
  int64_t most = readsAcross() ? kMostAcross : kMost;
  int64_t width = std::clamp<int64_t>(kMaxUnrolled / std::max<int64_t>(size, 1),
                                      1, std::min(count, most));
  Value start = groups[number].position;
  auto terms = [&](Value first, int64_t length, bool isFresh) {
    SmallVector<Value> positions;
    for (int64_t term = 0; term < length; ++term)
      positions.push_back(arith::AddIOp::create(
          b, loc, start,
          arith::AddIOp::create(b, loc, first, constantIndex(b, loc, term))));
    emitTerms(b, number, positions, order.lanes, 0, isFresh);
  };
  int64_t first = fresh ? width : 0, whole = count / width * width;
  if (fresh)
    terms(constantIndex(b, loc, 0), width, true);
  if (first < whole)
    makeFor(b, constantIndex(b, loc, first), constantIndex(b, loc, whole),
            width, [&](Value at) { terms(at, width, false); });
  if (whole < count)
    terms(constantIndex(b, loc, whole), count - whole, false);
}

/// The end of the last group: what makes no step.
void LoopNest::emitTail(OpBuilder &b, unsigned level) {
  int64_t steps = order.steps.back();
  if (keepsTerms) {
    keepTerms(b, constantIndex(b, loc, steps * order.lanes), order.tail);
    addKept(b, constantIndex(b, loc, 0), 1, order.tail, level,
            /*fresh=*/false);
    return;
  }
  emitTerms(b, groups.size() - 1, constantIndex(b, loc, steps), order.tail,
            level, /*fresh=*/false);
}
