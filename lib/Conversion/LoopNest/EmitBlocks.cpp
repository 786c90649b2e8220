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
// - Without reductions an iteration computes one element, or as many neighbours
//   as fill 16 bytes; the GPU runs it in a thread of its own. What transposes
//   is a block of threads for each tile (EmitTransposed.cpp).
// - A reduction with one combining operation is shared out: an iteration is a
//   block of threads, `columns` results wide and `rows` threads deep. Each
//   thread combines every `rows`-th term of its result, then the threads
//   combine what they have, always in the same order. Neighbouring threads read
//   neighbouring elements: along the results where the operands lie so, else
//   along the terms.
// - Few results of many terms, and terms that are too many for one block, are
//   combined by two kernels, the first of which makes `chunks` partial results
//   of each; how many follows from the shapes alone, so that the bits are the
//   same on every GPU.
// - Any other reduction is an iteration, and a thread, for each result.
//
// Cost: each point of the loops is computed once. A second kernel is one more
// launch and reads `chunks` partial results of each result, which the first has
// written. To compile: linear in loops times accesses; of a body up to
// kUnrolledBody operations are unrolled.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "LoopNest/LinalgToKernel.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;

/// Threads of a block that reduces, where it may choose.
static constexpr int64_t kThreads = 256;
/// Threads for one result: more make the last steps long.
static constexpr int64_t kMaxRows = 512;
/// Terms that a thread combines before a further thread pays.
static constexpr int64_t kTermsPerThread = 16;
/// Fewer blocks leave most of a GPU without work (an H100 has 132
/// multiprocessors): then terms are dealt out to several blocks, of which so
/// many are enough.
static constexpr int64_t kFewBlocks = 128, kManyBlocks = 1024;
/// Below so many elements there are fewer threads than an H100 has room for,
/// 132 * 2,048.
static constexpr int64_t kFullGpu = 132 * 2048;
/// Of reductions of few elements: columns of a block, the fewest that fill what
/// memory gives at a time, and terms of a thread.
static constexpr int64_t kFewColumns = 8, kFewTerms = 8;
/// Neighbouring results that a thread has at most, each with a partial sum.
static constexpr int64_t kMaxWidth = 4;

static int64_t getPowerOf2(int64_t value) {
  return static_cast<int64_t>(
      llvm::PowerOf2Ceil(static_cast<uint64_t>(std::max<int64_t>(value, 1))));
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
  auto share = [&](int64_t each, int64_t most) {
    return std::min(getPowerOf2(llvm::divideCeil(blocks.terms, each)), most);
  };
  if (!blocks.across) {
    blocks.rows = share(kTermsPerThread, kMaxRows);
    blocks.columns = std::min(getPowerOf2(blocks.results),
                              std::max<int64_t>(kThreads / blocks.rows, 1));
  } else {
    blocks.width = findColumnWidth();
    blocks.columns = std::min(getPowerOf2(blocks.results / blocks.width),
                              isSmall() ? kFewColumns : kWarp);
    blocks.rows = share(isSmall() ? kFewTerms : kTermsPerThread,
                        kThreads / blocks.columns);
  }
  while (blocks.rows > 1 && countCombinedBytes() > kMaxSharedBytes)
    (blocks.rows > blocks.columns ? blocks.rows : blocks.columns) /= 2;
}

/// Of too few elements for all threads that a GPU has room for.
bool LoopNest::isSmall() const {
  return blocks.results * blocks.terms < kFullGpu;
}

int64_t LoopNest::countCombinedBytes() const {
  int64_t bytes = 0;
  for (const Sum &sum : sums) {
    Type type = sum.combiner->getResult(0).getType();
    // One value of each warp, if there are several, or one of each thread.
    int64_t rows = !shuffles(type)       ? blocks.rows
                   : blocks.rows > kWarp ? blocks.rows / kWarp
                                         : 0;
    bytes += rows * blocks.columns * blocks.width * getStoredBytes(type);
  }
  return bytes;
}

