//===- LoopNest.h - The loops of one linalg operation -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a linalg.generic on tensors of static shapes, with the operations that
// are fused with it. Out: a whale.kernel that computes it: loops for a
// processor (build), or blocks of threads for a GPU (buildBlocks).
//
// Every access is a linear function of the loop counters on a flat buffer, so
// what the loops are (which dimensions merge, which is innermost, where a load
// can be) follows from coefficients alone.
//
// Cost: the analysis compares the coefficients of all accesses, a few times for
// each loop. The body is emitted once for each element that is unrolled: on a
// GPU up to about kUnrolledBody operations. When the kernel runs, the body is
// computed once for each point of the nest, and a load is outside of all loops
// that it does not depend on.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_LOOPNEST_LOOPNEST_H
#define WHALE_LIB_CONVERSION_LOOPNEST_LOOPNEST_H

#include "Kernel/SumOrder.h"
#include "LoopNest/KernelCache.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace whale {

class KernelWork;

/// Where an element is in a flat buffer: start + constant + sum of
/// coefficient * counter.
struct Access {
  unsigned buffer = 0;
  int64_t constant = 0;
  llvm::SmallVector<int64_t> coefficients;
  /// Where a slice begins whose place is computed: added to the address.
  mlir::Value start;

  bool operator==(const Access &other) const {
    return constant == other.constant && coefficients == other.coefficients;
  }
};

/// A loop of the nest: a run of dimensions of the operation that every access
/// sees as one.
struct Loop {
  int64_t size;
  bool parallel;
  unsigned lastDim; // Coefficients are those of the innermost dimension.
};

/// The number of counters that are known where `access` can be loaded.
unsigned getDepth(const Access &access, llvm::ArrayRef<Loop> loops);

/// True if `value` is an argument that the program takes over for the result
/// that `result` is: an update in place of the training state.
bool isStateOf(mlir::Value value, mlir::Value result);

/// Whether a GPU has shuffles for values of the type.
inline bool isShuffled(mlir::Type type) {
  return type.isF32() || type.isInteger(32);
}

/// Of a GPU: threads that run in lockstep, the widest access of a thread, and
/// how many operations may be unrolled for it.
constexpr int64_t kWarp = 32, kVectorBytes = 16, kUnrolledBody = 256;
/// Terms of a thread that are added to one partial sum.
constexpr int64_t kRun = 32;

/// Memory for `count` values that the threads of a block share.
mlir::Value allocateShared(mlir::OpBuilder &b, mlir::Location loc,
                           int64_t count, mlir::Type type);

/// The column and the row of a thread in a block with so many of them;
/// neighbouring threads are in neighbouring columns or, without `across`, rows.
std::pair<mlir::Value, mlir::Value> findThread(mlir::OpBuilder &b,
                                               mlir::Location loc,
                                               int64_t columns, int64_t rows,
                                               bool across);

/// Whether result `number` collects over the reduction loops; another one is
/// stored in every iteration.
bool isAccumulated(mlir::linalg::GenericOp op, unsigned number);

class LoopNest {
public:
  LoopNest(mlir::RewriterBase &rewriter, mlir::linalg::GenericOp op)
      : rewriter(rewriter), op(op), loc(op.getLoc()),
        sizes(op.getStaticLoopRanges()) {}

  /// Loops for a processor.
  KernelOp build(KernelCache &cache);
  /// For blocks of threads; with `chunks` the partial results of an operation
  /// whose second kernel combines them.
  KernelOp buildBlocks(KernelCache &cache, int64_t chunks = 1);

  /// The operation with which the body of `op` adds to (or multiplies, or
  /// compares with) what result `number` accumulates; null if it does something
  /// else.
  static mlir::Operation *findCombiner(mlir::linalg::GenericOp op,
                                       unsigned number);

private:
  friend class KernelCache;
  friend class RowKernel;

