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

#include "SumOrder.h"
#include "Windows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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
  Values loadTerms(KernelBuilder &k, size_t level, unsigned first, Value at);
  Values loadWide(KernelBuilder &k, unsigned first, Value at);
  void flatten(KernelBuilder &k);
  SmallVector<Type> makeTypes(size_t level) const;
  void overBlocks(KernelBuilder &k, size_t level,
                  function_ref<void(Value, Value, Value, Value)> body);
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
                                            unsigned first, Value at) {
  if (level > 0)
    return loadWide(k, first, at);
  Values values;
  for (auto [number, element] : llvm::enumerate(elements))
    values.push_back(reducer.widen(
        k.b, loc, k.loadScalar(first + number, at, element), number));
  return values;
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

/// An iteration for each block of steps of a level: the body gets where it is,
/// among the blocks of the level and of the axis.
void RunningBlocks::overBlocks(
    KernelBuilder &k, size_t level,
    function_ref<void(Value, Value, Value, Value)> body) {
  int64_t blocks = llvm::divideCeil(sizes[level], kSumBlock);
  flatten(k);
  k.loop(k.begin, k.end, [&](Value number) {
    Value inner = arith::RemUIOp::create(k.b, loc, number, k.index(inside));
    Value line = arith::DivUIOp::create(k.b, loc, number, k.index(inside));
    Value block = arith::RemUIOp::create(k.b, loc, line, k.index(blocks));
    Value outer = arith::DivUIOp::create(k.b, loc, line, k.index(blocks));
    body(number, outer, block, inner);
  });
}

/// The totals of the blocks of a level.
FailureOr<SmallVector<Value>> RunningBlocks::makeTotals(size_t level,
                                                        ArrayRef<Value> terms) {
  auto build = [&](KernelBuilder &k) {
    overBlocks(
        k, level, [&](Value number, Value outer, Value block, Value inner) {
          Value begin = k.mul(block, k.index(kSumBlock));
          Value end =
              arith::MinUIOp::create(k.b, loc, k.add(begin, k.index(kSumBlock)),
                                     k.index(sizes[level]));
          auto load = [&](Value step) {
            return loadTerms(k, level, 0,
                             getPlace(k, level, outer, step, inner));
          };
          auto loop = scf::ForOp::create(k.b, loc, k.add(begin, k.index(1)),
                                         end, k.index(1), load(begin));
          {
            OpBuilder::InsertionGuard guard(k.b);
            k.b.setInsertionPointToStart(loop.getBody());
            scf::YieldOp::create(k.b, loc,
                                 join(k, Values(loop.getRegionIterArgs()),
                                      load(loop.getInductionVar())));
          }
          for (auto [operand, value] : llvm::enumerate(loop.getResults()))
            k.store(value, count + operand, number);
        });
    return success(good);
  };
  auto kernel = makeKernel(rewriter, loc, makeTypes(level + 1), terms,
                           outer * sizes[level + 1] * inside, build);
  if (failed(kernel))
    return failure();
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
    overBlocks(
        k, level, [&](Value number, Value outer, Value block, Value inner) {
          Values start;
          for (unsigned operand = 0; operand < count; ++operand)
            start.push_back(
                isTop ? reducer.widen(k.b, loc,
                                      k.loadScalar(count + operand, {},
                                                   elements[operand]),
                                      operand)
                      : k.loadScalar(count + operand, number,
                                     reducer.getType(operand)));
          Value begin = k.mul(block, k.index(kSumBlock));
          Value end =
              arith::MinUIOp::create(k.b, loc, k.add(begin, k.index(kSumBlock)),
                                     k.index(sizes[level]));
          auto step = [&](Value at, ArrayRef<Value> within) {
            Value place = getPlace(k, level, outer, at, inner);
            Values term = loadTerms(k, level, 0, place);
            Values sum = within.empty() ? term : join(k, within, term);
            Values result;
            if (level == 0)
              result = join(k, start, sum);
            else
              result = within.empty() ? start : join(k, start, within);
            for (auto [operand, value] : llvm::enumerate(result))
              k.store(level == 0 ? reducer.narrow(k.b, loc, value, operand)
                                 : value,
                      2 * count + operand, place);
            return sum;
          };
          auto loop = scf::ForOp::create(k.b, loc, k.add(begin, k.index(1)),
                                         end, k.index(1), step(begin, {}));
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
  auto kernel = makeKernel(
      rewriter, loc, types, inputs,
      outer * llvm::divideCeil(sizes[level], kSumBlock) * inside, build);
  if (failed(kernel))
    return failure();
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
