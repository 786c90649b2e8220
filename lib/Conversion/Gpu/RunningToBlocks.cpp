//===- RunningToBlocks.cpp - Running reductions for threads ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The GPU's form of a reduce_window whose window is a whole axis. In: the
// operation. Out: kernels whose threads each walk one block of kSumBlock steps:
//
// - of the axis, then of the totals of its blocks, and so on, until there is
//   only one block: each makes the total of its block;
// - back down from there: each makes of what is before its block what is before
//   each step of it, and in the end the results.
//
// The order is that in which RunningToKernel.cpp reduces in blocks, so that
// errors grow with the logarithm of the length, too. Cost: two kernels for each
// power of kSumBlock, and a fifteenth of the axis in scratch memory, twice.
//
//===----------------------------------------------------------------------===//

#include "Gpu/GpuKernels.h"
#include "Kernel/KernelWork.h"
#include "Kernel/SumOrder.h"
#include "Kernel/Windows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Transforms/OpCost.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;

namespace {

class RunningBlocks {
public:
  RunningBlocks(PatternRewriter &rewriter, stablehlo::ReduceWindowOp op,
                WideReducer &reducer, int64_t axis, bool reversed)
      : rewriter(rewriter), op(op), loc(op.getLoc()), reducer(reducer),
        reversed(reversed), count(op.getInputs().size()) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
      if (int64_t(dim) < axis)
        outer *= extent;
      if (int64_t(dim) > axis)
        inside *= extent;
    }
    sizes = {type.getDimSize(axis)};
    while (sizes.back() > kSumBlock)
      sizes.push_back(llvm::divideCeil(sizes.back(), kSumBlock));
    for (Type result : op->getResultTypes())
      elements.push_back(getElementTypeOrSelf(result));
  }

  LogicalResult run();

private:
  using Values = SmallVector<Value>;

  Values join(KernelBuilder &k, ValueRange before, ValueRange more) {
    return reducer.join(k.b, before, more, good);
  }
  Values loadTerms(KernelBuilder &k, size_t level, Value at);
  Values loadWide(KernelBuilder &k, unsigned first, Value at);
  void flatten(KernelBuilder &k);
  SmallVector<Type> makeTypes(size_t level) const;
  int64_t countBlocks(size_t level) const {
    return llvm::divideCeil(sizes[level], kSumBlock);
  }
  /// A block of steps of a level: where it is, and its first and last step.
  struct Walk {
    Value outer, block, inner, begin, end;
  };
  void overBlocks(KernelBuilder &k, size_t level,
                  function_ref<void(const Walk &)> body);
  Value getPlace(KernelBuilder &k, size_t level, Value outer, Value step,
                 Value inner) const;
  FailureOr<Values> makeTotals(size_t level, ArrayRef<Value> terms);
  FailureOr<Values> makeBefore(size_t level, ArrayRef<Value> terms,
                               ArrayRef<Value> before);

  PatternRewriter &rewriter;
  stablehlo::ReduceWindowOp op;
  Location loc;
  WideReducer &reducer;
  bool reversed;
  size_t count;
  int64_t outer = 1, inside = 1;
  /// Steps of each level.
  SmallVector<int64_t> sizes;
  SmallVector<Type> elements;
  bool good = true;
};

} // namespace

/// What the buffers from `first` on hold there, in the types of the reducer.
SmallVector<Value> RunningBlocks::loadWide(KernelBuilder &k, unsigned first,
                                           Value at) {
  Values values;
  for (unsigned number = 0; number < count; ++number)
    values.push_back(k.loadScalar(first + number, at, reducer.getType(number)));
  return values;
}

SmallVector<Value> RunningBlocks::loadTerms(KernelBuilder &k, size_t level,
                                            Value at) {
  return level > 0 ? loadWide(k, 0, at)
                   : whale::loadTerms(k, reducer, at, elements);
}

/// Lets all buffers but scalars be seen as one dimension.
void RunningBlocks::flatten(KernelBuilder &k) {
  for (Value &buffer : k.buffers)
    if (cast<MemRefType>(buffer.getType()).getRank() > 0)
      buffer = whale::flatten(k.b, loc, buffer);
}

/// Tensors of what the reducer carries at each step of a level.
SmallVector<Type> RunningBlocks::makeTypes(size_t level) const {
  SmallVector<Type> types;
  for (unsigned number = 0; number < count; ++number)
    types.push_back(
        RankedTensorType::get({outer, sizes[level], inside},
                              getStorageType(reducer.getType(number))));
  return types;
}

Value RunningBlocks::getPlace(KernelBuilder &k, size_t level, Value outer,
                              Value step, Value inner) const {
  if (level == 0 && reversed)
    step = arith::SubIOp::create(k.b, loc, k.index(sizes[0] - 1), step);
  Value line = k.add(k.mul(outer, k.index(sizes[level])), step);
  return k.add(k.mul(line, k.index(inside)), inner);
}

