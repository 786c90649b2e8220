//===- WindowToLinalg.cpp - Reductions of windows -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a reduce_window. Out: loops or a kernel that compute it, on a processor
// or, by target, on a GPU.
//
// There are four forms. Where the window is a whole axis and padded on one
// side, the result is a running reduction (RunningToKernel.cpp; on a GPU
// lowerRunningBlocks). Where every element of every window is in the input and
// a window has more than kSumBlock of them, input and window are a nest of
// loops like that of a reduction, and the sums are shared out as there.
// Otherwise a kernel walks the window of each result, and skips what is
// outside: in blocks (SumOrder.h), if there are more than kSumBlock terms and
// the sum is rounded as coarsely as they are, else term by term.
//
// Cost: the kernel is built in time linear in rank and operands, times the
// levels of blocks. It reads each element of each window: the result's size
// times the window's. A running reduction on a processor takes time linear in
// the input.
//
//===----------------------------------------------------------------------===//

#include "Gpu/GpuKernels.h"
#include "Kernel/KernelWork.h"
#include "Kernel/SumOrder.h"
#include "Kernel/Windows.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace whale;

/// The only dimension with a window, if the window is the whole axis and one
/// side is padded so that element i reduces what is before (or after) i.
static std::optional<int64_t> findRunningAxis(ArrayRef<WindowDim> window,
                                              RankedTensorType from,
                                              RankedTensorType to) {
  std::optional<int64_t> axis;
  for (auto [dim, w] : llvm::enumerate(window)) {
    if (w.isTrivial())
      continue;
    int64_t size = from.getDimSize(dim);
    bool whole = w.size == size && w.stride == 1 && w.baseDilation == 1 &&
                 w.dilation == 1 && to.getDimSize(dim) == size &&
                 ((w.low == size - 1 && w.high == 0) ||
                  (w.low == 0 && w.high == size - 1));
    if (!whole || axis)
      return std::nullopt;
    axis = dim;
  }
  return axis;
}

//===----------------------------------------------------------------------===//
// Windows in blocks
//===----------------------------------------------------------------------===//

namespace {

/// Reduces windows in blocks. A block has no value before its first term; the
/// initial value is taken once, in the end.
class WindowBlocks {
public:
  WindowBlocks(KernelBuilder &k, WideReducer &reducer,
               ArrayRef<WindowDim> window, ArrayRef<int64_t> shape,
               ArrayRef<Type> elements);

  /// The results of the window at `output`; null if the reducer is not
  /// supported.
  FailureOr<SmallVector<Value>> reduce(ValueRange output,
                                       ArrayRef<Value> inits);

private:
  /// What a block has come to: whether it has a value, and the value.
  struct Partial {
    Value exists;
    SmallVector<Value> values;
  };

  Partial reduceLevel(size_t number, Partial sum);
  Partial addTerm(Partial sum);
  Partial join(const Partial &lhs, const Partial &rhs);
  SmallVector<Value> emit(ArrayRef<Value> carried, ArrayRef<Value> more);
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(k.b, k.loc, condition, yes, no);
  }

  KernelBuilder &k;
  WideReducer &reducer;
  ArrayRef<WindowDim> window;
  ArrayRef<int64_t> shape;
  ArrayRef<Type> elements;
  SmallVector<BlockLoop> levels;
  SmallVector<Value> output, offset;
  SmallVector<Value> inits;
  bool good = true;
};

WindowBlocks::WindowBlocks(KernelBuilder &k, WideReducer &reducer,
                           ArrayRef<WindowDim> window, ArrayRef<int64_t> shape,
                           ArrayRef<Type> elements)
    : k(k), reducer(reducer), window(window), shape(shape), elements(elements) {
  SmallVector<int64_t> sizes;
  for (const WindowDim &dim : window)
    sizes.push_back(dim.size);
  levels = getBlockLoops(sizes);
}

SmallVector<Value> WindowBlocks::emit(ArrayRef<Value> carried,
                                      ArrayRef<Value> more) {
  SmallVector<Value> arguments(carried);
  llvm::append_range(arguments, more);
  auto result = reducer.emit(k.b, arguments);
  good &= succeeded(result);
  return good ? *result : SmallVector<Value>(carried);
}

WindowBlocks::Partial WindowBlocks::join(const Partial &lhs,
                                         const Partial &rhs) {
  SmallVector<Value> values;
  for (auto [sum, left, right] :
       llvm::zip_equal(emit(lhs.values, rhs.values), lhs.values, rhs.values))
    values.push_back(select(rhs.exists, select(lhs.exists, sum, right), left));
  Value exists = arith::OrIOp::create(k.b, k.loc, lhs.exists, rhs.exists);
  return {exists, values};
}

