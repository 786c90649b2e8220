//===- EmitRowBlocks.cpp - Loop nests over rows for blocks of threads -----===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The GPU's form of a kernel of rows. In: what EmitRows.cpp has found out. Out:
// a kernel of which an iteration is a block of threads that owns `blockRows`
// rows, each of them with `rowThreads` threads. The block runs the nest of each
// operation, in order, with a barrier before those that need what other threads
// have done: neighbouring threads compute neighbouring elements of a row, or
// combine a row's terms as EmitBlocks.cpp says, or the first thread of a row
// computes the row's one value. What only these nests need is in shared memory,
// for the rows of the block; elements that several nests read come from the
// first-level cache. Where it can be, rows are in registers instead, as
// EmitRowRegisters.cpp says.
//
// Sums are formed in an order that follows from the length of a row alone.
//
// Cost: a nest reads what it needs of a row once; before it is at most one
// barrier, besides those of sums. To compile: quadratic in the nests between
// two barriers, times their operands; FuseRows.cpp allows a kernel 48 buffers,
// so as many nests.
//
//===----------------------------------------------------------------------===//

#include "Fusion/RowKernel.h"
#include "Kernel/KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;
using linalg::GenericOp;

/// Elements of a row for each thread, as far as the limits of threads allow.
static constexpr int64_t kRowElements = 4;
static constexpr int64_t kMinRowThreads = 32, kMaxRowThreads = 512;
/// Threads of a block with several rows; where each has many registers, the
/// blocks of a multiprocessor are not as many. And blocks that keep a GPU busy.
static constexpr int64_t kBlockThreads = 256, kFewThreads = 128,
                         kEnoughBlocks = 256;

/// Shared memory in which the threads of a block combine their parts of a sum.
static int64_t countSumBytes(Type type) {
  // One value of each warp, or one of each thread.
  return isShuffled(type) ? kMaxRowThreads / 32 * 4
                          : kMaxRowThreads * getStoredBytes(type);
}

int64_t whale::countSharedBytes(ArrayRef<GenericOp> members,
                                ArrayRef<int64_t> rows, int64_t blockRows) {
  int64_t bytes = 0;
  for (GenericOp op : members)
    for (Value result : op->getResults()) {
      Type type = result.getType();
      if (op.getNumReductionLoops() > 0)
        bytes += countSumBytes(getElementTypeOrSelf(type));
      if (isLocal(result, members))
        bytes += whale::countBytes(type) / countRows(rows) * blockRows;
    }
  return bytes;
}

void RowKernel::findThreads() {
  int64_t count = countRows(rows), points = 1;
  for (LoopNest &nest : nests)
    points = std::max(points, nest.blocks.results / count * nest.blocks.terms);
  if (!findRegisters(points)) {
    auto wanted = llvm::PowerOf2Ceil(llvm::divideCeil(points, kRowElements));
    rowThreads = std::clamp<int64_t>(wanted, kMinRowThreads, kMaxRowThreads);
  }
  // All blocks are full warps, and there are some for each multiprocessor.
  int64_t most = isInRegisters() ? kFewThreads : kBlockThreads;
  while (2 * blockRows * rowThreads <= most && count % (2 * blockRows) == 0 &&
         (blockRows * rowThreads < kMinRowThreads ||
          count / (2 * blockRows) >= kEnoughBlocks) &&
         (isInRegisters() ||
          countSharedBytes(members, rows, 2 * blockRows) <= kMaxSharedBytes))
    blockRows *= 2;
  for (LoopNest &nest : nests) {
    nest.blocks.rows = rowThreads;
    nest.blocks.columns = blockRows;
    nest.blocks.across = false;
    nest.blocks.width = 1;
    // Elements are walked as terms are, several of which are read at a time.
    if (!isInRegisters() && walksRow(nest) && nest.sums.empty()) {
      nest.numOuter = numRowLoops;
      nest.blocks.terms = nest.blocks.results / count;
    }
    nest.blocks.chunkTerms = nest.blocks.terms;
  }
}

