//===- EmitThreadSums.cpp - Reductions by blocks of threads ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a nest whose results are each combined by one operation, cut as
// EmitBlocks.cpp says. Out: what a block of threads does: each thread combines
// its terms, of one result or of `width` neighbouring ones that are one access,
// then the threads of a result combine what they have.
//
// A thread loads several terms before it combines the first, so that memory has
// enough to do. Terms are combined in runs: with two levels of sums the error
// of 4,096 terms is that of some 160.
//
// Cost: each term is loaded once, by one thread. The threads of a result then
// take log2(rows) steps: with shuffles inside a warp and one barrier for
// several warps, else a barrier and shared memory for each. Up to kMaxLoads
// loads and kUnrolledBody operations are unrolled, and the body once more for
// the rest.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;

/// Accesses of a thread before it uses the first.
static constexpr int64_t kMaxLoads = 8;

/// Terms that a thread loads at a time: as many as there are few operands.
int64_t LoopNest::countUnrolled() {
  int64_t operations = 0, loads = 0;
  op.getRegion().walk([&](Operation *) { ++operations; });
  // Of what all neighbours share there is far less.
  for (const Access &read : reads)
    loads += read.buffer != ~0u && getDepth(read, loops) > numOuter &&
             (blocks.width == 1 || isVector(read, blocks.width, numOuter - 1));
  int64_t most =
      std::min(kMaxLoads / std::max<int64_t>(loads, 1),
               kUnrolledBody / std::max<int64_t>(operations * blocks.width, 1));
  return llvm::bit_floor(static_cast<uint64_t>(std::max<int64_t>(most, 1)));
}

/// What the body reads where the counters are, by neighbour.
SmallVector<SmallVector<Value>> LoopNest::loadColumns(OpBuilder &b,
                                                      unsigned depth) {
  SmallVector<SmallVector<Value>> columns;
  SmallVector<Value> saved(loaded);
  int64_t width = blocks.width;
  SmallVector<SmallVector<Value>> vectors(reads.size());
  for (auto [number, read] : llvm::enumerate(reads))
    if (width > 1 && (fixed.empty() || !fixed[0][number]) &&
        isVector(read, width, numOuter - 1) && getDepth(read, loops) <= depth)
      vectors[number] =
          loadVector(b, read, width, op.getRegionInputArgs()[number].getType());
  for (int64_t column = 0; column < width; ++column) {
    if (!fixed.empty())
      loaded = fixed[column];
    for (auto [number, vector] : llvm::enumerate(vectors))
      if (!vector.empty() && !loaded[number])
        loaded[number] = vector[column];
    // Of the others none differs by neighbour.
    hoistLoads(b, depth);
    columns.push_back(loaded);
    loaded = saved;
  }
  return columns;
}

/// Combines these terms, one after the other, with `carried`: the values of all
/// results by neighbour.
SmallVector<Value> LoopNest::emitTerms(OpBuilder &b, ArrayRef<Value> terms,
                                       ArrayRef<Value> carried) {
  SmallVector<unsigned> numbers =
      llvm::to_vector(llvm::seq<unsigned>(numOuter, loops.size()));
  SmallVector<SmallVector<Value>> places;
  SmallVector<SmallVector<SmallVector<Value>>> columns;
  for (Value term : terms) {
    setLoops(b, numbers, term);
    places.push_back(counters);
    columns.push_back(loadColumns(b, loops.size()));
  }
  SmallVector<Value> values(carried), saved(loaded);
  SmallVector<Value> first(counters);
  for (auto [place, term] : llvm::zip_equal(places, columns)) {
    SmallVector<SmallVector<Value>> made(writes.size());
    for (auto [column, inputs] : llvm::enumerate(term)) {
      counters = place;
      if (column > 0)
        counters[numOuter - 1] = arith::AddIOp::create(
            b, loc, place[numOuter - 1], constantIndex(b, loc, column));
      loaded = inputs;
      MutableArrayRef<Value> own =
          MutableArrayRef(values).slice(column * sums.size(), sums.size());
      unsigned next = 0;
      for (auto [number, value] :
           llvm::enumerate(emitPoint(b, loops.size(), own)))
        if (isAccumulated(number))
          own[next++] = value;
        else
          made[number].push_back(value);
    }
    counters = place;
    for (auto [number, elements] : llvm::enumerate(made)) {
      if (elements.size() > 1)
        storeVector(b, writes[number], elements);
      else if (!elements.empty())
        store(b, writes[number], loops.size(), elements[0]);
    }
  }
  loaded = saved;
  return values;
}

