//===- EmitSums.cpp - The code of sums in blocks --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a nest whose results are sums, products or the like, and their order
// (SumOrder.h). Out: its loops. The partial sums of each level are in a small
// array, one for each lane or, where the innermost loop is parallel, for each
// column of a tile (and lane). The innermost loop runs over them, so that it
// has no order and becomes vectors; it adds several terms at a time, one after
// the other.
//
// Cost: besides the terms, each level adds, stores and clears one partial sum
// for kSumBlock of the level below; the stack has an array for each level. What
// is left over at the end of a block has code of its own: the code that adds
// terms is written at most once for each loop over blocks of a group of
// dimensions, of which there are as many as the logarithm of its length, and
// this multiplied over the groups.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace whale;

/// Partial sums of one level that are summed at a time; of columns that lie
/// across memory so few that the cache line of each stays in the cache while
/// its terms are added.
static constexpr int64_t kMaxSums = 1024, kMinTile = 64, kAcrossTile = 32;

Operation *LoopNest::findCombiner(linalg::GenericOp op, unsigned number) {
  Block &body = op.getRegion().front();
  Value sum = body.getArgument(op.getNumDpsInputs() + number);
  Operation *combiner =
      body.getTerminator()->getOperand(number).getDefiningOp();
  if (!combiner || !sum.hasOneUse() || *sum.user_begin() != combiner)
    return nullptr;
  return isa<arith::AddFOp, arith::MulFOp, arith::AddIOp, arith::MulIOp,
             arith::MaximumFOp, arith::MinimumFOp, arith::MaxSIOp,
             arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp, arith::AndIOp,
             arith::OrIOp, arith::XOrIOp, complex::AddOp, complex::MulOp>(
             combiner)
             ? combiner
             : nullptr;
}

static bool dependsOnOrder(Operation *combiner) {
  return isa<arith::AddFOp, arith::MulFOp, complex::AddOp, complex::MulOp>(
      combiner);
}

static unsigned getBits(Type type) {
  if (auto complex = dyn_cast<ComplexType>(type))
    return 2 * complex.getElementType().getIntOrFloatBitWidth();
  return type.getIntOrFloatBitWidth();
}

Value LoopNest::makeNeutral(OpBuilder &b, Operation *combiner) {
  Type type = combiner->getResult(0).getType();
  if (auto complex = dyn_cast<ComplexType>(type)) {
    double real = isa<complex::MulOp>(combiner) ? 1 : -0.0;
    double imaginary = isa<complex::MulOp>(combiner) ? 0 : -0.0;
    Type part = complex.getElementType();
    return complex::ConstantOp::create(
        b, loc, type,
        b.getArrayAttr(
            {b.getFloatAttr(part, real), b.getFloatAttr(part, imaginary)}));
  }
  // Zero is what is added to a sum, except to a negative zero.
  if (isa<arith::AddFOp>(combiner))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, -0.0));
  return arith::ConstantOp::create(b, loc, *arith::getNeutralElement(combiner));
}