/// The operands of the kernel that results of `nest` are written over.
SmallVector<Value> RowKernel::findOverwritten(KernelOp kernel,
                                              const LoopNest &nest) const {
  SmallVector<Value> found;
  if (std::optional<ArrayRef<int64_t>> inplace = kernel.getInplace())
    for (auto [result, operand] : llvm::zip_equal(results, *inplace))
      if (operand >= 0 && result.getDefiningOp() == nest.op)
        found.push_back(inputs[operand]);
  return found;
}

bool RowKernel::needsBarrier(unsigned number, unsigned last,
                             ArrayRef<Value> overwritten) {
  LoopNest &nest = nests[number];
  return llvm::any_of(llvm::seq(last, number), [&](unsigned other) {
    LoopNest &before = nests[other];
    bool reads = llvm::any_of(nest.inputs, [&](Value input) {
      if (input.getDefiningOp() != before.op)
        return false;
      // A row's values are of its first thread.
      bool isMadeByFirst =
          !walksRow(before) ||
          before.isAccumulated(cast<OpResult>(input).getResultNumber());
      return walksRow(nest) || !isMadeByFirst;
    });
    bool isRead = llvm::any_of(overwritten, [&](Value operand) {
      return before.inputs.contains(operand);
    });
    return reads || isRead;
  });
}

/// What thread `thread` of row `row`, which is at `place` of the block, does of
/// a nest.
void RowKernel::emitThread(OpBuilder &b, LoopNest &nest, Value row, Value place,
                           Value thread) {
  Location loc = nest.loc;
  makeLocals(b, nest, place, /*isOnlyRow=*/true);
  nest.setLoops(b, llvm::to_vector(llvm::seq<unsigned>(0, numRowLoops)), row);
  OpBuilder::InsertionGuard guard(b);
  auto whenFirst = [&] {
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          thread, constantIndex(b, loc, 0));
    auto branch = scf::IfOp::create(b, loc, isFirst, false);
    b.setInsertionPointToStart(branch.thenBlock());
  };
  if (!walksRow(nest))
    whenFirst();
  nest.hoistLoads(b, numRowLoops);
  if (!walksRow(nest)) {
    nest.emitReduction(b, numRowLoops);
    return;
  }
  SmallVector<Value> values =
      nest.emitThreadTerms(b, thread, constantIndex(b, loc, 0),
                           constantIndex(b, loc, nest.blocks.terms));
  if (nest.sums.empty())
    return;
  nest.emitAcrossThreads(b, values, place, thread);
  whenFirst();
  nest.storeAccumulated(b, numRowLoops, values);
}

void RowKernel::emitThreads(OpBuilder &b, KernelOp kernel, Value begin,
                            Value end) {
  Location loc = begin.getLoc();
  auto blocks =
      scf::ForOp::create(b, loc, begin, end, constantIndex(b, loc, 1));
  b.setInsertionPointToStart(blocks.getBody());
  Value row = blocks.getInductionVar(), place = constantIndex(b, loc, 0);
  Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  if (blockRows > 1) {
    Value width = constantIndex(b, loc, rowThreads);
    place = arith::DivUIOp::create(b, loc, thread, width);
    thread = arith::RemUIOp::create(b, loc, thread, width);
    row = arith::AddIOp::create(
        b, loc, place,
        arith::MulIOp::create(b, loc, row, constantIndex(b, loc, blockRows)));
  }
  if (isInRegisters()) {
    emitRegisters(b, row, place, thread);
    return;
  }
  // All threads are done with the nests before it.
  unsigned last = 0;
  for (auto [number, nest] : llvm::enumerate(nests)) {
    if (needsBarrier(number, last, findOverwritten(kernel, nest))) {
      gpu::BarrierOp::create(b, loc);
      last = number;
    }
    emitThread(b, nest, row, place, thread);
    // To combine sums threads wait for each other, too.
    if (walksRow(nest) && nest.countCombinedBytes() > 0)
      last = number;
  }
}