  Access makeAccess(mlir::Value tensor, mlir::AffineMap map);
  void collectStores();
  mlir::Value emitStart(mlir::OpBuilder &b, unsigned result);
  unsigned inputBuffer(mlir::Value tensor);
  void collectInputs();
  llvm::SmallDenseSet<unsigned> findIndexed();
  llvm::SmallVector<const Access *> getAccesses() const;
  void findLoops();
  void orderLoops();
  /// Of loops of at least this size.
  void findTiles(int64_t minSize = 4);
  void findSums();
  void groupLoops();
  void findRuns();
  bool canOverwrite(unsigned result, const Access &read);
  void findInplace(KernelOp kernel);
  int64_t countIterations() const;
  int64_t countFlops();
  /// Adds what the nest does to the work of its kernel.
  void addWork(KernelWork &work);
  int64_t countBytes(mlir::Type type) const;
  void countCosts(KernelOp kernel);

  KernelOp makeNestKernel(KernelCache &cache, llvm::ArrayRef<mlir::Type> types,
                          int64_t extent);
  void emit(KernelOp kernel);
  void allocate(mlir::OpBuilder &b);
  void emitLevel(mlir::OpBuilder &b, unsigned level);
  void emitReduction(mlir::OpBuilder &b, unsigned level);
  void emitTiles(mlir::OpBuilder &b);
  void emitPack(mlir::OpBuilder &b, unsigned read, mlir::ValueRange sizes);
  mlir::Value emitAddress(mlir::OpBuilder &b, const Access &access,
                          unsigned depth);
  mlir::Value asElement(mlir::OpBuilder &b, mlir::Value value, mlir::Type type);
  mlir::Value load(mlir::OpBuilder &b, const Access &access, unsigned depth,
                   mlir::Type type);
  void store(mlir::OpBuilder &b, const Access &access, unsigned depth,
             mlir::Value value);
  /// Loads that need no counters beyond `depth`.
  void hoistLoads(mlir::OpBuilder &b, unsigned depth);
  llvm::SmallVector<mlir::Value>
  emitBody(mlir::OpBuilder &b, mlir::linalg::GenericOp body,
           llvm::ArrayRef<mlir::Value> arguments);
  llvm::SmallVector<mlir::Value> emitInits(mlir::OpBuilder &b, unsigned depth);
  void storeAccumulated(mlir::OpBuilder &b, unsigned depth,
                        llvm::ArrayRef<mlir::Value> values);
  llvm::SmallVector<mlir::Value> emitPoint(mlir::OpBuilder &b, unsigned depth,
                                           llvm::ArrayRef<mlir::Value> carried);
  llvm::SmallVector<mlir::Value>
  emitElement(mlir::OpBuilder &b, unsigned depth,
              llvm::ArrayRef<mlir::Value> carried);
  void replaceTensorOps(mlir::OpBuilder &b, mlir::Operation *cloned);

  /// Sums of floats that have many terms are formed as `order` says.
  struct Sum {
    unsigned result;
    mlir::Operation *combiner;             // Of the body.
    llvm::SmallVector<mlir::Value> arrays; // Of partial sums, by level.
    mlir::Value terms; // An array for those of a block, if they are kept.
  };
  /// Loops over neighbouring reduced dimensions, the outermost first.
  struct Group {
    llvm::SmallVector<unsigned> loops;
    // While emitting: where it is and what is left of it there, in steps.
    mlir::Value position;
    int64_t left = 0;
    mlir::Value index; // In elements, within the innermost loop.
  };
  /// What `combiner` combines with any number to that number.
  mlir::Value makeNeutral(mlir::OpBuilder &b, mlir::Operation *combiner);
  static mlir::Value combine(mlir::OpBuilder &b, mlir::Operation *combiner,
                             mlir::Value lhs, mlir::Value rhs);
  void emitSums(mlir::OpBuilder &b);
  void allocateSums(mlir::OpBuilder &b);
  void emitSumLevel(mlir::OpBuilder &b, unsigned level);
  void emitRun(mlir::OpBuilder &b, unsigned number, int64_t count, bool fresh);
  void emitTerms(mlir::OpBuilder &b, unsigned number,
                 llvm::ArrayRef<mlir::Value> positions, int64_t lanes,
                 unsigned level, bool fresh);
  void overSums(
      mlir::OpBuilder &b, int64_t lanes,
      llvm::function_ref<void(mlir::Value, mlir::Value, mlir::Value)> body);
  void makeFor(mlir::OpBuilder &b, mlir::Value from, mlir::Value to,
               int64_t step, llvm::function_ref<void(mlir::Value)> body);
  void clearSums(mlir::OpBuilder &b, unsigned level);
  void addLevel(mlir::OpBuilder &b, unsigned level);
  void storeSums(mlir::OpBuilder &b);
  mlir::Value joinLanes(mlir::OpBuilder &b, const Sum &sum, mlir::Value array);
  void keepTerms(mlir::OpBuilder &b, mlir::Value first, int64_t count);
  void addKept(mlir::OpBuilder &b, mlir::Value first, int64_t count,
               int64_t lanes, unsigned level, bool fresh);
  void emitTail(mlir::OpBuilder &b, unsigned level);
  void setLoops(mlir::OpBuilder &b, llvm::ArrayRef<unsigned> numbers,
                mlir::Value index);
  void setGroup(mlir::OpBuilder &b, unsigned number, mlir::Value index);
  bool isOneRun(const Group &group, const Access &access) const;
  int64_t getGroupStride(const Group &group, const Access &access) const;
  bool variesInside(const Access &access) const;
  bool readsAcross() const;

