//===- RunningToKernel.cpp - Running reductions ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reduce_window whose window is a whole axis, in linear time.
//
//===----------------------------------------------------------------------===//

#include "SumOrder.h"
#include "Windows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace whale;

static constexpr int64_t kMaxLine = 512;

/// A running reduction in blocks of kSumBlock steps of `unit` elements each,
/// for a line of columns: what is before the block, and what the steps of it
/// reduce to so far. A step of level n is a block of level n - 1.
struct RunningLevel {
  SmallVector<Value> before, within;
  int64_t unit;
};

/// Each result reduces what is before its blocks, from the outermost in, and
/// then its block, so that an error grows with the logarithm of the length.
/// The initial value is taken once.
static LogicalResult
emitBlocks(KernelBuilder &k, WideReducer &reducer,
           ArrayRef<RunningLevel> levels, int64_t size, int64_t count,
           ArrayRef<Value> inits, ArrayRef<Type> elements,
           function_ref<SmallVector<Value>(Value, Value)> indicesAt) {
  bool good = true;
  auto load = [&](ArrayRef<Value> line, Value column) {
    SmallVector<Value> values;
    for (Value memory : line)
      values.push_back(memref::LoadOp::create(k.b, k.loc, memory, column));
    return values;
  };
  auto store = [&](ArrayRef<Value> values, ArrayRef<Value> line, Value column) {
    for (auto [value, memory] : llvm::zip_equal(values, line))
      memref::StoreOp::create(k.b, k.loc, value, memory, column);
  };
  auto join = [&](SmallVector<Value> arguments, ArrayRef<Value> more) {
    SmallVector<Value> before = arguments;
    llvm::append_range(arguments, more);
    auto result = reducer.emit(k.b, arguments);
    good &= succeeded(result);
    return good ? *result : before;
  };
  auto choose = [&](Value condition, ArrayRef<Value> yes, ArrayRef<Value> no) {
    SmallVector<Value> chosen;
    for (auto [a, b] : llvm::zip_equal(yes, no))
      chosen.push_back(arith::SelectOp::create(k.b, k.loc, condition, a, b));
    return chosen;
  };
  auto overColumns = [&](function_ref<void(Value)> body) {
    if (count == 1)
      body(k.index(0));
    else
      k.loop(k.index(0), k.index(count), body);
  };
  auto scan = [&](auto &scan, size_t number, Value begin) -> void {
    const RunningLevel &level = levels[number];
    Value end = k.index(size);
    if (level.unit * kSumBlock < size)
      end = arith::MinUIOp::create(
          k.b, k.loc, end, k.add(begin, k.index(level.unit * kSumBlock)));
    auto loop = scf::ForOp::create(k.b, k.loc, begin, end, k.index(level.unit));
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    Value position = loop.getInductionVar();
    Value isFirst = k.compare(arith::CmpIPredicate::eq, position, begin);
    auto accumulate = [&](ArrayRef<Value> term, Value column) {
      SmallVector<Value> sum = join(load(level.within, column), term);
      sum = choose(isFirst, term, sum);
      store(sum, level.within, column);
      return sum;
    };
    if (number == 0) {
      overColumns([&](Value column) {
        SmallVector<Value> indices = indicesAt(position, column), term;
        for (auto [operand, element] : llvm::enumerate(elements))
          term.push_back(reducer.widen(
              k.b, k.loc, k.loadScalar(operand, indices, element), operand));
        SmallVector<Value> sum = accumulate(term, column);
        storeResults(k, reducer, join(load(level.before, column), sum),
                     indices);
      });
      return;
    }
    const RunningLevel &below = levels[number - 1];
    overColumns([&](Value column) {
      SmallVector<Value> before = load(level.before, column);
      store(choose(isFirst, before, join(before, load(level.within, column))),
            below.before, column);
    });
    scan(scan, number - 1, position);
    overColumns(
        [&](Value column) { accumulate(load(below.within, column), column); });
  };
  overColumns([&](Value column) {
    store(inits, levels.back().before, column);
    for (const RunningLevel &level : levels)
      store(inits, level.within, column);
  });
  scan(scan, levels.size() - 1, k.index(0));
  return success(good);
}