WindowBlocks::Partial WindowBlocks::addTerm(Partial sum) {
  Place place = findPlace(k, window, shape, output, offset);
  SmallVector<Type> types{sum.exists.getType()};
  llvm::append_range(types, ValueRange(sum.values).getTypes());
  auto branch = scf::IfOp::create(k.b, k.loc, types, place.inside,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  auto yield = [&](const Partial &partial) {
    SmallVector<Value> all{partial.exists};
    llvm::append_range(all, partial.values);
    scf::YieldOp::create(k.b, k.loc, all);
  };
  k.b.setInsertionPointToStart(branch.thenBlock());
  yield(join(sum,
             {place.inside, loadTerms(k, reducer, place.indices, elements)}));
  k.b.setInsertionPointToStart(branch.elseBlock());
  yield(sum);
  return {branch.getResult(0),
          SmallVector<Value>(branch.getResults().drop_front())};
}

/// `sum`, joined with what the levels from `number` on come to.
WindowBlocks::Partial WindowBlocks::reduceLevel(size_t number, Partial sum) {
  if (number == levels.size())
    return addTerm(sum);
  const BlockLoop &level = levels[number];
  Value from = offset[level.dim];
  SmallVector<Value> carried{sum.exists};
  llvm::append_range(carried, sum.values);
  auto loop = makeBlockLoop(k, level, window[level.dim].size, from, carried);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(loop.getBody());
  offset[level.dim] = loop.getInductionVar();
  ValueRange now = loop.getRegionIterArgs();
  Partial before{now[0], SmallVector<Value>(now.drop_front())};
  Partial after;
  if (number + 1 == levels.size()) {
    after = reduceLevel(number + 1, before);
  } else {
    Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(false));
    after = join(before, reduceLevel(number + 1, {none, inits}));
  }
  SmallVector<Value> next{after.exists};
  llvm::append_range(next, after.values);
  scf::YieldOp::create(k.b, k.loc, next);
  offset[level.dim] = from;
  return {loop.getResult(0),
          SmallVector<Value>(loop.getResults().drop_front())};
}

FailureOr<SmallVector<Value>> WindowBlocks::reduce(ValueRange at,
                                                   ArrayRef<Value> values) {
  output.assign(at.begin(), at.end());
  inits.assign(values.begin(), values.end());
  offset.assign(window.size(), k.index(0));
  Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(false));
  Partial sum = reduceLevel(0, {none, inits});
  SmallVector<Value> results;
  for (auto [init, whole] : llvm::zip_equal(inits, emit(inits, sum.values)))
    results.push_back(select(sum.exists, whole, init));
  if (!good)
    return failure();
  return results;
}

} // namespace

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The results of the window at `output`, term by term.
static FailureOr<SmallVector<Value>>
reduceInOrder(KernelBuilder &k, WideReducer &reducer,
              ArrayRef<WindowDim> window, ArrayRef<int64_t> shape,
              ArrayRef<Type> elements, ValueRange output,
              ArrayRef<Value> inits) {
  SmallVector<int64_t> sizes;
  for (const WindowDim &dim : window)
    sizes.push_back(dim.size);
  bool good = true;
  SmallVector<Value> results =
      carryNest(k, sizes, inits, [&](ValueRange offset, ValueRange carried) {
        Place place = findPlace(k, window, shape, output, offset);
        auto branch =
            scf::IfOp::create(k.b, k.loc, carried.getTypes(), place.inside,
                              /*withElseRegion=*/true);
        OpBuilder::InsertionGuard guard(k.b);
        k.b.setInsertionPointToStart(branch.thenBlock());
        auto next = combineTerms(k, reducer, carried, place.indices, elements);
        good &= succeeded(next);
        scf::YieldOp::create(k.b, k.loc, good ? ValueRange(*next) : carried);
        k.b.setInsertionPointToStart(branch.elseBlock());
        scf::YieldOp::create(k.b, k.loc, carried);
        return SmallVector<Value>(branch.getResults());
      });
  if (!good)
    return failure();
  return results;
}