  bool findCombiners();
  void findBlocks();
  bool isVector(const Access &access, int64_t count, unsigned along) const;
  bool isVector(const Access &access, int64_t count) const {
    return isVector(access, count, loops.size() - 1);
  }
  int64_t findWidth(unsigned along, int64_t most,
                    llvm::function_ref<bool(int64_t)> fits);
  int64_t findVectorWidth();
  int64_t findColumnWidth();
  bool isSmall() const;
  int64_t countChunks() const;
  int64_t countUnrolled();
  int64_t countBlocks() const;
  int64_t countThreads() const;
  void emitBlocks(mlir::OpBuilder &b);
  void findTransposed();
  int64_t countTileThreads() const;
  int64_t countTileBlocks() const;
  llvm::SmallVector<mlir::Value> findCorner(mlir::OpBuilder &b,
                                            mlir::Value block);
  void emitTransposed(mlir::OpBuilder &b, mlir::Value block);
  llvm::SmallVector<mlir::Value> loadVector(mlir::OpBuilder &b,
                                            const Access &access, int64_t width,
                                            mlir::Type element);
  void storeVector(mlir::OpBuilder &b, const Access &access,
                   llvm::ArrayRef<mlir::Value> elements);
  void emitElements(mlir::OpBuilder &b, int64_t width);
  /// Of a thread: its first result, and its terms from `start` to `end`. Null
  /// without chunks, or if all threads have a result, are the others.
  struct BlockPart {
    mlir::Value result, start, end, chunk, isInside;
  };
  BlockPart findPart(mlir::OpBuilder &b, mlir::Value block, mlir::Value column);
  void storeChunk(mlir::OpBuilder &b, const BlockPart &part,
                  llvm::ArrayRef<mlir::Value> values);
  void storeColumns(mlir::OpBuilder &b, llvm::ArrayRef<mlir::Value> values);
  void emitBlock(mlir::OpBuilder &b, mlir::Value block);
  llvm::SmallVector<llvm::SmallVector<mlir::Value>>
  loadColumns(mlir::OpBuilder &b, unsigned depth);
  llvm::SmallVector<mlir::Value> emitTerms(mlir::OpBuilder &b,
                                           llvm::ArrayRef<mlir::Value> terms,
                                           llvm::ArrayRef<mlir::Value> carried);
  llvm::SmallVector<mlir::Value> emitThreadTerms(mlir::OpBuilder &b,
                                                 mlir::Value row,
                                                 mlir::Value start,
                                                 mlir::Value end);
  /// Whether threads combine values of the type by shuffles, as far as they are
  /// in one warp.
  bool shuffles(mlir::Type type) const {
    return !blocks.across && isShuffled(type);
  }
  /// The shared memory in which threads combine sums. If there is some, there
  /// is a barrier, and they store what they have combined after it.
  int64_t countCombinedBytes() const;
  void emitAcrossThreads(mlir::OpBuilder &b,
                         llvm::MutableArrayRef<mlir::Value> values,
                         mlir::Value column, mlir::Value row);
  mlir::linalg::GenericOp makeChunkSums(int64_t chunks);
  void splitReduction(mlir::linalg::GenericOp second);

