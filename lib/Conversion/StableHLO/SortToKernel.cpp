//===- SortToKernel.cpp - Sort --------------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a sort. Out: on a processor a kernel, by a stable merge sort of positions
// with the operation's own comparator. Each one-dimensional slice along the
// sorted dimension is sorted by one thread, which merges neighbouring runs of
// 1, 2, 4 ... positions and in the end copies the elements. (For a GPU:
// SortToBlocks.cpp.)
//
// Where only the first few elements of each line are read (top_k is a sort and
// slices), the kernel gives these: it keeps so many positions in order, and
// takes each later one that goes before the last of them. Few are kept in order
// at each time; of many it appends what it takes, and when twice as many are
// there, it sorts them and forgets the second half. Positions of a chunk are
// compared at once, in vectors; those that go before the last one then are
// looked at alone. As positions are taken in order and the sort is stable, ties
// are as in the whole sort.
//
// Cost: n * log2(n) comparisons for a slice of n elements, which are read where
// they are in the operands; to select k of them n comparisons and, for each of
// those that are taken, some k / 2 or 2 * log2(2 * k): that are some
// k * log(n / k) of n in random order, all of them at worst. A call of the
// kernel allocates two arrays of n or 2 * k positions. An operand that counts
// the positions is never read.
//
//===----------------------------------------------------------------------===//

#include "Gpu/GpuKernels.h"
#include "Kernel/KernelWork.h"
#include "Kernel/SortLines.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

namespace {

/// Positions that are compared before any of them is looked at alone: the bits
/// of a word.
constexpr int64_t kChunk = 32;

/// So many are put in their places one by one sooner than sorted.
constexpr int64_t kFew = 32;

class SortLoops : public SortLines {
public:
  /// Gives the first `kept` elements of each line.
  SortLoops(PatternRewriter &rewriter, stablehlo::SortOp op, int64_t kept)
      : SortLines(rewriter, op, /*computesPositions=*/true), kept(kept),
        capacity(kept == size ? size : 2 * kept) {}

  FailureOr<SmallVector<Value>> run() {
    if (llvm::is_contained(inputs, Value()))
      return failure();
    SmallVector<Type> results;
    for (Type stored : types) {
      auto whole = cast<RankedTensorType>(stored);
      SmallVector<int64_t> shape(whole.getShape());
      shape[dim] = kept;
      results.push_back(whole.clone(shape));
    }
    auto kernel = makeKernel(rewriter, loc, /*blocks=*/false, results, inputs,
                             [&](KernelBuilder &k) { return build(k); });
    if (failed(kernel))
      return failure();
    noteWork(*kernel, op);
    return SmallVector<Value>(kernel->getResults());
  }

private:
  LogicalResult build(KernelBuilder &k) {
    auto positions = MemRefType::get({capacity}, k.b.getIndexType());
    Value first = memref::AllocOp::create(k.b, loc, positions);
    Value second = memref::AllocOp::create(k.b, loc, positions);
    k.share(rows, [&](Value row) {
      Carried sorted(first, second, k.index(kept));
      k.loop(k.index(0), k.index(kept), [&](Value i) {
        memref::StoreOp::create(k.b, loc, i, first, i);
        if (isOfFew())
          insert(k, row, i, first, i);
      });
      if (!isOfFew())
        sorted = sortLine(k, row, sorted, kept);
      if (kept < size)
        sorted = select(k, row, sorted);
      k.loop(k.index(0), k.index(kept), [&](Value i) {
        move(k, row, load(k, sorted.from, i), i, inputs.size());
      });
    });
    memref::DeallocOp::create(k.b, loc, first);
    memref::DeallocOp::create(k.b, loc, second);
    return success(good);
  }

  /// The array with `count` positions, and the other one.
  struct Carried {
    Value from, to, count;
    Carried(Value from, Value to, Value count)
        : from(from), to(to), count(count) {}
    explicit Carried(ValueRange values)
        : Carried(values[0], values[1], values[2]) {}
    operator SmallVector<Value>() const { return {from, to, count}; }
  };

  Value load(KernelBuilder &k, Value positions, Value place) {
    return memref::LoadOp::create(k.b, loc, positions, place);
  }

