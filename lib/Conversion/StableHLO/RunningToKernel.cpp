//===- RunningToKernel.cpp - Running reductions ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a reduce_window whose window is a whole axis. Out: the body of a kernel
// that walks the axis once and carries what it has reduced so far: linear time.
//
//===----------------------------------------------------------------------===//

#include "Kernel/SumOrder.h"
#include "Kernel/Windows.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace whale;

/// Elements of a line that is carried along the axis. It is on the stack, and
/// is read and written at each step. In f64 it has 4 KiB; with what is read and
/// written of the tensors these are 12 KiB, which fit the first-level cache.
/// Long sums carry two lines for each level, which fit the second-level one.
/// Much longer lines would not fit. Shorter ones make inner loops that begin
/// and end more often, and read shorter runs of the tensors.
static constexpr int64_t kMaxLine = 512;

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

namespace {

/// A running reduction in blocks of kSumBlock steps of `unit` elements each,
/// for a line of columns: what is before the block, and what the steps of it
/// reduce to so far. A step of level n is a block of level n - 1.
struct RunningLevel {
  SmallVector<Value> before, within;
  int64_t unit;
};

/// Columns that a walk along the axis goes over: `count` neighbours, at the
/// indices `outer` of the dimensions before the axis.
struct Columns {
  ValueRange outer;
  Value first;
  int64_t count;
};

/// Element by element along the axis. What is carried is in registers or,
/// where there are dimensions inside of the axis, in a line of at most
/// kMaxLine of their elements: the inner loop then goes over neighbours. Long
/// sums are formed in blocks, by levels of such lines.
class RunningLoops {
public:
  using Values = SmallVector<Value>;

  RunningLoops(KernelBuilder &k, WideReducer &reducer, ArrayRef<Type> elements,
               ArrayRef<int64_t> shape, int64_t axis, bool reversed)
      : k(k), reducer(reducer), elements(elements),
        outer(shape.take_front(axis)), size(shape[axis]), reversed(reversed),
        blocks(size > kSumBlock && reducer.roundsTerms()) {
    for (int64_t inner : shape.drop_front(axis + 1))
      inside *= inner;
    width = std::min(inside, kMaxLine);
    joinInner(k, shape.take_front(axis + 1), inside, elements.size());
    inits = loadInits(k, reducer, elements);
    if (inside > 1 && !blocks)
      line = makeLine();
    for (int64_t unit = 1; blocks && unit < size; unit *= kSumBlock)
      levels.push_back({makeLine(), makeLine(), unit});
  }

  LogicalResult build() {
    k.parallel(outer, [&](ValueRange at) { alongAxis(at); });
    return success(good);
  }

private:
  /// Of each operand what is carried, for `width` columns.
  Values makeLine() {
    Values made;
    for (Value init : inits)
      made.push_back(memref::AllocaOp::create(
          k.b, k.loc, MemRefType::get({width}, init.getType()),
          k.b.getI64IntegerAttr(64)));
    return made;
  }

  Values load(ArrayRef<Value> memory, Value column) {
    Values values;
    for (Value each : memory)
      values.push_back(memref::LoadOp::create(k.b, k.loc, each, column));
    return values;
  }

  void store(ArrayRef<Value> values, ArrayRef<Value> memory, Value column) {
    for (auto [value, each] : llvm::zip_equal(values, memory))
      memref::StoreOp::create(k.b, k.loc, value, each, column);
  }

  Values choose(Value condition, ArrayRef<Value> yes, ArrayRef<Value> no) {
    Values chosen;
    for (auto [a, b] : llvm::zip_equal(yes, no))
      chosen.push_back(arith::SelectOp::create(k.b, k.loc, condition, a, b));
    return chosen;
  }

  /// Both reduced; `before` if the reducer has no such form.
  Values join(ArrayRef<Value> before, ArrayRef<Value> more) {
    Values arguments(before);
    llvm::append_range(arguments, more);
    auto result = reducer.emit(k.b, arguments);
    good &= succeeded(result);
    return good ? *result : Values(before);
  }

  void overColumns(int64_t count, function_ref<void(Value)> body) {
    if (count == 1)
      body(k.index(0));
    else
      k.loop(k.index(0), k.index(count), body);
  }

