//===- EmitBlocks.cpp - One linalg operation for blocks of threads --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The GPU's form of a loop nest. In: what LinalgToKernel.cpp has found out
// about the accesses. Out: a kernel whose iterations are independent.
//
// - Without reductions an iteration computes one element, or as many
//   neighbours as fill 16 bytes; the GPU runs it in a thread of its own.
// - A reduction with one combining operation is shared out: an iteration is a
//   block of threads, `columns` results wide and `rows` threads deep. Each
//   thread combines every `rows`-th term of its result, then the threads
//   combine what they have, always in the same order. Neighbouring threads read
//   neighbouring elements: along the results where the operands lie so, else
//   along the terms.
// - Few results of many terms are combined by two kernels, the first of which
//   makes `chunks` partial results of each; how many follows from the shapes
//   alone, so that the bits are the same on every GPU.
// - Any other reduction is an iteration, and a thread, for each result.
//
//===----------------------------------------------------------------------===//

#include "LinalgToKernel.h"
#include "LoopNest.h"
#include "Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;

/// Threads that run in lockstep.
static constexpr int64_t kWarp = 32;
/// Threads of a block that reduces, where it may choose.
static constexpr int64_t kThreads = 256;
/// Threads for one result: more make the last steps long.
static constexpr int64_t kMaxRows = 512;
/// Terms that a thread combines before a further thread pays.
static constexpr int64_t kTermsPerThread = 16;
/// Terms of a thread that are added to one partial sum: with two levels of
/// sums the error of 4,096 terms is that of some 160.
static constexpr int64_t kRun = 32;
/// Fewer blocks leave most of a GPU without work (an H100 has 132
/// multiprocessors): then terms are dealt out to several blocks.
static constexpr int64_t kFewBlocks = 128;
static constexpr int64_t kMaxChunks = 1024;
/// Operations that may be unrolled for a wide access; below so many elements
/// there are fewer threads than an H100 has room for, 132 * 2,048.
static constexpr int64_t kMaxUnrolled = 256;
static constexpr int64_t kFullGpu = 132 * 2048;

static int64_t getPowerOf2(int64_t value) {
  return static_cast<int64_t>(
      llvm::PowerOf2Ceil(static_cast<uint64_t>(std::max<int64_t>(value, 1))));
}