/// Combines, of the terms from `start` to `end` of the results where the
/// counters are, those of the thread in row `row`; without sums it stores what
/// is made of each.
SmallVector<Value> LoopNest::emitThreadTerms(OpBuilder &b, Value row,
                                             Value start, Value end) {
  auto index = [&](int64_t value) { return constantIndex(b, loc, value); };
  auto add = [&](Value lhs, Value rhs) {
    return b.createOrFold<arith::AddIOp>(loc, lhs, rhs);
  };
  // A loop that carries nothing ends by itself.
  auto yield = [&](ArrayRef<Value> values) {
    if (!values.empty())
      scf::YieldOp::create(b, loc, values);
  };
  SmallVector<Value> neutral;
  for (int64_t column = 0; column < blocks.width; ++column)
    for (Sum &sum : sums)
      neutral.push_back(makeNeutral(b, sum.combiner));
  auto overSteps = [&](Value from, Value to, int64_t count,
                       ArrayRef<Value> before) {
    auto loop = scf::ForOp::create(b, loc, add(row, from), to,
                                   index(blocks.rows * count), before);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> terms;
    for (int64_t term = 0; term < count; ++term)
      terms.push_back(add(loop.getInductionVar(), index(term * blocks.rows)));
    yield(emitTerms(b, terms, SmallVector<Value>(loop.getRegionIterArgs())));
    return SmallVector<Value>(loop.getResults());
  };
  // No loop without a trip.
  int64_t whole = std::max<int64_t>(blocks.chunkTerms / blocks.rows, 1);
  int64_t count = std::min<int64_t>(
      countUnrolled(), llvm::bit_floor(static_cast<uint64_t>(whole)));
  int64_t step = blocks.rows * count;
  bool isExact = blocks.chunkTerms % step == 0 && blocks.terms % step == 0;
  auto overTerms = [&](Value from, Value to) {
    if (count == 1 || isExact)
      return overSteps(from, to, count, neutral);
    Value rest = b.createOrFold<arith::RemUIOp>(
        loc, b.createOrFold<arith::SubIOp>(loc, to, from), index(step));
    Value middle = b.createOrFold<arith::SubIOp>(loc, to, rest);
    return overSteps(middle, to, 1, overSteps(from, middle, count, neutral));
  };
  if (llvm::divideCeil(blocks.chunkTerms, blocks.rows) <= 2 * kRun)
    return overTerms(start, end);
  Value run = index(blocks.rows * kRun);
  auto runs = scf::ForOp::create(b, loc, start, end, run, neutral);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(runs.getBody());
  Value from = runs.getInductionVar();
  Value to = arith::MinUIOp::create(b, loc, add(from, run), end);
  SmallVector<Value> parts = overTerms(from, to), next;
  for (auto [number, value] :
       llvm::enumerate(SmallVector<Value>(runs.getRegionIterArgs())))
    next.push_back(
        combine(b, sums[number % sums.size()].combiner, value, parts[number]));
  yield(next);
  return SmallVector<Value>(runs.getResults());
}

Value whale::allocateShared(OpBuilder &b, Location loc, int64_t count,
                            Type type) {
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  return memref::AllocaOp::create(
      b, loc, MemRefType::get({count}, type, AffineMap(), space));
}

std::pair<Value, Value> whale::findThread(OpBuilder &b, Location loc,
                                          int64_t columns, int64_t rows,
                                          bool across) {
  Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  Value inner = constantIndex(b, loc, across ? columns : rows);
  Value low = arith::RemUIOp::create(b, loc, thread, inner);
  Value high = arith::DivUIOp::create(b, loc, thread, inner);
  return across ? std::pair(low, high) : std::pair(high, low);
}

namespace {

/// Combines what the threads of a block have of its results: the value of
/// `values` with each number by a combiner of its own.
struct ThreadSums {
  OpBuilder &b;
  Location loc;
  int64_t rows, columns; // Threads of a result, and results.
  Value column, row;     // Of this thread.
  MutableArrayRef<Value> values;
  llvm::function_ref<Value(size_t, Value, Value)> combine;