void RunningBlocks::overBlocks(KernelBuilder &k, size_t level,
                               function_ref<void(const Walk &)> body) {
  flatten(k);
  k.parallel({outer, countBlocks(level), inside}, [&](ValueRange at) {
    Value begin = k.mul(at[1], k.index(kSumBlock));
    Value end = arith::MinUIOp::create(
        k.b, loc, k.add(begin, k.index(kSumBlock)), k.index(sizes[level]));
    body({at[0], at[1], at[2], begin, end});
  });
}

/// The totals of the blocks of a level.
FailureOr<SmallVector<Value>> RunningBlocks::makeTotals(size_t level,
                                                        ArrayRef<Value> terms) {
  auto build = [&](KernelBuilder &k) {
    overBlocks(k, level, [&](const Walk &walk) {
      auto load = [&](Value step) {
        return loadTerms(k, level,
                         getPlace(k, level, walk.outer, step, walk.inner));
      };
      auto loop = scf::ForOp::create(k.b, loc, k.add(walk.begin, k.index(1)),
                                     walk.end, k.index(1), load(walk.begin));
      {
        OpBuilder::InsertionGuard guard(k.b);
        k.b.setInsertionPointToStart(loop.getBody());
        scf::YieldOp::create(k.b, loc,
                             join(k, Values(loop.getRegionIterArgs()),
                                  load(loop.getInductionVar())));
      }
      Value place = getPlace(k, level + 1, walk.outer, walk.block, walk.inner);
      for (auto [operand, value] : llvm::enumerate(loop.getResults()))
        k.store(value, count + operand, place);
    });
    return success(good);
  };
  auto kernel = makeKernel(rewriter, loc, /*blocks=*/true, makeTypes(level + 1),
                           terms, build);
  if (failed(kernel))
    return failure();
  noteWork(*kernel, op,
           level == 0 ? opFlops(op)
                      : cast<ShapedType>(terms[0].getType()).getNumElements());
  return Values(kernel->getResults());
}

/// What is before each step of a level or, of the axis itself, the results;
/// `before` is what is before its blocks, or the initial values.
FailureOr<SmallVector<Value>>
RunningBlocks::makeBefore(size_t level, ArrayRef<Value> terms,
                          ArrayRef<Value> before) {
  bool isTop = level + 1 == sizes.size();
  Values inputs(terms);
  llvm::append_range(inputs, before);
  auto build = [&](KernelBuilder &k) {
    overBlocks(k, level, [&](const Walk &walk) {
      Values start = isTop ? loadInits(k, reducer, elements)
                           : loadWide(k, count,
                                      getPlace(k, level + 1, walk.outer,
                                               walk.block, walk.inner));
      auto step = [&](Value at, ArrayRef<Value> within) {
        Value place = getPlace(k, level, walk.outer, at, walk.inner);
        Values term = loadTerms(k, level, place);
        Values sum = within.empty() ? term : join(k, within, term);
        if (level == 0) {
          storeResults(k, reducer, join(k, start, sum), place);
          return sum;
        }
        Values before = within.empty() ? start : join(k, start, within);
        for (auto [operand, value] : llvm::enumerate(before))
          k.store(value, 2 * count + operand, place);
        return sum;
      };
      auto loop =
          scf::ForOp::create(k.b, loc, k.add(walk.begin, k.index(1)), walk.end,
                             k.index(1), step(walk.begin, {}));
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(loop.getBody());
      scf::YieldOp::create(
          k.b, loc,
          step(loop.getInductionVar(), Values(loop.getRegionIterArgs())));
    });
    return success(good);
  };
  SmallVector<Type> types = makeTypes(level);
  if (level == 0)
    for (auto [type, result] : llvm::zip_equal(types, op->getResultTypes()))
      type = getStorageType(cast<RankedTensorType>(result));
  auto kernel =
      makeKernel(rewriter, loc, /*blocks=*/true, types, inputs, build);
  if (failed(kernel))
    return failure();
  noteWork(*kernel, op,
           level == 0 ? opFlops(op)
                      : cast<ShapedType>(terms[0].getType()).getNumElements());
  return Values(kernel->getResults());
}

LogicalResult RunningBlocks::run() {
  SmallVector<Values> terms(1);
  Values before;
  for (Value input : op.getInputs())
    terms[0].push_back(stored(rewriter, input));
  for (Value init : op.getInitValues())
    before.push_back(stored(rewriter, init));
  for (size_t level = 0; level + 1 < sizes.size(); ++level) {
    FailureOr<Values> totals = makeTotals(level, terms.back());
    if (failed(totals))
      return failure();
    terms.push_back(*totals);
  }
  for (size_t level = sizes.size(); level-- > 0;) {
    FailureOr<Values> next = makeBefore(level, terms[level], before);
    if (failed(next))
      return failure();
    before = *next;
  }
  replaceWithStored(rewriter, op, before);
  return success();
}

LogicalResult whale::lowerRunningBlocks(PatternRewriter &rewriter,
                                        stablehlo::ReduceWindowOp op,
                                        WideReducer &reducer, int64_t axis,
                                        bool reversed) {
  return RunningBlocks(rewriter, op, reducer, axis, reversed).run();
}