static LogicalResult buildWindow(KernelBuilder &k, stablehlo::ReduceWindowOp op,
                                 WideReducer &reducer,
                                 ArrayRef<WindowDim> window,
                                 ArrayRef<Type> elements, bool inBlocks) {
  auto from = cast<RankedTensorType>(op.getInputs()[0].getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  bool good = true;
  SmallVector<Value> inits = loadInits(k, reducer, elements);
  WindowBlocks blocks(k, reducer, window, from.getShape(), elements);
  k.parallel(to.getShape(), [&](ValueRange output) {
    auto results = inBlocks ? blocks.reduce(output, inits)
                            : reduceInOrder(k, reducer, window, from.getShape(),
                                            elements, output, inits);
    good &= succeeded(results);
    if (good)
      storeResults(k, reducer, *results, output);
  });
  return success(good);
}

/// Whether every element of every window is in the input.
static bool staysInside(ArrayRef<WindowDim> window) {
  return llvm::all_of(window, [](const WindowDim &dim) {
    return dim.low == 0 && dim.high == 0 && dim.baseDilation == 1;
  });
}

static int64_t countTaps(ArrayRef<WindowDim> window) {
  int64_t taps = 1;
  for (const WindowDim &dim : window)
    taps *= dim.size;
  return taps;
}

/// Whether the windows are a nest of loops, whose sums are shared out.
static bool isLoopNest(ArrayRef<WindowDim> window, const WideReducer &reducer) {
  return countTaps(window) > kSumBlock && !window.empty() &&
         staysInside(window) && reducer.isCombiner();
}

/// Loops over the elements of the result and those of their windows. Where
/// windows move by one along the last dimension, that loop is the innermost:
/// sums of neighbouring windows are then formed side by side.
static LogicalResult reduceInside(PatternRewriter &rewriter,
                                  stablehlo::ReduceWindowOp op,
                                  WideReducer &reducer,
                                  ArrayRef<WindowDim> window) {
  using utils::IteratorType;
  SmallVector<IteratorType> iterators;
  SmallVector<AffineExpr> from, to, inner;
  auto addLoop = [&](IteratorType iterator) {
    iterators.push_back(iterator);
    return rewriter.getAffineDimExpr(iterators.size() - 1);
  };
  bool lastInside = window.back().stride == 1;
  for (unsigned dim = 0; dim < window.size(); ++dim)
    if (dim + 1 < window.size() || !lastInside)
      to.push_back(addLoop(IteratorType::parallel));
  SmallVector<int64_t> sizes;
  for (const WindowDim &dim : window) {
    sizes.push_back(dim.size);
    inner.push_back(addLoop(IteratorType::reduction));
  }
  if (lastInside)
    to.push_back(addLoop(IteratorType::parallel));
  for (auto [dim, output, offset] : llvm::zip_equal(window, to, inner)) {
    AffineExpr place = output * dim.stride;
    // The only element is the first.
    from.push_back(dim.size == 1 ? place : place + offset * dim.dilation);
  }
  auto map = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(iterators.size(), 0, exprs, rewriter.getContext());
  };
  Value shape = tensor::EmptyOp::create(rewriter, op.getLoc(), sizes,
                                        rewriter.getI8Type());
  return reduceInLoops(rewriter, op, reducer, map(from), map(to), iterators,
                       {shape, map(inner)});
}

bool whale::isReducedInTurn(stablehlo::ReduceWindowOp op) {
  SmallVector<WindowDim> window = getReducedWindow(op);
  WideReducer reducer(op.getBody().front(), WideReducer::toWider);
  return !isLoopNest(window, reducer) &&
         !findRunningAxis(window,
                          cast<RankedTensorType>(op.getInputs()[0].getType()),
                          cast<RankedTensorType>(op->getResult(0).getType()));
}

LogicalResult whale::lowerReduceWindow(PatternRewriter &rewriter,
                                       stablehlo::ReduceWindowOp op,
                                       const Target &target) {
  auto from = cast<RankedTensorType>(op.getInputs()[0].getType());
  if (from.getNumElements() == 0)
    return replaceByInits(rewriter, op);
  SmallVector<WindowDim> window = getReducedWindow(op);
  // What has few terms needs no more than f32.
  int64_t taps = countTaps(window);
  WideReducer reducer(op.getBody().front(), taps <= kSumBlock
                                                ? WideReducer::toF32
                                                : WideReducer::toWider);
  if (isLoopNest(window, reducer))
    return reduceInside(rewriter, op, reducer, window);
  SmallVector<Value> inputs;
  SmallVector<Type> types, elements;
  for (Value input : op.getInputs())
    inputs.push_back(stored(rewriter, input));
  for (Value init : op.getInitValues())
    inputs.push_back(stored(rewriter, init));
  for (Type type : op.getResultTypes()) {
    types.push_back(getStorageType(cast<RankedTensorType>(type)));
    elements.push_back(getElementTypeOrSelf(type));
    if (!types.back())
      return failure();
  }
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  std::optional<int64_t> axis = findRunningAxis(window, from, to);
  if (axis && target.isGpu())
    return lowerRunningBlocks(rewriter, op, reducer, *axis,
                              window[*axis].low == 0);
  auto kernel = makeKernel(
      rewriter, op.getLoc(), target.isGpu(), types, inputs,
      [&](KernelBuilder &k) -> LogicalResult {
        if (axis)
          return buildRunning(k, op, reducer, *axis, window[*axis].low == 0,
                              elements);
        // What is rounded as coarsely as its terms.
        bool inBlocks = taps > kSumBlock && reducer.roundsTerms();
        return buildWindow(k, op, reducer, window, elements, inBlocks);
      });
  if (failed(kernel))
    return failure();
  noteWork(*kernel, op);
  // Nothing that is stored is read again.
  (*kernel)->setAttr(kParallelAttrName, rewriter.getUnitAttr());
  replaceWithStored(rewriter, op, kernel->getResults());
  return success();
}
namespace {
struct ReduceWindowToKernel : OpRewritePattern<stablehlo::ReduceWindowOp> {
  ReduceWindowToKernel(MLIRContext *context, const Target &target)
      : OpRewritePattern(context), target(target) {}

  LogicalResult matchAndRewrite(stablehlo::ReduceWindowOp op,
                                PatternRewriter &rewriter) const override {
    return lowerReduceWindow(rewriter, op, target);
  }

  Target target;
};
} // namespace

void whale::populateWindowPatterns(RewritePatternSet &patterns,
                                   const Target &target) {
  patterns.add<ReduceWindowToKernel>(patterns.getContext(), target);
}