  Values indicesAt(ValueRange outer, Value position, Value inner) {
    if (reversed)
      position = arith::SubIOp::create(k.b, k.loc, k.index(size - 1), position);
    Values indices(outer);
    indices.append({position, inner});
    return indices;
  }

  void alongAxis(ValueRange outer) {
    if (inside == 1)
      return blocks ? inBlocks({outer, k.index(0), 1}) : inRegisters(outer);
    auto over = [&](Columns columns) {
      blocks ? inBlocks(columns) : inLines(columns);
    };
    k.loop(k.index(0), k.index(inside / width), [&](Value number) {
      over({outer, k.mul(number, k.index(width)), width});
    });
    if (int64_t rest = inside % width)
      over({outer, k.index(inside - rest), rest});
  }

  /// Reduces one more element, and stores the result.
  Values step(ValueRange outer, Value position, Value inner,
              ValueRange carried) {
    Values indices = indicesAt(outer, position, inner);
    auto next = combineTerms(k, reducer, carried, indices, elements);
    good &= succeeded(next);
    if (!good)
      return Values(carried);
    storeResults(k, reducer, *next, indices);
    return *next;
  }

  void inRegisters(ValueRange outer) {
    carryNest(k, size, inits, [&](ValueRange at, ValueRange carried) {
      return step(outer, at[0], k.index(0), carried);
    });
  }

  void inLines(Columns columns) {
    overColumns(columns.count,
                [&](Value column) { store(inits, line, column); });
    k.loop(k.index(0), k.index(size), [&](Value position) {
      overColumns(columns.count, [&](Value column) {
        Values carried = load(line, column);
        Value inner = k.add(columns.first, column);
        store(step(columns.outer, position, inner, carried), line, column);
      });
    });
  }

  /// Each result reduces what is before its blocks, from the outermost in, and
  /// then its block, so that an error grows with the logarithm of the length.
  /// The initial value is taken once.
  void inBlocks(Columns columns) {
    overColumns(columns.count, [&](Value column) {
      store(inits, levels.back().before, column);
      for (const RunningLevel &level : levels)
        store(inits, level.within, column);
    });
    scan(columns, levels.size() - 1, k.index(0));
  }

  /// The block of level `number` that begins at `begin`.
  void scan(const Columns &columns, size_t number, Value begin) {
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
    if (number == 0)
      return scanElements(columns, position, isFirst);
    const RunningLevel &below = levels[number - 1];
    overColumns(columns.count, [&](Value column) {
      Values before = load(level.before, column);
      store(choose(isFirst, before, join(before, load(level.within, column))),
            below.before, column);
    });
    scan(columns, number - 1, position);
    overColumns(columns.count, [&](Value column) {
      accumulate(level, isFirst, load(below.within, column), column);
    });
  }

  /// The elements at `position` of the innermost level.
  void scanElements(const Columns &columns, Value position, Value isFirst) {
    const RunningLevel &level = levels[0];
    overColumns(columns.count, [&](Value column) {
      Values indices =
          indicesAt(columns.outer, position, k.add(columns.first, column));
      Values term = loadTerms(k, reducer, indices, elements);
      Values sum = accumulate(level, isFirst, term, column);
      storeResults(k, reducer, join(load(level.before, column), sum), indices);
    });
  }

  /// Reduces a step of a block with those before it.
  Values accumulate(const RunningLevel &level, Value isFirst,
                    ArrayRef<Value> term, Value column) {
    Values sum = join(load(level.within, column), term);
    sum = choose(isFirst, term, sum);
    store(sum, level.within, column);
    return sum;
  }

  KernelBuilder &k;
  WideReducer &reducer;
  ArrayRef<Type> elements;
  ArrayRef<int64_t> outer; // Sizes before the axis.
  int64_t size;            // Of the axis.
  int64_t inside = 1;      // Elements of all dimensions after it.
  int64_t width;           // Columns of a line.
  bool reversed, blocks;
  bool good = true; // The reducer could be emitted so far.
  Values inits, line;
  SmallVector<RunningLevel> levels;
};

} // namespace

LogicalResult whale::buildRunning(KernelBuilder &k,
                                  stablehlo::ReduceWindowOp op,
                                  WideReducer &reducer, int64_t axis,
                                  bool reversed, ArrayRef<Type> elements) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return RunningLoops(k, reducer, elements, type.getShape(), axis, reversed)
      .build();
}