  bool isAccumulated(unsigned number) {
    return whale::isAccumulated(op, number);
  }

  mlir::RewriterBase &rewriter;
  mlir::linalg::GenericOp op;
  mlir::Location loc;
  llvm::SmallVector<int64_t> sizes;

  llvm::SetVector<mlir::Value> inputs;
  /// Those that a body reads beside its operands.
  llvm::SmallPtrSet<mlir::Value, 4> captures;
  llvm::SmallVector<Access> reads;  // Of op's inputs.
  llvm::SmallVector<Access> writes; // Of its results.
  /// The slice that a result is stored in, or null.
  llvm::SmallVector<mlir::stablehlo::DynamicUpdateSliceOp> stores;
  llvm::SmallVector<llvm::SmallVector<unsigned>> startBuffers;
  llvm::SmallVector<mlir::linalg::GenericOp> fills; // By result, or null.
  llvm::SmallVector<llvm::SmallVector<Access>> fillReads;
  llvm::SmallVector<bool> readsInit; // The initial value is an input buffer.
  llvm::SmallVector<Access> initReads;

  llvm::SmallVector<Loop> loops;
  unsigned numOuter = 0;      // Parallel loops outside of all reductions.
  bool innerParallel = false; // The innermost loop is parallel, inside them.
  /// The last two loops walk tiles of at most `tile` by `tile` times
  /// kTileLength elements: some reads (`across`) follow the first loop in
  /// memory while the writes follow the last. Each read's tile is first copied
  /// line by line to where its columns are near; on a GPU tiles are those of
  /// EmitTransposed.cpp. 0: no tiles.
  int64_t tile = 0;
  static constexpr int64_t kTileLength = 4;
  llvm::SmallVector<unsigned> across;

  /// Without chunks: each sum is formed in one run, over the loops in order.
  SumOrder order;
  llvm::SmallVector<Sum> sums;
  /// Results accumulate by more than one operation, functions among them: no
  /// order is open to choice, and a term takes long.
  bool isChain = false;
  llvm::SmallVector<Group> groups;
  /// Columns that are summed at a time, where the innermost loop is parallel.
  int64_t sumTile = 1;
  /// Terms of the last group are computed before lanes take them.
  bool keepsTerms = false;

  /// How a nest for a GPU is cut, as EmitBlocks.cpp says.
  struct Blocks {
    int64_t results = 1, terms = 1;     // Of all parallel, all other loops.
    int64_t columns = 1, rows = 1;      // Threads; 1 row: no block.
    int64_t chunks = 1, chunkTerms = 1; // Of each result.
    int64_t width = 1;   // Neighbouring elements, or results, of a thread.
    bool across = false; // Neighbouring threads have neighbouring results.
  };
  Blocks blocks;
  bool forBlocks = false;

  /// For a nest of a kernel of several, as EmitRows.cpp says: by row dimension
  /// (the first ones that are not of size one) whether it is one loop with the
  /// one before. Row loops are shared, and merge with no others.
  llvm::SmallVector<bool> rowMerges;
  unsigned numRowLoops = 0;

  // While emitting.
  mlir::Value sumColumn, sumWidth; // The first column of a tile, its columns.
  llvm::SmallVector<mlir::Value> flat; // Buffers seen in one dimension.
  llvm::SmallVector<mlir::Value> buffers;
  llvm::SmallVector<mlir::Value> counters; // By loop.
  llvm::SmallVector<mlir::Value> packed;   // By element of `across`.
  unsigned ranged = 0; // The loop that `begin` and `end` are the range of.
  mlir::Value begin, end;
  llvm::SmallVector<mlir::Value> loaded; // By input of op, once hoisted.
  /// The same for each of the neighbouring results of a thread.
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> fixed;
};

} // namespace whale

#endif // WHALE_LIB_CONVERSION_LOOPNEST_LOOPNEST_H