/// Of an element of the type.
static int64_t getBytes(Type type) {
  return std::max<int64_t>(getStoredBits(getElementTypeOrSelf(type)) / 8, 1);
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

/// Every accumulated result has one combining operation.
bool LoopNest::findCombiners() {
  for (unsigned number = 0; number < writes.size(); ++number) {
    if (!isAccumulated(number))
      continue;
    Operation *combiner = findCombiner(op, number);
    if (!combiner) {
      sums.clear();
      return false;
    }
    sums.push_back({number, combiner, {}, {}});
  }
  return !sums.empty();
}

void LoopNest::findBlocks() {
  blocks = {};
  bool isReduction = op.getNumReductionLoops() > 0 && findCombiners();
  findLoops();
  llvm::sort(loops, [](const Loop &a, const Loop &b) {
    return std::pair(!a.parallel, a.lastDim) <
           std::pair(!b.parallel, b.lastDim);
  });
  numOuter = llvm::count_if(loops, [](const Loop &l) { return l.parallel; });
  for (auto [number, loop] : llvm::enumerate(loops))
    (number < numOuter ? blocks.results : blocks.terms) *= loop.size;
  if (!isReduction || blocks.terms < kTermsPerThread)
    return;
  // Which neighbours are near in memory, by the number of elements read.
  int64_t along = 0, across = 0;
  for (auto [number, access] : llvm::enumerate(reads)) {
    if (access.buffer == ~0u)
      continue;
    int64_t count =
        cast<ShapedType>(op.getDpsInputs()[number].getType()).getNumElements();
    if (access.coefficients[loops.back().lastDim] == 1)
      along += count;
    else if (numOuter > 0 &&
             access.coefficients[loops[numOuter - 1].lastDim] == 1)
      across += count;
  }
  blocks.across = across > along && blocks.results > 1;
  int64_t most = blocks.across ? kWarp : kMaxRows;
  blocks.rows = std::min(
      getPowerOf2(llvm::divideCeil(blocks.terms, kTermsPerThread)), most);
  blocks.columns = std::min(
      getPowerOf2(blocks.results),
      blocks.across ? kWarp : std::max<int64_t>(kThreads / blocks.rows, 1));
  while (blocks.rows > 1 && countCombinedBytes() > kMaxSharedBytes)
    (blocks.rows > blocks.columns ? blocks.rows : blocks.columns) /= 2;
}

int64_t LoopNest::countCombinedBytes() const {
  int64_t bytes = 0;
  for (const Sum &sum : sums) {
    Type type = sum.combiner->getResult(0).getType();
    // One value of each warp, if there are several, or one of each thread.
    int64_t rows = !shuffles(type)       ? blocks.rows
                   : blocks.rows > kWarp ? blocks.rows / kWarp
                                         : 0;
    bytes += rows * blocks.columns * getBytes(type);
  }
  return bytes;
}

/// How many kernels' worth of terms each result has.
static int64_t countChunks(int64_t results, int64_t terms, int64_t columns,
                           int64_t rows) {
  int64_t few = llvm::divideCeil(results, columns);
  int64_t each = llvm::divideCeil(terms, rows * kRun);
  if (few >= kFewBlocks || each < 2)
    return 1;
  return std::min(each, kMaxChunks);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Whether `count` neighbours along the last loop are one aligned vector.
bool LoopNest::isVector(const Access &access, int64_t count) const {
  if (access.buffer == ~0u || access.start || access.constant % count != 0)
    return false;
  for (const Loop &loop : ArrayRef(loops).drop_back())
    if (access.coefficients[loop.lastDim] % count != 0)
      return false;
  return access.coefficients[loops.back().lastDim] == 1;
}

/// Elements that a thread computes.
int64_t LoopNest::findVectorWidth() {
  if (loops.empty() || op.getNumReductionLoops() > 0)
    return 1;
  int64_t operations = 0, widest = 1;
  op.getRegion().walk([&](Operation *) { ++operations; });
  auto see = [&](const Access &access, Type tensor) {
    if (isVector(access, 1))
      widest = std::max(widest, getBytes(getBufferType(tensor)));
  };
  for (auto [number, read] : llvm::enumerate(reads))
    see(read, op.getDpsInputs()[number].getType());
  bool isStored = true;
  for (auto [number, write] : llvm::enumerate(writes)) {
    see(write, op->getResult(number).getType());
    isStored &= !isAccumulated(number);
  }
  int64_t width = isStored ? kVectorBytes / std::min(widest, kVectorBytes) : 1;
  auto fits = [&] {
    for (auto [number, write] : llvm::enumerate(writes))
      if (!stores[number] && isVector(write, width))
        return loops.back().size % width == 0 &&
               width * operations <= kMaxUnrolled &&
               blocks.results / width >= kFullGpu;
    return false;
  };
  while (width > 1 && !fits())
    width /= 2;
  return width;
}

/// The `width` neighbours from where the counters are.
SmallVector<Value> LoopNest::loadVector(OpBuilder &b, const Access &access,
                                        int64_t width, Type element) {
  auto buffer = cast<MemRefType>(flat[access.buffer].getType());
  Value vector = vector::LoadOp::create(
      b, loc, VectorType::get({width}, buffer.getElementType()),
      flat[access.buffer], ValueRange{emitAddress(b, access, loops.size())},
      /*nontemporal=*/false, llvm::MaybeAlign(width * getBytes(buffer)));
  SmallVector<Value> elements;
  for (int64_t place = 0; place < width; ++place)
    elements.push_back(asElement(
        b, vector::ExtractOp::create(b, loc, vector, place), element));
  return elements;
}

void LoopNest::storeVector(OpBuilder &b, const Access &access,
                           ArrayRef<Value> elements) {
  auto buffer = cast<MemRefType>(flat[access.buffer].getType());
  SmallVector<Value> stored(elements);
  for (Value &value : stored)
    if (value.getType().isInteger(1))
      value = arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  int64_t width = stored.size();
  Value vector = vector::FromElementsOp::create(
      b, loc, VectorType::get({width}, buffer.getElementType()), stored);
  vector::StoreOp::create(b, loc, vector, flat[access.buffer],
                          ValueRange{emitAddress(b, access, loops.size())},
                          /*nontemporal=*/false,
                          llvm::MaybeAlign(width * getBytes(buffer)));
}

/// Computes `width` elements from where the counters are.
void LoopNest::emitElements(OpBuilder &b, int64_t width) {
  unsigned depth = loops.size();
  SmallVector<SmallVector<Value>> vectors(reads.size());
  for (auto [number, read] : llvm::enumerate(reads))
    if (isVector(read, width))
      vectors[number] =
          loadVector(b, read, width, op.getRegionInputArgs()[number].getType());
  SmallVector<SmallVector<Value>> results(writes.size());
  Value first = counters.back();
  SmallVector<Value> saved(loaded);
  for (int64_t element = 0; element < width; ++element) {
    counters.back() =
        arith::AddIOp::create(b, loc, first, constantIndex(b, loc, element));
    loaded = saved;
    for (auto [number, vector] : llvm::enumerate(vectors))
      if (!vector.empty())
        loaded[number] = vector[element];
    hoistLoads(b, depth);
    SmallVector<Value> arguments(loaded);
    arguments.resize(reads.size() + writes.size());
    for (auto [number, value] : llvm::enumerate(emitBody(b, op, arguments))) {
      if (!stores[number] && isVector(writes[number], width))
        results[number].push_back(value);
      else
        store(b, writes[number], depth, value);
    }
  }
  loaded = saved;
  counters.back() = first;
  for (auto [write, values] : llvm::zip_equal(writes, results))
    if (!values.empty())
      storeVector(b, write, values);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Combines the terms `first`, `first` + rows, ... below `end` of the result
/// where the counters are.
SmallVector<Value> LoopNest::emitThreadTerms(OpBuilder &b, Value first,
                                             Value end) {
  SmallVector<unsigned> numbers =
      llvm::to_vector(llvm::seq<unsigned>(numOuter, loops.size()));
  SmallVector<Value> neutral;
  for (Sum &sum : sums)
    neutral.push_back(makeNeutral(b, sum.combiner));
  auto overTerms = [&](Value from, Value to) {
    auto loop = scf::ForOp::create(b, loc, from, to,
                                   constantIndex(b, loc, blocks.rows), neutral);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    setLoops(b, numbers, loop.getInductionVar());
    scf::YieldOp::create(
        b, loc,
        emitElement(b, loops.size(),
                    SmallVector<Value>(loop.getRegionIterArgs())));
    return SmallVector<Value>(loop.getResults());
  };
  int64_t terms = llvm::divideCeil(blocks.chunkTerms, blocks.rows);
  if (terms <= 2 * kRun)
    return overTerms(first, end);
  Value run = constantIndex(b, loc, blocks.rows * kRun);
  auto runs = scf::ForOp::create(b, loc, first, end, run, neutral);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(runs.getBody());
  Value from = runs.getInductionVar();
  Value to = arith::MinUIOp::create(
      b, loc, arith::AddIOp::create(b, loc, from, run), end);
  SmallVector<Value> next;
  for (auto [sum, value, part] :
       llvm::zip_equal(sums, SmallVector<Value>(runs.getRegionIterArgs()),
                       overTerms(from, to)))
    next.push_back(combine(b, sum.combiner, value, part));
  scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(runs.getResults());
}

Value whale::allocateShared(OpBuilder &b, Location loc, int64_t count,
                            Type type) {
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  return memref::AllocaOp::create(
      b, loc, MemRefType::get({count}, type, AffineMap(), space));
}

/// Combines the values of the threads of a result; the thread in row 0 gets
/// what all of them make.
Value LoopNest::emitAcrossThreads(OpBuilder &b, const Sum &sum, Value value,
                                  Value column, Value row) {
  Type type = value.getType();
  int64_t rows = blocks.rows, columns = blocks.columns;
  auto when = [&](Value condition, llvm::function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, loc, condition, false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value lhs, int64_t rhs) {
    return arith::CmpIOp::create(b, loc, predicate, lhs,
                                 constantIndex(b, loc, rhs))
        .getResult();
  };
  if (shuffles(type)) {
    for (int64_t offset = std::min(rows, kWarp) / 2; offset > 0; offset /= 2) {
      auto other = gpu::ShuffleOp::create(b, loc, value, offset, kWarp,
                                          gpu::ShuffleMode::XOR);
      value = combine(b, sum.combiner, value, other.getShuffleResult());
    }
    if (rows <= kWarp)
      return value;
    // One value of each warp, which the first thread combines.
    int64_t warps = rows / kWarp;
    Value shared = allocateShared(b, loc, warps * columns, type);
    Value width = constantIndex(b, loc, kWarp);
    Value lane = arith::RemUIOp::create(b, loc, row, width);
    Value base =
        arith::MulIOp::create(b, loc, column, constantIndex(b, loc, warps));
    when(compare(arith::CmpIPredicate::eq, lane, 0), [&] {
      Value place = arith::AddIOp::create(
          b, loc, base, arith::DivUIOp::create(b, loc, row, width));
      memref::StoreOp::create(b, loc, value, shared, place);
    });
    gpu::BarrierOp::create(b, loc);
    // Every thread may: the loads are the same for all of a warp.
    SmallVector<Value> parts;
    for (int64_t warp = 0; warp < warps; ++warp)
      parts.push_back(memref::LoadOp::create(
          b, loc, shared,
          ValueRange{arith::AddIOp::create(b, loc, base,
                                           constantIndex(b, loc, warp))}));
    for (size_t half = parts.size() / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i)
        parts[i] = combine(b, sum.combiner, parts[i], parts[i + half]);
    return parts[0];
  }
  // Column by column, so that the threads of a warp meet in no bank; halves of
  // the rows are added.
  Value shared = allocateShared(b, loc, rows * columns, type);
  Value place = arith::AddIOp::create(
      b, loc, column,
      arith::MulIOp::create(b, loc, row, constantIndex(b, loc, columns)));
  memref::StoreOp::create(b, loc, value, shared, place);
  for (int64_t half = rows / 2; half > 0; half /= 2) {
    gpu::BarrierOp::create(b, loc);
    when(compare(arith::CmpIPredicate::ult, row, half), [&] {
      Value other = arith::AddIOp::create(
          b, loc, place, constantIndex(b, loc, half * columns));
      Value mine = memref::LoadOp::create(b, loc, shared, place);
      Value theirs = memref::LoadOp::create(b, loc, shared, other);
      memref::StoreOp::create(b, loc, combine(b, sum.combiner, mine, theirs),
                              shared, place);
    });
  }
  // The thread that has added last reads what it wrote.
  return memref::LoadOp::create(b, loc, shared, place);
}

/// The part of block `block`.
void LoopNest::emitBlock(OpBuilder &b, Value block) {
  auto index = [&](int64_t value) { return constantIndex(b, loc, value); };
  Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  Value inner = index(blocks.across ? blocks.columns : blocks.rows);
  Value low = arith::RemUIOp::create(b, loc, thread, inner);
  Value high = arith::DivUIOp::create(b, loc, thread, inner);
  Value column = blocks.across ? low : high, row = blocks.across ? high : low;
  // The blocks of one chunk are neighbours.
  int64_t perChunk = llvm::divideCeil(blocks.results, blocks.columns);
  Value chunk, group = block;
  if (blocks.chunks > 1) {
    chunk = arith::DivUIOp::create(b, loc, block, index(perChunk));
    group = arith::RemUIOp::create(b, loc, block, index(perChunk));
  }
  Value result = arith::AddIOp::create(
      b, loc, column,
      arith::MulIOp::create(b, loc, group, index(blocks.columns)));
  Value first = row, end = index(blocks.terms);
  if (chunk) {
    Value start =
        arith::MulIOp::create(b, loc, chunk, index(blocks.chunkTerms));
    first = arith::AddIOp::create(b, loc, row, start);
    end = arith::MinUIOp::create(
        b, loc, end,
        arith::AddIOp::create(b, loc, start, index(blocks.chunkTerms)));
  }
  // Threads without a result have no terms: all reach the barriers.
  Value isInside;
  if (blocks.results % blocks.columns != 0) {
    isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, result,
                                     index(blocks.results));
    end = arith::SelectOp::create(b, loc, isInside, end, index(0));
    result = arith::SelectOp::create(b, loc, isInside, result, index(0));
  }
  if (numOuter > 0)
    setLoops(b, llvm::to_vector(llvm::seq<unsigned>(0, numOuter)), result);
  SmallVector<Value> values = emitThreadTerms(b, first, end);
  for (auto [sum, value] : llvm::zip_equal(sums, values))
    value = emitAcrossThreads(b, sum, value, column, row);
  Value isOwner =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, row, index(0));
  if (isInside)
    isOwner = arith::AndIOp::create(b, loc, isOwner, isInside);
  auto branch = scf::IfOp::create(b, loc, isOwner, false);
  b.setInsertionPointToStart(branch.thenBlock());
  if (!chunk) {
    SmallVector<Value> inits = emitInits(b, numOuter);
    for (auto [sum, init, value] : llvm::zip_equal(sums, inits, values))
      store(b, writes[sum.result], numOuter,
            combine(b, sum.combiner, init, value));
    return;
  }
  Value place = arith::AddIOp::create(
      b, loc, result,
      arith::MulIOp::create(b, loc, chunk, index(blocks.results)));
  for (auto [sum, value] : llvm::zip_equal(sums, values)) {
    if (value.getType().isInteger(1))
      value = arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
    memref::StoreOp::create(b, loc, value, flat[writes[sum.result].buffer],
                            place);
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Independent iterations of the kernel.
int64_t LoopNest::countBlocks() const {
  if (blocks.rows > 1)
    return llvm::divideCeil(blocks.results, blocks.columns) * blocks.chunks;
  return blocks.results / blocks.width;
}

void LoopNest::emitBlocks(OpBuilder &b) {
  auto loop = scf::ForOp::create(b, loc, begin, end, constantIndex(b, loc, 1));
  b.setInsertionPointToStart(loop.getBody());
  Value iteration = loop.getInductionVar();
  if (blocks.rows > 1) {
    emitBlock(b, iteration);
    return;
  }
  if (blocks.width > 1)
    iteration = arith::MulIOp::create(b, loc, iteration,
                                      constantIndex(b, loc, blocks.width));
  if (numOuter > 0)
    setLoops(b, llvm::to_vector(llvm::seq<unsigned>(0, numOuter)), iteration);
  if (blocks.width > 1)
    emitElements(b, blocks.width);
  else
    emitReduction(b, numOuter);
}

/// The second of two kernels: combines the `chunks` partial results of each
/// result, the inputs [chunks, results...], with the initial values.
linalg::GenericOp LoopNest::makeChunkSums(int64_t chunks) {
  MLIRContext *context = op.getContext();
  SmallVector<int64_t> shape = {chunks};
  SmallVector<AffineExpr> dims(op.getNumLoops(),
                               getAffineConstantExpr(0, context));
  for (auto [dim, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
    if (iterator == utils::IteratorType::parallel) {
      dims[dim] = getAffineDimExpr(shape.size() - 1, context);
      shape.push_back(sizes[dim]);
    }
  unsigned numDims = shape.size();
  SmallVector<AffineExpr> exprs = {getAffineDimExpr(numDims - 1, context)};
  for (unsigned dim = 0; dim + 1 < numDims; ++dim)
    exprs.push_back(getAffineDimExpr(dim, context));
  SmallVector<utils::IteratorType> iterators(numDims - 1,
                                             utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  SmallVector<Value> parts, inits;
  SmallVector<Type> types;
  SmallVector<AffineMap> maps(sums.size(),
                              AffineMap::get(numDims, 0, exprs, context));
  for (const Sum &sum : sums) {
    OpOperand *init = op.getDpsInitOperand(sum.result);
    Type type = op->getResult(sum.result).getType();
    parts.push_back(tensor::EmptyOp::create(rewriter, loc, shape,
                                            getElementTypeOrSelf(type)));
    inits.push_back(init->get());
    types.push_back(type);
    maps.push_back(op.getMatchingIndexingMap(init).replaceDimsAndSymbols(
        dims, {}, numDims, 0));
  }
  return linalg::GenericOp::create(
      rewriter, loc, types, parts, inits, maps, iterators,
      [&](OpBuilder &b, Location, ValueRange arguments) {
        SmallVector<Value> results;
        for (auto [number, sum] : llvm::enumerate(sums))
          results.push_back(combine(b, sum.combiner,
                                    arguments[sums.size() + number],
                                    arguments[number]));
        linalg::YieldOp::create(b, loc, results);
      });
}

/// Makes `op` the first of two kernels: what its results were are those of the
/// second one.
void LoopNest::splitReduction(linalg::GenericOp second) {
  for (auto [place, sum] : llvm::enumerate(sums)) {
    rewriter.replaceAllUsesWith(op->getResult(sum.result),
                                second->getResult(place));
    OpOperand *init = op.getDpsInitOperand(sum.result);
    auto type = cast<RankedTensorType>(init->get().getType());
    rewriter.modifyOpInPlace(op, [&] {
      init->set(tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                        type.getElementType()));
    });
  }
}

KernelOp LoopNest::buildBlocks(KernelCache &cache, int64_t chunks) {
  forBlocks = true;
  rewriter.setInsertionPoint(op);
  collectInputs();
  collectStores();
  findBlocks();
  if (blocks.rows > 1 && chunks == 1) {
    chunks =
        countChunks(blocks.results, blocks.terms, blocks.columns, blocks.rows);
    if (chunks > 1) {
      rewriter.setInsertionPointAfter(op);
      linalg::GenericOp second = makeChunkSums(chunks);
      rewriter.setInsertionPoint(op);
      splitReduction(second);
      KernelOp first = LoopNest(rewriter, op).buildBlocks(cache, chunks);
      for (auto [place, sum] : llvm::enumerate(sums))
        second.getInputsMutable()[place].assign(first.getResult(sum.result));
      LoopNest(rewriter, second).buildBlocks(cache);
      return first;
    }
  }
  blocks.chunks = chunks;
  blocks.chunkTerms = llvm::divideCeil(blocks.terms, chunks);
  blocks.width = findVectorWidth();
  SmallVector<Type> types(op->getResultTypes());
  if (chunks > 1)
    for (Sum &sum : sums) {
      SmallVector<int64_t> shape = {chunks};
      for (auto [size, iterator] :
           llvm::zip_equal(sizes, op.getIteratorTypesArray()))
        if (iterator == utils::IteratorType::parallel)
          shape.push_back(size);
      types[sum.result] =
          RankedTensorType::get(shape, getElementTypeOrSelf(types[sum.result]));
    }
  KernelOp kernel = makeNestKernel(cache, types, countBlocks());
  if (blocks.rows > 1)
    kernel->setAttr(kThreadsAttrName,
                    rewriter.getI64IntegerAttr(blocks.rows * blocks.columns));
  return kernel;
}

KernelOp whale::convertToBlocks(RewriterBase &rewriter, linalg::GenericOp op,
                                KernelCache &cache) {
  return LoopNest(rewriter, op).buildBlocks(cache);
}