/// How many blocks share the terms of each result.
int64_t LoopNest::countChunks() const {
  int64_t few = llvm::divideCeil(blocks.results, blocks.columns * blocks.width);
  int64_t each = llvm::divideCeil(blocks.terms, blocks.rows * kTermsPerThread);
  int64_t least =
      llvm::divideCeil(blocks.terms, blocks.rows * kMostThreadTerms);
  if (few >= kFewBlocks || each < 2 || (blocks.across && isSmall()))
    return least;
  return std::max(least, std::min(each, kManyBlocks / few));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Whether `count` neighbours along a loop are one aligned vector.
bool LoopNest::isVector(const Access &access, int64_t count,
                        unsigned along) const {
  if (access.buffer == ~0u || access.start || access.constant % count != 0)
    return false;
  for (auto [number, loop] : llvm::enumerate(loops))
    if (number != along && access.coefficients[loop.lastDim] % count != 0)
      return false;
  return access.coefficients[loops[along].lastDim] == 1;
}

/// As many neighbours along a loop as an access has of the widest elements, at
/// most `most`, or so few that they fit.
int64_t LoopNest::findWidth(unsigned along, int64_t most,
                            llvm::function_ref<bool(int64_t)> fits) {
  int64_t operations = 0, widest = 1;
  op.getRegion().walk([&](Operation *) { ++operations; });
  auto see = [&](const Access &access, Type tensor) {
    if (isVector(access, 1, along))
      widest = std::max(widest, getStoredBytes(getBufferType(tensor)));
  };
  for (auto [number, read] : llvm::enumerate(reads))
    see(read, op.getDpsInputs()[number].getType());
  for (auto [number, write] : llvm::enumerate(writes))
    if (!isAccumulated(number))
      see(write, op->getResult(number).getType());
  int64_t width = std::min(kVectorBytes / std::min(widest, kVectorBytes), most);
  while (width > 1 &&
         !(loops[along].size % width == 0 &&
           width * operations <= kUnrolledBody &&
           blocks.results * blocks.terms / width >= kFullGpu && fits(width)))
    width /= 2;
  return width;
}

/// Elements that a thread computes.
int64_t LoopNest::findVectorWidth() {
  auto numbers = llvm::seq<unsigned>(0, writes.size());
  if (loops.empty() || op.getNumReductionLoops() > 0 ||
      llvm::any_of(numbers, [&](unsigned n) { return isAccumulated(n); }))
    return 1;
  return findWidth(loops.size() - 1, kVectorBytes, [&](int64_t width) {
    return llvm::any_of(numbers, [&](unsigned number) {
      return !stores[number] && isVector(writes[number], width);
    });
  });
}

/// Neighbouring results that a thread reduces.
int64_t LoopNest::findColumnWidth() {
  unsigned last = numOuter - 1;
  return findWidth(last, kMaxWidth, [&](int64_t width) {
    for (const Access &read : reads)
      if (read.buffer != ~0u && read.coefficients[loops[last].lastDim] != 0 &&
          !isVector(read, width, last))
        return false;
    for (auto [number, write] : llvm::enumerate(writes))
      if (!isAccumulated(number) &&
          (stores[number] || !isVector(write, width, last)))
        return false;
    return true;
  });
}

/// Of `width` neighbours, each for itself: no vector holds complex numbers.
static SmallVector<Value> getPlaces(OpBuilder &b, Value address,
                                    int64_t width) {
  Location loc = address.getLoc();
  SmallVector<Value> places;
  for (int64_t place = 0; place < width; ++place)
    places.push_back(
        arith::AddIOp::create(b, loc, address, constantIndex(b, loc, place)));
  return places;
}

/// The `width` neighbours from where the counters are.
SmallVector<Value> LoopNest::loadVector(OpBuilder &b, const Access &access,
                                        int64_t width, Type element) {
  auto buffer = cast<MemRefType>(flat[access.buffer].getType());
  Value address = emitAddress(b, access, loops.size());
  SmallVector<Value> elements;
  if (isa<ComplexType>(buffer.getElementType())) {
    for (Value place : getPlaces(b, address, width))
      elements.push_back(
          memref::LoadOp::create(b, loc, flat[access.buffer], place));
  } else {
    Value vector = vector::LoadOp::create(
        b, loc, VectorType::get({width}, buffer.getElementType()),
        flat[access.buffer], ValueRange{address},
        /*nontemporal=*/false,
        llvm::MaybeAlign(width * getStoredBytes(buffer)));
    for (int64_t place = 0; place < width; ++place)
      elements.push_back(vector::ExtractOp::create(b, loc, vector, place));
  }
  for (Value &value : elements)
    value = asElement(b, value, element);
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
  Value address = emitAddress(b, access, loops.size());
  if (isa<ComplexType>(buffer.getElementType())) {
    for (auto [value, place] :
         llvm::zip_equal(stored, getPlaces(b, address, width)))
      memref::StoreOp::create(b, loc, value, flat[access.buffer], place);
    return;
  }
  Value vector = vector::FromElementsOp::create(
      b, loc, VectorType::get({width}, buffer.getElementType()), stored);
  vector::StoreOp::create(
      b, loc, vector, flat[access.buffer], ValueRange{address},
      /*nontemporal=*/false, llvm::MaybeAlign(width * getStoredBytes(buffer)));
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
// Kernels
//===----------------------------------------------------------------------===//

/// Independent iterations of the kernel.
int64_t LoopNest::countBlocks() const {
  if (blocks.rows > 1)
    return llvm::divideCeil(blocks.results, blocks.columns * blocks.width) *
           blocks.chunks;
  return tile > 0 ? countTileBlocks() : blocks.results / blocks.width;
}

/// The threads of each; 1 if it is an iteration of one thread.
int64_t LoopNest::countThreads() const {
  if (blocks.rows > 1)
    return blocks.rows * blocks.columns;
  return tile > 0 ? countTileThreads() : 1;
}

void LoopNest::emitBlocks(OpBuilder &b) {
  auto loop = scf::ForOp::create(b, loc, begin, end, constantIndex(b, loc, 1));
  b.setInsertionPointToStart(loop.getBody());
  Value iteration = loop.getInductionVar();
  if (blocks.rows > 1) {
    emitBlock(b, iteration);
    return;
  }
  if (tile > 0) {
    emitTransposed(b, iteration);
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
    chunks = countChunks();
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
  if (blocks.rows == 1) {
    findTransposed();
    blocks.width = tile > 0 ? 1 : findVectorWidth();
  }
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
  if (int64_t threads = countThreads(); threads > 1)
    kernel->setAttr(kThreadsAttrName, rewriter.getI64IntegerAttr(threads));
  return kernel;
}

KernelOp whale::convertToBlocks(RewriterBase &rewriter, linalg::GenericOp op,
                                KernelCache &cache) {
  return LoopNest(rewriter, op).buildBlocks(cache);
}
