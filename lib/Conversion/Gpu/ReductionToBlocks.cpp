//===- ReductionToBlocks.cpp - Reductions by any function, for threads ----===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The GPU's form of a reduction whose results are not each a sum, a maximum or
// the like: argmax, any function of several operands. In: the operation. Out:
// kernels whose blocks of threads are `columns` results wide and `rows` threads
// deep. A thread reduces neighbouring terms of its result, then neighbouring
// threads combine what they have in shared memory: no two terms change places,
// so that a function which only is associative gives what it should. Where
// there are few results, or rows are long, a first kernel makes partial results
// of chunks, which the next one reduces; their sizes follow from the shapes.
//
// An operand that is computed from its place alone, as the positions of argmax
// are, is computed in the kernel and not read.
//
// Cost: one read of the terms, of which a thread takes kTermsPerThread to
// kMostTerms, and log2(rows) barriers.
//
//===----------------------------------------------------------------------===//

#include "Gpu/GpuKernels.h"
#include "Kernel/KernelWork.h"
#include "Kernel/SumOrder.h"
#include "Kernel/Windows.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "whale/Transforms/OpCost.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;

/// Terms that a thread reduces before a further thread pays, and at most.
static constexpr int64_t kTermsPerThread = 16, kMostTerms = 1024;
/// Threads of a block; of one result where neighbours have other ones.
static constexpr int64_t kThreads = 256;
/// Fewer blocks leave most of a GPU without work: then each result has several,
/// whose threads take at least so many terms.
static constexpr int64_t kFewBlocks = 128, kChunkTerms = 32;

namespace {

/// A run of dimensions that are all reduced, or all kept.
struct Run {
  int64_t size, stride;
  bool reduced;
};

class ReductionBlocks {
public:
  ReductionBlocks(PatternRewriter &rewriter, stablehlo::ReduceOp op,
                  WideReducer &reducer)
      : rewriter(rewriter), op(op), loc(op.getLoc()), reducer(reducer),
        count(op.getInputs().size()) {
    for (Type result : op->getResultTypes())
      elements.push_back(getElementTypeOrSelf(result));
  }

  LogicalResult run();

private:
  using Values = SmallVector<Value>;

  /// How a kernel is cut.
  struct Shape {
    SmallVector<Run> runs; // Of the terms.
    int64_t results = 1, terms = 1;
    int64_t columns = 1, rows = 1;
    bool across = false; // Neighbouring threads have neighbouring results.
    int64_t chunks = 1, chunkTerms = 1, each = 1; // Terms of a thread.
  };

  Shape findShape(ArrayRef<int64_t> sizes, ArrayRef<int64_t> reduced) const;
  FailureOr<Values> reduce(ArrayRef<Value> terms, const Shape &shape,
                           bool isFirst, ArrayRef<Value> inits);
  void emitBlock(KernelBuilder &k, const Shape &shape, bool isFirst,
                 Value chunk, Value group);
  Values loadTerms(KernelBuilder &k, const Shape &shape, bool isFirst,
                   Value result, Value term);
  Values join(KernelBuilder &k, ValueRange before, ValueRange more) {
    return reducer.join(k.b, before, more, good);
  }
  Values overTerms(KernelBuilder &k, const Shape &shape, Value first, Value end,
                   function_ref<Values(Value)> load);
  Values acrossThreads(KernelBuilder &k, const Shape &shape,
                       ArrayRef<Value> values, Value row, Value column,
                       Value first, Value end);
  Type getStored(unsigned number) const;

  PatternRewriter &rewriter;
  stablehlo::ReduceOp op;
  Location loc;
  WideReducer &reducer;
  unsigned count;
  SmallVector<Type> elements; // Of the results.
  /// By operand what computes it from its place, or null.
  SmallVector<linalg::GenericOp> makers;
  bool good = true;
};

} // namespace