  /// A loop with `carried`, of which the body makes that of the next round.
  Carried repeat(KernelBuilder &k, Value begin, Value end, Value step,
                 Carried carried, function_ref<Carried(Value, Carried)> body) {
    auto loop = scf::ForOp::create(k.b, loc, begin, end, step,
                                   SmallVector<Value>(carried));
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next =
        body(loop.getInductionVar(), Carried(loop.getRegionIterArgs()));
    scf::YieldOp::create(k.b, loc, next);
    return Carried(loop.getResults());
  }

  /// What `body` makes of `carried` if the condition holds.
  Carried when(KernelBuilder &k, Value condition, Carried carried,
               function_ref<Carried()> body) {
    SmallVector<Value> unchanged = carried;
    auto branch =
        scf::IfOp::create(k.b, loc, TypeRange(ValueRange(unchanged)), condition,
                          /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(k.b, loc, unchanged);
    k.b.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> changed = body();
    scf::YieldOp::create(k.b, loc, changed);
    return Carried(branch.getResults());
  }

  /// Whether positions are put in their places one by one.
  bool isOfFew() const { return kept < size && kept <= kFew; }

  /// Looks at the positions after the first `kept`, which are in order.
  Carried select(KernelBuilder &k, Value row, Carried sorted) {
    // What makes no whole chunk comes first: most of that is taken.
    int64_t first = kept + (size - kept) % kChunk;
    Carried selected = repeat(k, k.index(kept), k.index(first), k.index(1),
                              sorted, [&](Value position, Carried carried) {
                                return take(k, row, position, carried);
                              });
    selected = repeat(k, k.index(first), k.index(size), k.index(kChunk),
                      selected, [&](Value begin, Carried carried) {
                        Value last = load(k, carried.from, k.index(kept - 1));
                        return takeMarked(k, row, begin,
                                          mark(k, row, begin, last), carried);
                      });
    return isOfFew() ? selected : sortLine(k, row, selected, capacity);
  }

  /// Of the positions of a chunk, by bit, whether each goes before `last`.
  Value mark(KernelBuilder &k, Value row, Value begin, Value last) {
    auto word = k.b.getIntegerType(kChunk);
    Value none = arith::ConstantIntOp::create(k.b, loc, word, 0);
    auto loop = scf::ForOp::create(k.b, loc, k.index(0), k.index(kChunk),
                                   k.index(1), ValueRange{none});
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    Value before = arith::ExtUIOp::create(
        k.b, loc, word, isBefore(k, row, k.add(begin, i), last));
    Value bit = arith::ShLIOp::create(
        k.b, loc, before, arith::IndexCastOp::create(k.b, loc, word, i));
    Value marks = arith::OrIOp::create(k.b, loc, loop.getRegionIterArg(0), bit);
    scf::YieldOp::create(k.b, loc, marks);
    return loop.getResult(0);
  }

  /// Takes positions of the chunk that starts at `begin`, by bit.
  Carried takeMarked(KernelBuilder &k, Value row, Value begin, Value marks,
                     Carried carried) {
    SmallVector<Value> initial = carried;
    initial.push_back(marks);
    Type word = marks.getType();
    auto isAny = [&](OpBuilder &b, Location loc, ValueRange values) {
      Value none = arith::ConstantIntOp::create(b, loc, word, 0);
      Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                        values.back(), none);
      scf::ConditionOp::create(b, loc, any, values);
    };
    auto takeFirst = [&](OpBuilder &b, Location loc, ValueRange values) {
      OpBuilder::InsertionGuard guard(k.b);
      k.b.restoreInsertionPoint(b.saveInsertionPoint());
      Value marks = values.back();
      Value first = math::CountTrailingZerosOp::create(k.b, loc, marks);
      Value position = k.add(begin, arith::IndexCastUIOp::create(
                                        k.b, loc, k.b.getIndexType(), first));
      SmallVector<Value> next =
          take(k, row, position, Carried(values.drop_back()));
      Value one = arith::ConstantIntOp::create(k.b, loc, word, 1);
      Value lower = arith::SubIOp::create(k.b, loc, marks, one);
      next.push_back(arith::AndIOp::create(k.b, loc, marks, lower));
      scf::YieldOp::create(k.b, loc, next);
    };
    auto loop = scf::WhileOp::create(k.b, loc, TypeRange(ValueRange(initial)),
                                     initial, isAny, takeFirst);
    return Carried(loop.getResults().drop_back());
  }