  Value index(int64_t value) { return constantIndex(b, loc, value); }
  Value add(Value lhs, Value rhs) {
    return arith::AddIOp::create(b, loc, lhs, rhs);
  }
  Value multiply(Value lhs, int64_t rhs) {
    return arith::MulIOp::create(b, loc, lhs, index(rhs));
  }
  void when(arith::CmpIPredicate predicate, Value lhs, int64_t rhs,
            llvm::function_ref<void()> body) {
    Value condition = arith::CmpIOp::create(b, loc, predicate, lhs, index(rhs));
    auto branch = scf::IfOp::create(b, loc, condition, false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  /// By shuffles; all threads of a warp get the result.
  void combineInWarps(ArrayRef<size_t> numbers) {
    for (size_t number : numbers)
      for (int64_t offset = std::min(rows, kWarp) / 2; offset > 0;
           offset /= 2) {
        auto other = gpu::ShuffleOp::create(b, loc, values[number], offset,
                                            kWarp, gpu::ShuffleMode::XOR);
        values[number] =
            combine(number, values[number], other.getShuffleResult());
      }
  }

  /// What the warps of a result have, in shared memory, for all threads.
  void combineWarps(ArrayRef<size_t> numbers) {
    int64_t warps = rows / kWarp;
    if (numbers.empty() || warps <= 1)
      return;
    // One value of each warp.
    Value base = multiply(column, warps);
    SmallVector<Value> shared;
    for (size_t number : numbers)
      shared.push_back(
          allocateShared(b, loc, warps * columns, values[number].getType()));
    when(arith::CmpIPredicate::eq,
         arith::RemUIOp::create(b, loc, row, index(kWarp)), 0, [&] {
           Value place =
               add(base, arith::DivUIOp::create(b, loc, row, index(kWarp)));
           for (auto [number, memory] : llvm::zip_equal(numbers, shared))
             memref::StoreOp::create(b, loc, values[number], memory, place);
         });
    gpu::BarrierOp::create(b, loc);
    // Every thread may: the loads are the same for all of a warp.
    for (auto [number, memory] : llvm::zip_equal(numbers, shared)) {
      SmallVector<Value> parts;
      for (int64_t warp = 0; warp < warps; ++warp)
        parts.push_back(memref::LoadOp::create(
            b, loc, memory, ValueRange{add(base, index(warp))}));
      for (size_t half = parts.size() / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; ++i)
          parts[i] = combine(number, parts[i], parts[i + half]);
      values[number] = parts[0];
    }
  }

  /// In shared memory, for the thread in row 0: halves of the rows are added.
  void combineInBlock(ArrayRef<size_t> numbers) {
    if (numbers.empty())
      return;
    // Column by column, so that the threads of a warp meet in no bank.
    Value place = add(column, multiply(row, columns));
    SmallVector<Value> shared;
    for (size_t number : numbers) {
      shared.push_back(
          allocateShared(b, loc, rows * columns, values[number].getType()));
      memref::StoreOp::create(b, loc, values[number], shared.back(), place);
    }
    for (int64_t half = rows / 2; half > 0; half /= 2) {
      gpu::BarrierOp::create(b, loc);
      when(arith::CmpIPredicate::ult, row, half, [&] {
        Value other = add(place, index(half * columns));
        for (auto [number, memory] : llvm::zip_equal(numbers, shared)) {
          Value mine = memref::LoadOp::create(b, loc, memory, place);
          Value theirs = memref::LoadOp::create(b, loc, memory, other);
          memref::StoreOp::create(b, loc, combine(number, mine, theirs), memory,
                                  place);
        }
      });
    }
    // The thread that has added last reads what it wrote.
    for (auto [number, memory] : llvm::zip_equal(numbers, shared))
      values[number] = memref::LoadOp::create(b, loc, memory, place);
  }
};

} // namespace

/// Combines the values of the threads of each result; the thread in row 0 gets
/// what all of them make, and so do all threads if they use shuffles.
void LoopNest::emitAcrossThreads(OpBuilder &b, MutableArrayRef<Value> values,
                                 Value column, Value row) {
  SmallVector<size_t> inWarps, inBlock;
  for (auto [number, value] : llvm::enumerate(values))
    (shuffles(value.getType()) ? inWarps : inBlock).push_back(number);
  auto combiner = [&](size_t number, Value lhs, Value rhs) {
    return combine(b, sums[number % sums.size()].combiner, lhs, rhs);
  };
  ThreadSums threads{b,      loc, blocks.rows, blocks.columns,
                     column, row, values,      combiner};
  threads.combineInWarps(inWarps);
  threads.combineWarps(inWarps);
  threads.combineInBlock(inBlock);
}

/// What a thread has to do of block `block`: terms of a chunk of its result.
LoopNest::BlockPart LoopNest::findPart(OpBuilder &b, Value block,
                                       Value column) {
  auto index = [&](int64_t value) { return constantIndex(b, loc, value); };
  BlockPart part;
  // The blocks of one chunk are neighbours.
  int64_t width = blocks.width;
  int64_t perChunk = llvm::divideCeil(blocks.results, blocks.columns * width);
  Value group = block;
  if (blocks.chunks > 1) {
    part.chunk = arith::DivUIOp::create(b, loc, block, index(perChunk));
    group = arith::RemUIOp::create(b, loc, block, index(perChunk));
  }
  part.result = arith::AddIOp::create(
      b, loc, column,
      arith::MulIOp::create(b, loc, group, index(blocks.columns)));
  if (width > 1)
    part.result = arith::MulIOp::create(b, loc, part.result, index(width));
  part.start = index(0);
  part.end = index(blocks.terms);
  if (part.chunk) {
    part.start =
        arith::MulIOp::create(b, loc, part.chunk, index(blocks.chunkTerms));
    part.end = arith::MinUIOp::create(
        b, loc, part.end,
        arith::AddIOp::create(b, loc, part.start, index(blocks.chunkTerms)));
  }
  // Threads without a result have no terms: all reach the barriers. What they
  // need of a result is the block's last one's, as other blocks may store
  // theirs over what they read.
  if (blocks.results % (blocks.columns * width) != 0) {
    part.isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                          part.result, index(blocks.results));
    part.end =
        arith::SelectOp::create(b, loc, part.isInside, part.end, part.start);
    part.result = arith::MinUIOp::create(b, loc, part.result,
                                         index(blocks.results - width));
  }
  return part;
}

/// Stores, of the results from `part.result` on, what was accumulated of the
/// chunk, by neighbour.
void LoopNest::storeChunk(OpBuilder &b, const BlockPart &part,
                          ArrayRef<Value> values) {
  auto index = [&](int64_t value) { return constantIndex(b, loc, value); };
  Value place = arith::AddIOp::create(
      b, loc, part.result,
      arith::MulIOp::create(b, loc, part.chunk, index(blocks.results)));
  for (int64_t column = 0; column < blocks.width; ++column) {
    Value at = arith::AddIOp::create(b, loc, place, index(column));
    for (auto [sum, value] : llvm::zip_equal(
             sums, values.slice(column * sums.size(), sums.size()))) {
      Value stored = value;
      if (value.getType().isInteger(1))
        stored = arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
      memref::StoreOp::create(b, loc, stored, flat[writes[sum.result].buffer],
                              at);
    }
  }
}

/// Stores what was accumulated where the counters are, by neighbour.
void LoopNest::storeColumns(OpBuilder &b, ArrayRef<Value> values) {
  SmallVector<Value> first(counters);
  for (int64_t column = 0; column < blocks.width; ++column) {
    counters = first;
    if (column > 0)
      counters[numOuter - 1] = arith::AddIOp::create(
          b, loc, first[numOuter - 1], constantIndex(b, loc, column));
    storeAccumulated(b, numOuter,
                     values.slice(column * sums.size(), sums.size()));
  }
}

/// The part of block `block`.
void LoopNest::emitBlock(OpBuilder &b, Value block) {
  Value column, row;
  std::tie(column, row) =
      findThread(b, loc, blocks.columns, blocks.rows, blocks.across);
  BlockPart part = findPart(b, block, column);
  if (numOuter > 0)
    setLoops(b, llvm::to_vector(llvm::seq<unsigned>(0, numOuter)), part.result);
  // What all terms of a result need.
  fixed = loadColumns(b, numOuter);
  SmallVector<Value> values = emitThreadTerms(b, row, part.start, part.end);
  emitAcrossThreads(b, values, column, row);
  Value isOwner = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, row,
                                        constantIndex(b, loc, 0));
  if (part.isInside)
    isOwner = arith::AndIOp::create(b, loc, isOwner, part.isInside);
  auto branch = scf::IfOp::create(b, loc, isOwner, false);
  b.setInsertionPointToStart(branch.thenBlock());
  if (part.chunk)
    storeChunk(b, part, values);
  else
    storeColumns(b, values);
}