/// The operation that computes all elements of a value from their places alone.
static linalg::GenericOp findMaker(Value value) {
  auto maker = value.getDefiningOp<linalg::GenericOp>();
  if (!maker || maker->getNumResults() != 1 || maker.getNumDpsInputs() != 0 ||
      maker.getNumReductionLoops() != 0 ||
      !maker.getMatchingIndexingMap(maker.getDpsInitOperand(0)).isIdentity() ||
      maker.payloadUsesValueFromOperand(maker.getDpsInitOperand(0)))
    return {};
  WalkResult result = maker.getRegion().walk([&](Operation *inner) {
    bool captures = llvm::any_of(inner->getOperands(), [&](Value operand) {
      return !maker.getRegion().isAncestor(operand.getParentRegion());
    });
    return captures ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted() ? linalg::GenericOp() : maker;
}

/// The type in which threads keep operand `number`.
Type ReductionBlocks::getStored(unsigned number) const {
  Type type = getStorageType(reducer.getType(number));
  return type.isInteger(1) ? rewriter.getIntegerType(8) : type;
}

ReductionBlocks::Shape
ReductionBlocks::findShape(ArrayRef<int64_t> sizes,
                           ArrayRef<int64_t> reduced) const {
  Shape shape;
  int64_t stride = 1;
  for (int64_t dim = sizes.size(); dim-- > 0; stride *= sizes[dim]) {
    bool isReduced = llvm::is_contained(reduced, dim);
    (isReduced ? shape.terms : shape.results) *= sizes[dim];
    if (sizes[dim] == 1)
      continue;
    if (!shape.runs.empty() && shape.runs.back().reduced == isReduced)
      shape.runs.back().size *= sizes[dim];
    else
      shape.runs.push_back({sizes[dim], stride, isReduced});
  }
  shape.across = !shape.runs.front().reduced;
  std::reverse(shape.runs.begin(), shape.runs.end());

  int64_t bytes = 0;
  for (unsigned number = 0; number < count; ++number)
    bytes += getStoredBytes(getStored(number));
  int64_t threads = kThreads;
  while (threads > 1 && threads * bytes > kMaxSharedBytes)
    threads /= 2;
  auto powerOf2 = [](int64_t value) {
    return static_cast<int64_t>(
        llvm::PowerOf2Ceil(static_cast<uint64_t>(value)));
  };
  shape.rows = std::min(
      powerOf2(llvm::divideCeil(shape.terms, kTermsPerThread)), threads);
  if (shape.across)
    shape.rows = std::max<int64_t>(
        std::min(shape.rows,
                 threads / std::min(kWarp, powerOf2(shape.results))),
        1);
  shape.columns =
      std::min(powerOf2(shape.results),
               shape.across ? std::min(kWarp, threads) : threads / shape.rows);
  int64_t blocks = llvm::divideCeil(shape.results, shape.columns);
  int64_t chunks = llvm::divideCeil(shape.terms, shape.rows * kMostTerms);
  if (blocks < kFewBlocks)
    chunks = std::max(
        chunks, std::min(kMostTerms, shape.terms / (shape.rows * kChunkTerms)));
  shape.chunkTerms =
      llvm::divideCeil(shape.terms, std::max<int64_t>(chunks, 1));
  shape.chunks = llvm::divideCeil(shape.terms, shape.chunkTerms);
  shape.each = llvm::divideCeil(shape.chunkTerms, shape.rows);
  return shape;
}

/// Term number `term` of result number `result`, as the reducer takes it.
SmallVector<Value> ReductionBlocks::loadTerms(KernelBuilder &k,
                                              const Shape &shape, bool isFirst,
                                              Value result, Value term) {
  Value place = k.index(0);
  for (const Run &run : llvm::reverse(shape.runs)) {
    Value &number = run.reduced ? term : result;
    bool isLast = llvm::none_of(shape.runs, [&](const Run &other) {
      return other.reduced == run.reduced && other.stride > run.stride;
    });
    Value size = k.index(run.size);
    Value at = isLast
                   ? number
                   : arith::RemUIOp::create(k.b, loc, number, size).getResult();
    if (!isLast)
      number = arith::DivUIOp::create(k.b, loc, number, size);
    place = k.add(place, k.mul(at, k.index(run.stride)));
  }
  Values values;
  for (unsigned number = 0; number < count; ++number) {
    Type type = isFirst ? getElementTypeOrSelf(op.getInputs()[number].getType())
                        : reducer.getType(number);
    Value value;
    if (linalg::GenericOp maker = isFirst ? makers[number] : nullptr) {
      SmallVector<Value> at = k.unflatten(
          place, cast<ShapedType>(maker->getResult(0).getType()).getShape());
      IRMapping mapping;
      for (Operation &inner : maker.getBody()->without_terminator()) {
        if (auto index = dyn_cast<linalg::IndexOp>(inner))
          mapping.map(index.getResult(), at[index.getDim()]);
        else
          k.b.clone(inner, mapping);
      }
      value = mapping.lookup(maker.getBody()->getTerminator()->getOperand(0));
    } else {
      value = k.loadScalar(number, place, type);
    }
    values.push_back(isFirst ? reducer.widen(k.b, loc, value, number) : value);
  }
  return values;
}

/// The terms `first` to `end`, of which there is at least one. Those of a long
/// run are reduced in blocks: an error is then not that of all of them.
SmallVector<Value>
ReductionBlocks::overTerms(KernelBuilder &k, const Shape &shape, Value first,
                           Value end, function_ref<Values(Value)> load) {
  auto reduceRun = [&](Value from, Value to) {
    auto loop = scf::ForOp::create(k.b, loc, k.add(from, k.index(1)), to,
                                   k.index(1), load(from));
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(k.b, loc,
                         join(k, Values(loop.getRegionIterArgs()),
                              load(loop.getInductionVar())));
    return Values(loop.getResults());
  };
  if (shape.each <= 2 * kSumBlock)
    return reduceRun(first, end);
  Value block = k.index(kSumBlock);
  Value next = k.add(first, block);
  auto until = [&](Value to) {
    return arith::MinUIOp::create(k.b, loc, to, end).getResult();
  };
  auto loop = scf::ForOp::create(k.b, loc, next, end, block,
                                 reduceRun(first, until(next)));
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(loop.getBody());
  Value from = loop.getInductionVar();
  scf::YieldOp::create(k.b, loc,
                       join(k, Values(loop.getRegionIterArgs()),
                            reduceRun(from, until(k.add(from, block)))));
  return Values(loop.getResults());
}

/// Combines the values of the threads of a result, each with those behind it.
/// The thread in row 0, whose terms begin at `first` as those of all rows do
/// that are `each` before the next one's, gets what all of them make.
SmallVector<Value> ReductionBlocks::acrossThreads(KernelBuilder &k,
                                                  const Shape &shape,
                                                  ArrayRef<Value> values,
                                                  Value row, Value column,
                                                  Value first, Value end) {
  if (shape.rows == 1)
    return Values(values);
  Values shared;
  for (unsigned number = 0; number < count; ++number)
    shared.push_back(allocateShared(k.b, loc, shape.rows * shape.columns,
                                    getStored(number)));
  Value place = shape.across ? k.add(k.mul(row, k.index(shape.columns)), column)
                             : k.add(k.mul(column, k.index(shape.rows)), row);
  auto load = [&](Value at) {
    Values loaded;
    for (unsigned number = 0; number < count; ++number) {
      Value value = memref::LoadOp::create(k.b, loc, shared[number], at);
      if (reducer.getType(number).isInteger(1))
        value = arith::TruncIOp::create(k.b, loc, k.b.getI1Type(), value);
      loaded.push_back(value);
    }
    return loaded;
  };
  auto store = [&](ArrayRef<Value> from) {
    for (auto [value, memory] : llvm::zip_equal(from, shared)) {
      Value whole = value;
      if (value.getType().isInteger(1))
        whole = arith::ExtUIOp::create(k.b, loc, k.b.getI8Type(), value);
      memref::StoreOp::create(k.b, loc, whole, memory, place);
    }
  };
  store(values);
  for (int64_t step = 1; step < shape.rows; step *= 2) {
    gpu::BarrierOp::create(k.b, loc);
    // Threads without terms are behind all that have some.
    Value isLeft =
        k.compare(arith::CmpIPredicate::eq,
                  arith::AndIOp::create(k.b, loc, row, k.index(2 * step - 1)),
                  k.index(0));
    Value hasOther = k.compare(arith::CmpIPredicate::ult,
                               k.add(first, k.index(step * shape.each)), end);
    k.when(arith::AndIOp::create(k.b, loc, isLeft, hasOther), [&] {
      Value other =
          k.add(place, k.index(shape.across ? step * shape.columns : step));
      store(join(k, load(place), load(other)));
    });
  }
  // The thread in row 0 reads what it wrote.
  return load(place);
}

/// What a block does: the blocks of one chunk are neighbours.
void ReductionBlocks::emitBlock(KernelBuilder &k, const Shape &shape,
                                bool isFirst, Value chunk, Value group) {
  Value column, row;
  std::tie(column, row) =
      findThread(k.b, loc, shape.columns, shape.rows, shape.across);
  Value result = k.add(k.mul(group, k.index(shape.columns)), column);
  Value isInside = k.inside(result, shape.results);
  // Threads without a result reduce that of another one.
  result = arith::MinUIOp::create(k.b, loc, result, k.index(shape.results - 1));
  Value start = k.mul(chunk, k.index(shape.chunkTerms));
  auto until = [&](Value value, Value most) {
    return arith::MinUIOp::create(k.b, loc, value, most).getResult();
  };
  Value end =
      until(k.add(start, k.index(shape.chunkTerms)), k.index(shape.terms));
  Value first = k.add(start, k.mul(row, k.index(shape.each)));
  // Those without terms take the last one, which nothing uses.
  Value from = until(
      first, arith::SubIOp::create(k.b, loc, end, k.index(1)).getResult());
  Values values = overTerms(
      k, shape, from, until(k.add(from, k.index(shape.each)), end),
      [&](Value term) { return loadTerms(k, shape, isFirst, result, term); });
  values = acrossThreads(k, shape, values, row, column, first, end);
  Value isOwner = arith::AndIOp::create(
      k.b, loc, isInside, k.compare(arith::CmpIPredicate::eq, row, k.index(0)));
  k.when(isOwner, [&] {
    if (shape.chunks > 1) {
      Value place = k.add(k.mul(chunk, k.index(shape.results)), result);
      for (auto [number, value] : llvm::enumerate(values))
        k.store(value, count + number, place);
      return;
    }
    Values inits = loadInits(k, reducer, elements);
    storeResults(k, reducer, join(k, inits, values), result);
  });
}

/// One kernel: the results or, of several chunks, partial ones.
FailureOr<SmallVector<Value>> ReductionBlocks::reduce(ArrayRef<Value> terms,
                                                      const Shape &shape,
                                                      bool isFirst,
                                                      ArrayRef<Value> inits) {
  bool isLast = shape.chunks == 1;
  Values inputs(terms);
  SmallVector<Type> types;
  if (isLast)
    llvm::append_range(inputs, inits);
  for (unsigned number = 0; number < count; ++number)
    types.push_back(isLast ? getStorageType(cast<RankedTensorType>(
                                 op->getResult(number).getType()))
                           : RankedTensorType::get(
                                 {shape.chunks, shape.results},
                                 getStorageType(reducer.getType(number))));
  auto build = [&](KernelBuilder &k) {
    for (Value &buffer : k.buffers)
      if (cast<MemRefType>(buffer.getType()).getRank() > 0)
        buffer = flatten(k.b, loc, buffer);
    // A scalar has no index.
    if (isLast && cast<ShapedType>(types[0]).getRank() == 0)
      for (Value &buffer : MutableArrayRef(k.buffers).take_back(count))
        buffer = flatten(k.b, loc, buffer);
    int64_t groups = llvm::divideCeil(shape.results, shape.columns);
    k.parallel({shape.chunks, groups}, [&](ValueRange at) {
      emitBlock(k, shape, isFirst, at[0], at[1]);
    });
    return success(good);
  };
  auto kernel =
      makeKernel(rewriter, loc, /*blocks=*/true, types, inputs, build);
  if (failed(kernel))
    return failure();
  (*kernel)->setAttr(kThreadsAttrName,
                     rewriter.getI64IntegerAttr(shape.rows * shape.columns));
  noteWork(*kernel, op,
           isFirst ? opFlops(op)
                   : cast<ShapedType>(terms[0].getType()).getNumElements());
  return Values(kernel->getResults());
}

LogicalResult ReductionBlocks::run() {
  Values terms, inits;
  for (Value input : op.getInputs()) {
    terms.push_back(stored(rewriter, input));
    if (!terms.back())
      return failure();
    makers.push_back(findMaker(terms.back()));
  }
  for (Value init : op.getInitValues())
    inits.push_back(stored(rewriter, init));
  // What is computed again is not read: another operand stands for it.
  if (!llvm::all_of(makers, [](linalg::GenericOp maker) { return maker; })) {
    size_t read = llvm::find(makers, linalg::GenericOp()) - makers.begin();
    for (auto [value, maker] : llvm::zip_equal(terms, makers))
      if (maker)
        value = terms[read];
  }
  Shape shape =
      findShape(cast<ShapedType>(op.getInputs()[0].getType()).getShape(),
                llvm::to_vector(op.getDimensions()));
  for (bool isFirst = true;; isFirst = false) {
    FailureOr<Values> results = reduce(terms, shape, isFirst, inits);
    if (failed(results))
      return failure();
    if (shape.chunks == 1) {
      replaceWithStored(rewriter, op, *results);
      return success();
    }
    terms = *results;
    shape = findShape({shape.chunks, shape.results}, {0});
  }
}

LogicalResult whale::lowerReductionBlocks(PatternRewriter &rewriter,
                                          stablehlo::ReduceOp op,
                                          WideReducer &reducer) {
  return ReductionBlocks(rewriter, op, reducer).run();
}