  /// Takes a position if it goes before the last of those that were kept when
  /// they were in order.
  Carried take(KernelBuilder &k, Value row, Value position, Carried carried) {
    Value last = load(k, carried.from, k.index(kept - 1));
    return when(k, isBefore(k, row, position, last), carried, [&] {
      if (!isOfFew())
        return append(k, row, position, carried);
      insert(k, row, position, carried.from, k.index(kept - 1));
      return carried;
    });
  }

  /// Appends a position, and makes room behind it.
  Carried append(KernelBuilder &k, Value row, Value position, Carried carried) {
    memref::StoreOp::create(k.b, loc, position, carried.from, carried.count);
    Carried more(carried.from, carried.to, k.add(carried.count, k.index(1)));
    Value isFull =
        k.compare(arith::CmpIPredicate::eq, more.count, k.index(capacity));
    return when(k, isFull, more, [&] {
      Carried sorted = sortLine(k, row, more, capacity);
      return Carried(sorted.from, sorted.to, k.index(kept));
    });
  }

  /// Puts a position among the `count` ones that are in order, behind those
  /// that it does not go before; what is at `count` goes.
  void insert(KernelBuilder &k, Value row, Value position, Value ordered,
              Value count) {
    Value zero = k.index(0), one = k.index(1);
    auto isBehind = [&](OpBuilder &b, Location loc, ValueRange place) {
      OpBuilder::InsertionGuard guard(k.b);
      k.b.restoreInsertionPoint(b.saveInsertionPoint());
      Value hasOne = k.compare(arith::CmpIPredicate::ne, place[0], zero);
      Value before = arith::SubIOp::create(k.b, loc, place[0], one);
      Value other =
          load(k, ordered, arith::MaxSIOp::create(k.b, loc, before, zero));
      Value goes = arith::AndIOp::create(k.b, loc, hasOne,
                                         isBefore(k, row, position, other));
      scf::ConditionOp::create(k.b, loc, goes, ValueRange{before, other});
    };
    auto moveOn = [&](OpBuilder &b, Location loc, ValueRange values) {
      Value place = arith::AddIOp::create(b, loc, values[0], one);
      memref::StoreOp::create(b, loc, values[1], ordered, place);
      scf::YieldOp::create(b, loc, values[0]);
    };
    Type type = k.b.getIndexType();
    auto loop = scf::WhileOp::create(k.b, loc, TypeRange{type, type}, count,
                                     isBehind, moveOn);
    memref::StoreOp::create(k.b, loc, position, ordered,
                            k.add(loop.getResult(0), one));
  }

  /// Merges runs of length 1, 2, 4... of positions, at most `most`, from one
  /// array into the other; the result is in the first one of what is returned.
  Carried sortLine(KernelBuilder &k, Value row, Carried positions,
                   int64_t most) {
    auto loop = scf::ForOp::create(
        k.b, loc, k.index(0), k.index(llvm::Log2_64_Ceil(most)), k.index(1),
        ValueRange{positions.from, positions.to, k.index(1)});
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    Value from = loop.getRegionIterArg(0), to = loop.getRegionIterArg(1);
    Value width = loop.getRegionIterArg(2);
    Value step = k.add(width, width);
    auto runs = scf::ForOp::create(k.b, loc, k.index(0), positions.count, step);
    scf::YieldOp::create(k.b, loc, ValueRange{to, from, step});
    k.b.setInsertionPointToStart(runs.getBody());
    merge(k, row, from, to, runs.getInductionVar(), width, positions.count);
    return {loop.getResult(0), loop.getResult(1), positions.count};
  }