Value LoopNest::combine(OpBuilder &b, Operation *combiner, Value lhs,
                        Value rhs) {
  OperationState state(combiner->getLoc(), combiner->getName(), {lhs, rhs},
                       {lhs.getType()});
  return b.create(state)->getResult(0);
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

static bool hasFunction(linalg::GenericOp op) {
  return llvm::any_of(op.getBody()->getOperations(), [](Operation &inner) {
    return isa<math::MathDialect>(inner.getDialect());
  });
}

void LoopNest::findSums() {
  if (op.getNumReductionLoops() == 0)
    return;
  bool ordered = false;
  unsigned bits = 0;
  for (unsigned number = 0; number < writes.size(); ++number) {
    if (!isAccumulated(number))
      continue;
    Operation *combiner = findCombiner(op, number);
    if (!combiner) {
      sums.clear();
      isChain = hasFunction(op);
      return;
    }
    ordered |= dependsOnOrder(combiner);
    bits = std::max(bits, getBits(combiner->getResult(0).getType()));
    sums.push_back({number, combiner, {}, {}});
  }
  SmallVector<bool> reduced;
  for (utils::IteratorType iterator : op.getIteratorTypesArray())
    reduced.push_back(iterator == utils::IteratorType::reduction);
  if (ordered)
    order = getSumOrder(sizes, reduced, bits);
  if (order.chunks.empty())
    sums.clear();
}

void LoopNest::groupLoops() {
  if (sums.empty())
    return;
  groups.assign(order.steps.size(), {});
  for (auto [number, loop] : llvm::enumerate(loops))
    if (!loop.parallel)
      groups[order.groups[loop.lastDim]].loops.push_back(number);
}

/// How the loops of the last group meet its lanes: all operands see them as
/// one, or terms are first computed loop by loop and kept, so that lanes can
/// take them.
void LoopNest::findRuns() {
  if (sums.empty() || innerParallel || order.lanes == 1)
    return;
  Group &group = groups.back();
  if (group.loops.size() == 1)
    return;
  bool asOne = true;
  op.getRegion().walk([&](linalg::IndexOp) { asOne = false; });
  for (const Access &access : reads)
    asOne &= access.buffer == ~0u || isOneRun(group, access);
  for (const Access &access : writes)
    asOne &= isOneRun(group, access);
  keepsTerms = !asOne;
}

//===----------------------------------------------------------------------===//
// Arrays of partial sums
//===----------------------------------------------------------------------===//

/// Whether operands are in memory across the columns.
bool LoopNest::readsAcross() const {
  return innerParallel && llvm::any_of(reads, [&](const Access &access) {
           return access.buffer != ~0u &&
                  access.coefficients[loops.back().lastDim] > 1;
         });
}

void LoopNest::allocateSums(OpBuilder &b) {
  if (innerParallel)
    sumTile =
        std::min(loops.back().size,
                 readsAcross() ? kAcrossTile
                               : std::max(kMaxSums / order.lanes, kMinTile));
  for (Sum &sum : sums)
    for (unsigned level = 0; level < order.getNumLevels(); ++level)
      sum.arrays.push_back(memref::AllocaOp::create(
          b, loc,
          MemRefType::get({order.lanes * sumTile},
                          sum.combiner->getResult(0).getType()),
          b.getI64IntegerAttr(64)));
  if (keepsTerms)
    for (Sum &sum : sums)
      sum.terms = memref::AllocaOp::create(
          b, loc,
          MemRefType::get({order.lanes * kSumBlock},
                          sum.combiner->getResult(0).getType()),
          b.getI64IntegerAttr(64));
}

void LoopNest::makeFor(OpBuilder &b, Value from, Value to, int64_t step,
                       llvm::function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, from, to, constantIndex(b, loc, step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

/// Loops over the first `lanes` lanes and the columns of the tile. The body
/// gets a lane, a column and the index of their sums.
void LoopNest::overSums(OpBuilder &b, int64_t lanes,
                        llvm::function_ref<void(Value, Value, Value)> body) {
  Value zero = constantIndex(b, loc, 0);
  if (!innerParallel) {
    makeFor(b, zero, constantIndex(b, loc, lanes), 1,
            [&](Value lane) { body(lane, {}, lane); });
    return;
  }
  auto overColumns = [&](Value lane) {
    makeFor(b, zero, sumWidth, 1, [&](Value column) {
      Value place = column;
      if (order.lanes > 1)
        place = arith::AddIOp::create(
            b, loc, column,
            arith::MulIOp::create(b, loc, lane,
                                  constantIndex(b, loc, sumTile)));
      body(lane, column, place);
    });
  };
  if (order.lanes == 1)
    overColumns(zero);
  else
    makeFor(b, zero, constantIndex(b, loc, lanes), 1, overColumns);
}

void LoopNest::clearSums(OpBuilder &b, unsigned level) {
  SmallVector<Value> neutral;
  for (Sum &sum : sums)
    neutral.push_back(makeNeutral(b, sum.combiner));
  overSums(b, order.lanes, [&](Value, Value, Value place) {
    for (auto [sum, value] : llvm::zip_equal(sums, neutral))
      memref::StoreOp::create(b, loc, value, sum.arrays[level], place);
  });
}

void LoopNest::addLevel(OpBuilder &b, unsigned level) {
  overSums(b, order.lanes, [&](Value, Value, Value place) {
    for (Sum &sum : sums) {
      Value lhs = memref::LoadOp::create(b, loc, sum.arrays[level], place);
      Value rhs = memref::LoadOp::create(b, loc, sum.arrays[level - 1], place);
      memref::StoreOp::create(b, loc, combine(b, sum.combiner, lhs, rhs),
                              sum.arrays[level], place);
    }
  });
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

/// Forms the sums of `level` of what the levels above have come to.
void LoopNest::emitSumLevel(OpBuilder &b, unsigned level) {
  SmallVector<SumOrder::Chunk> chunks; // The outermost first.
  for (const SumOrder::Chunk &chunk : llvm::reverse(order.chunks))
    if (chunk.level == level)
      chunks.push_back(chunk);
  bool fresh = level == 0 && chunks.size() == 1;
  if (!fresh)
    clearSums(b, level);
  std::function<void(unsigned)> emitFrom = [&](unsigned at) {
    if (at == chunks.size()) {
      emitSumLevel(b, level - 1);
      addLevel(b, level);
      return;
    }
    const SumOrder::Chunk &chunk = chunks[at];
    Group &group = groups[chunk.group];
    Group saved = group;
    if (level == 0 && at + 1 == chunks.size()) {
      emitRun(b, chunk.group, group.left, fresh);
    } else {
      // Whole units, then what is left.
      int64_t units = saved.left / chunk.unit;
      group.left = chunk.unit;
      makeFor(b, constantIndex(b, loc, 0), constantIndex(b, loc, units), 1,
              [&](Value unit) {
                group.position = arith::AddIOp::create(
                    b, loc, saved.position,
                    arith::MulIOp::create(b, loc, unit,
                                          constantIndex(b, loc, chunk.unit)));
                emitFrom(at + 1);
              });
      group.left = saved.left % chunk.unit;
      group.position = arith::AddIOp::create(
          b, loc, saved.position, constantIndex(b, loc, units * chunk.unit));
      if (group.left > 0)
        emitFrom(at + 1);
    }
    group = saved;
    if (order.tail > 0 && chunk.group + 1 == groups.size() &&
        group.left == order.steps.back())
      emitTail(b, level);
  };
  emitFrom(0);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The sum of all lanes, which are in `array`: halves are added.
Value LoopNest::joinLanes(OpBuilder &b, const Sum &sum, Value array) {
  Type type = sum.combiner->getResult(0).getType();
  Value zero = constantIndex(b, loc, 0);
  if (order.lanes == 1)
    return memref::LoadOp::create(b, loc, array, zero);
  if (isa<ComplexType>(type)) {
    SmallVector<Value> values;
    for (int64_t lane = 0; lane < order.lanes; ++lane)
      values.push_back(
          memref::LoadOp::create(b, loc, array, constantIndex(b, loc, lane)));
    for (size_t half = values.size() / 2; half > 0; half /= 2)
      for (size_t lane = 0; lane < half; ++lane)
        values[lane] =
            combine(b, sum.combiner, values[lane], values[lane + half]);
    return values[0];
  }
  Value values = vector::LoadOp::create(
      b, loc, VectorType::get({order.lanes}, type), array, zero);
  for (int64_t half = order.lanes / 2; half > 0; half /= 2) {
    SmallVector<int64_t> low = llvm::to_vector(llvm::seq<int64_t>(0, half));
    SmallVector<int64_t> high =
        llvm::to_vector(llvm::seq<int64_t>(half, 2 * half));
    Value lower = vector::ShuffleOp::create(b, loc, values, values, low);
    Value upper = vector::ShuffleOp::create(b, loc, values, values, high);
    values = combine(b, sum.combiner, lower, upper);
  }
  return vector::ExtractOp::create(b, loc, values, 0);
}

/// Stores what is accumulated, with these values of all sums.
void LoopNest::storeAccumulated(OpBuilder &b, unsigned depth,
                                ArrayRef<Value> values) {
  SmallVector<Value> inits = emitInits(b, depth);
  for (auto [sum, init, value] : llvm::zip_equal(sums, inits, values))
    store(b, writes[sum.result], depth, combine(b, sum.combiner, init, value));
}

/// Stores the results: what is accumulated first, with the sums.
void LoopNest::storeSums(OpBuilder &b) {
  unsigned top = order.getNumLevels() - 1;
  if (!innerParallel) {
    SmallVector<Value> values;
    for (Sum &sum : sums)
      values.push_back(joinLanes(b, sum, sum.arrays[top]));
    storeAccumulated(b, numOuter, values);
    return;
  }
  int64_t lanes = order.lanes;
  for (; lanes > 1; lanes /= 2) {
    Value half = constantIndex(b, loc, lanes / 2 * sumTile);
    overSums(b, lanes / 2, [&](Value, Value, Value place) {
      for (Sum &sum : sums) {
        Value lhs = memref::LoadOp::create(b, loc, sum.arrays[top], place);
        Value rhs = memref::LoadOp::create(
            b, loc, sum.arrays[top],
            ValueRange{arith::AddIOp::create(b, loc, place, half)});
        memref::StoreOp::create(b, loc, combine(b, sum.combiner, lhs, rhs),
                                sum.arrays[top], place);
      }
    });
  }
  makeFor(b, constantIndex(b, loc, 0), sumWidth, 1, [&](Value column) {
    counters.back() = arith::AddIOp::create(b, loc, sumColumn, column);
    SmallVector<Value> values;
    for (Sum &sum : sums)
      values.push_back(memref::LoadOp::create(b, loc, sum.arrays[top], column));
    storeAccumulated(b, loops.size(), values);
  });
}

void LoopNest::emitSums(OpBuilder &b) {
  for (auto [group, steps] : llvm::zip_equal(groups, order.steps)) {
    group.position = constantIndex(b, loc, 0);
    group.left = steps;
  }
  unsigned top = order.getNumLevels() - 1;
  if (!innerParallel) {
    emitSumLevel(b, top);
    storeSums(b);
    return;
  }
  Value from = constantIndex(b, loc, 0);
  Value to = constantIndex(b, loc, loops.back().size);
  if (numOuter == 0) {
    from = begin;
    to = end;
  }
  makeFor(b, from, to, sumTile, [&](Value column) {
    sumColumn = column;
    sumWidth =
        arith::MinUIOp::create(b, loc, constantIndex(b, loc, sumTile),
                               arith::SubIOp::create(b, loc, to, column));
    emitSumLevel(b, top);
    storeSums(b);
  });
}