/// Lets `count` operands and as many results be seen with dimensions `outer`
/// and one of `inside`.
static void joinInner(KernelBuilder &k, ArrayRef<int64_t> outer, int64_t inside,
                      size_t count) {
  SmallVector<int64_t> shape(outer);
  shape.push_back(inside);
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size() - 1; dim-- > 0;)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  auto join = [&](Value &buffer) {
    Type element = cast<MemRefType>(buffer.getType()).getElementType();
    buffer = memref::ReinterpretCastOp::create(
        k.b, k.loc, MemRefType::get(shape, element), buffer,
        /*offset=*/int64_t(0), shape, strides);
  };
  for (size_t number = 0; number < count; ++number) {
    join(k.buffers[number]);
    join(k.buffers[2 * count + number]);
  }
}

/// Element by element along the axis. What is carried is in registers or,
/// where there are dimensions inside of the axis, in a line of at most
/// kMaxLine of their elements: the inner loop then goes over neighbours.
LogicalResult whale::buildRunning(KernelBuilder &k,
                                  stablehlo::ReduceWindowOp op,
                                  WideReducer &reducer, int64_t axis,
                                  bool reversed, ArrayRef<Type> elements) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t size = type.getDimSize(axis);
  int64_t inside = 1;
  for (int64_t inner : type.getShape().drop_front(axis + 1))
    inside *= inner;
  joinInner(k, type.getShape().take_front(axis + 1), inside, elements.size());
  int64_t width = std::min(inside, kMaxLine);
  SmallVector<Value> inits = loadInits(k, reducer, elements);
  auto makeLine = [&] {
    SmallVector<Value> line;
    for (Value init : inits)
      line.push_back(memref::AllocaOp::create(
          k.b, k.loc, MemRefType::get({width}, init.getType()),
          k.b.getI64IntegerAttr(64)));
    return line;
  };
  bool blocks = size > kSumBlock && reducer.roundsTerms();
  SmallVector<Value> line;
  if (inside > 1 && !blocks)
    line = makeLine();
  SmallVector<RunningLevel> levels;
  for (int64_t unit = 1; blocks && unit < size; unit *= kSumBlock)
    levels.push_back({makeLine(), makeLine(), unit});
  bool good = true;
  auto indicesAt = [&](ValueRange outer, Value position, Value inner) {
    if (reversed)
      position = arith::SubIOp::create(k.b, k.loc, k.index(size - 1), position);
    SmallVector<Value> indices(outer);
    indices.append({position, inner});
    return indices;
  };
  auto step = [&](ValueRange outer, Value position, Value inner,
                  ValueRange carried) {
    SmallVector<Value> indices = indicesAt(outer, position, inner);
    auto next = combineTerms(k, reducer, carried, indices, elements);
    good &= succeeded(next);
    if (!good)
      return SmallVector<Value>(carried);
    storeResults(k, reducer, *next, indices);
    return *next;
  };
  auto inRegisters = [&](ValueRange outer) {
    carryNest(k, size, inits, [&](ValueRange at, ValueRange carried) {
      return step(outer, at[0], k.index(0), carried);
    });
  };
  auto inLines = [&](ValueRange outer, Value first, int64_t count) {
    Value columns = k.index(count);
    k.loop(k.index(0), columns, [&](Value column) {
      for (auto [init, sums] : llvm::zip_equal(inits, line))
        memref::StoreOp::create(k.b, k.loc, init, sums, column);
    });
    k.loop(k.index(0), k.index(size), [&](Value position) {
      k.loop(k.index(0), columns, [&](Value column) {
        SmallVector<Value> carried;
        for (Value sums : line)
          carried.push_back(memref::LoadOp::create(k.b, k.loc, sums, column));
        SmallVector<Value> next =
            step(outer, position, k.add(first, column), carried);
        for (auto [value, sums] : llvm::zip_equal(next, line))
          memref::StoreOp::create(k.b, k.loc, value, sums, column);
      });
    });
  };
  auto inBlocks = [&](ValueRange outer, Value first, int64_t count) {
    auto visit = [&](Value position, Value column) {
      return indicesAt(outer, position, k.add(first, column));
    };
    good &= succeeded(
        emitBlocks(k, reducer, levels, size, count, inits, elements, visit));
  };
  auto along = [&](ValueRange outer) {
    if (inside == 1)
      return blocks ? inBlocks(outer, k.index(0), 1) : inRegisters(outer);
    auto columns = [&](Value first, int64_t count) {
      blocks ? inBlocks(outer, first, count) : inLines(outer, first, count);
    };
    k.loop(k.index(0), k.index(inside / width), [&](Value number) {
      columns(k.mul(number, k.index(width)), width);
    });
    if (int64_t rest = inside % width)
      columns(k.index(inside - rest), rest);
  };
  k.parallel(type.getShape().take_front(axis), along);
  return success(good);
}