  /// Merges the runs of `width` that start at `start` and after it, of `most`
  /// positions.
  void merge(KernelBuilder &k, Value row, Value from, Value to, Value start,
             Value width, Value most) {
    Value middle = arith::MinSIOp::create(k.b, loc, k.add(start, width), most);
    Value end = arith::MinSIOp::create(k.b, loc, k.add(middle, width), most);
    auto loop = scf::ForOp::create(k.b, loc, start, end, k.index(1),
                                   ValueRange{start, middle});
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    Value left = loop.getRegionIterArg(0), right = loop.getRegionIterArg(1);
    Value hasLeft = k.compare(arith::CmpIPredicate::slt, left, middle);
    Value hasRight = k.compare(arith::CmpIPredicate::slt, right, end);
    Value isRight = takesRight(
        k, row, hasRight, hasLeft, [&] { return load(k, from, right); },
        [&] { return load(k, from, left); });
    Value taken = arith::SelectOp::create(k.b, loc, isRight, right, left);
    memref::StoreOp::create(k.b, loc, load(k, from, taken), to,
                            loop.getInductionVar());
    Value one =
        arith::IndexCastUIOp::create(k.b, loc, k.b.getIndexType(), isRight);
    Value nextLeft =
        k.add(left, arith::SubIOp::create(k.b, loc, k.index(1), one));
    scf::YieldOp::create(k.b, loc, ValueRange{nextLeft, k.add(right, one)});
  }

  int64_t kept, capacity;
};

/// A slice of the first elements of each line that a sort gives, or null.
stablehlo::SliceOp findPrefix(OpOperand &use, int64_t dim) {
  auto slice = dyn_cast<stablehlo::SliceOp>(use.getOwner());
  if (!slice)
    return nullptr;
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(slice.getOperand().getType()).getShape();
  for (auto [i, start, limit, stride] :
       llvm::enumerate(slice.getStartIndices(), slice.getLimitIndices(),
                       slice.getStrides()))
    if (start != 0 || stride != 1 ||
        (static_cast<int64_t>(i) != dim && limit != shape[i]))
      return nullptr;
  return slice;
}

/// How many elements of each line are read: some of the first, or all.
int64_t countRead(stablehlo::SortOp op, int64_t dim, int64_t size) {
  int64_t most = 0;
  for (OpOperand &use : op->getUses()) {
    stablehlo::SliceOp slice = findPrefix(use, dim);
    if (!slice)
      return size;
    most = std::max(most, slice.getLimitIndices()[dim]);
  }
  // To sort twice the elements again and again takes as long as the whole sort
  // where they are more than a few of them.
  return most > 0 && most <= size / 4 ? most : size;
}

/// Replaces a sort, and what reads only what a selection gives.
void lowerSort(PatternRewriter &rewriter, stablehlo::SortOp op) {
  auto type = cast<RankedTensorType>(op.getInputs()[0].getType());
  int64_t dim = getSortedDim(op);
  int64_t size = type.getDimSize(dim);
  int64_t kept = countRead(op, dim, size);
  rewriter.setInsertionPoint(op);
  FailureOr<SmallVector<Value>> results = SortLoops(rewriter, op, kept).run();
  if (failed(results))
    return;
  if (kept == size)
    return replaceWithStored(rewriter, op, *results);
  for (auto [sorted, kernel] : llvm::zip_equal(op->getResults(), *results)) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = kept;
    auto first = cast<RankedTensorType>(sorted.getType()).clone(shape);
    Value value = kernel;
    if (value.getType() != first)
      value = UnrealizedConversionCastOp::create(rewriter, op.getLoc(), first,
                                                 value)
                  .getResult(0);
    for (OpOperand &use : llvm::make_early_inc_range(sorted.getUses())) {
      auto slice = cast<stablehlo::SliceOp>(use.getOwner());
      if (slice.getType() == first)
        rewriter.replaceOp(slice, value);
      else
        slice.getOperandMutable().assign(value);
    }
  }
  rewriter.eraseOp(op);
}

struct SortToKernels : OpRewritePattern<stablehlo::SortOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::SortOp op,
                                PatternRewriter &rewriter) const override {
    FailureOr<SmallVector<Value>> results = makeSortBlocks(rewriter, op);
    if (failed(results))
      return failure();
    replaceWithStored(rewriter, op, *results);
    return success();
  }
};

} // namespace

void whale::lowerSorts(FunctionOpInterface function) {
  PatternRewriter rewriter(function.getContext());
  SmallVector<stablehlo::SortOp> sorts;
  function.walk([&](stablehlo::SortOp op) {
    if (cast<RankedTensorType>(op.getInputs()[0].getType()).getNumElements() >
        0)
      sorts.push_back(op);
  });
  for (stablehlo::SortOp op : sorts)
    lowerSort(rewriter, op);
}

void whale::populateSortPatterns(RewritePatternSet &patterns,
                                 const Target &target) {
  if (target.isGpu())
    patterns.add<SortToKernels>(patterns.getContext());
}
