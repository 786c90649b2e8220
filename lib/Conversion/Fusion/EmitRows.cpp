//===- EmitRows.cpp - Several loop nests over the same rows ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: linalg operations whose first loops run over the same rows. Out: one
// kernel that takes a block of rows after the other and runs for it the nest of
// each operation, in order. Each nest is the one that its operation alone would
// have, with its first loop over the rows of the block: no sum changes its
// order. What others need is in its buffer, as before; what only these nests
// need is in an array on the stack with the rows of one block.
//
// Row dimensions that all operands step through as one are one loop. The last
// row loop is cut into blocks, of so many rows that what they take stays in the
// first or second level of the cache.
//
// Cost: what nests read of a block of rows comes from memory once, from the
// cache for each of them. To compile: each body is written as for its operation
// alone; to find which results can be written over operands, each pair of them
// is compared with each nest. FuseRows.cpp allows 48 results and operands
// together.
//
//===----------------------------------------------------------------------===//

#include "Fusion/RowKernel.h"
#include "Kernel/KernelBuilder.h"
#include "Kernel/KernelWork.h"
#include "LoopNest/LinalgToKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace whale;
using linalg::GenericOp;

/// What the rows of a block take at most, if there are several.
static constexpr int64_t kBlockBytes = 64 * 1024;
/// More rows win nothing: loops over rows alone are long enough.
static constexpr int64_t kMaxBlockRows = 64;

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

void RowKernel::findNests() {
  for (GenericOp op : members) {
    LoopNest &nest = nests.emplace_back(rewriter, op);
    nest.forBlocks = target.isGpu();
    nest.collectInputs();
    nest.collectStores();
    for (auto [number, write] : llvm::enumerate(nest.writes))
      write.buffer = nest.inputs.size() + number;
    if (!target.isGpu())
      nest.findSums();
  }
  SmallVector<bool> merges = findMerges();
  for (LoopNest &nest : nests) {
    nest.rowMerges = merges;
    if (target.isGpu()) {
      nest.findBlocks();
      continue;
    }
    nest.findLoops();
    nest.orderLoops();
    nest.groupLoops();
    nest.findRuns();
    nest.findTiles();
    nest.ranged = nest.numRowLoops - 1;
  }
  numRowLoops = nests.front().numRowLoops;
}

/// Which row dimensions are one loop with the one before: those that no access
/// of any nest tells apart.
SmallVector<bool> RowKernel::findMerges() {
  SmallVector<bool> merges(rows.size(), true);
  merges[0] = false;
  for (LoopNest &nest : nests) {
    SmallVector<unsigned> dims = *findRowDims(nest.op, rows);
    llvm::SmallDenseSet<unsigned> indexed = nest.findIndexed();
    for (size_t number = 1; number < rows.size(); ++number) {
      unsigned before = dims[number - 1], dim = dims[number];
      if (indexed.contains(before) || indexed.contains(dim))
        merges[number] = false;
      for (const Access *access : nest.getAccesses())
        if (access->coefficients[before] !=
            rows[number] * access->coefficients[dim])
          merges[number] = false;
    }
  }
  return merges;
}

void RowKernel::findBuffers() {
  for (LoopNest &nest : nests)
    for (Value input : nest.inputs)
      if (!isMember(input.getDefiningOp()))
        inputs.insert(input);
  for (GenericOp op : members)
    for (Value result : op->getResults())
      (isLocal(result, members) ? locals : results).insert(result);
}

void RowKernel::findBlockRows() {
  const Loop &last = nests.front().loops[numRowLoops - 1];
  int64_t bytes = countRowBytes(members, rows);
  while (2 * blockRows <= std::min(kMaxBlockRows, last.size) &&
         2 * blockRows * bytes <= kBlockBytes)
    blockRows *= 2;
}

/// Whether a result can be written over an operand: no nest after its own reads
/// the operand, those before read nothing but the rows of the block, and its
/// own overwrites an element when it has read it.
bool RowKernel::canOverwrite(unsigned member, unsigned number, Value tensor) {
  Value result = members[member]->getResult(number);
  MemRefType from = getBufferType(tensor.getType());
  MemRefType to = getBufferType(result.getType());
  if (from.getNumElements() != to.getNumElements() ||
      getStoredBits(from.getElementType()) !=
          getStoredBits(to.getElementType()))
    return false;
  for (auto [other, nest] : llvm::enumerate(nests)) {
    if (!nest.inputs.contains(tensor))
      continue;
    if (other > member ||
        !readsRowAligned(nest.op, tensor, *findRowDims(nest.op, rows)))
      return false;
  }
  if (isInRegisters() && !readsLinesAlone(tensor))
    return false;
  LoopNest &own = nests[member];
  if (own.inputs.contains(tensor))
    return llvm::any_of(own.reads, [&](const Access &read) {
      return read.buffer != ~0u && own.inputs[read.buffer] == tensor &&
             own.canOverwrite(number, read);
    });
  return isRowAligned(
      own.op.getIndexingMapMatchingResult(cast<OpResult>(result)),
      cast<RankedTensorType>(result.getType()).getShape(),
      *findRowDims(own.op, rows));
}

void RowKernel::findInplace(KernelOp kernel) {
  SmallVector<int64_t> inplace(results.size(), -1);
  for (bool wantsState : {true, false})
    for (auto [place, value] : llvm::enumerate(results)) {
      auto result = cast<OpResult>(value);
      unsigned member =
          llvm::find(members, result.getOwner()) - members.begin();
      for (auto [operand, tensor] : llvm::enumerate(inputs))
        if (inplace[place] < 0 && !llvm::is_contained(inplace, operand) &&
            (!wantsState || isStateOf(tensor, result)) &&
            canOverwrite(member, result.getResultNumber(), tensor))
          inplace[place] = operand;
    }
  if (llvm::any_of(inplace, [](int64_t operand) { return operand >= 0; }))
    kernel.setInplace(inplace);
}

void RowKernel::countCosts(KernelOp kernel) {
  int64_t bytes = 0;
  KernelWork work;
  for (LoopNest &nest : nests)
    nest.addWork(work);
  for (Value value : llvm::concat<const Value>(inputs, results)) {
    // A nest that reads a part of it alone doesn't count more.
    int64_t most = 0;
    for (LoopNest &nest : nests)
      if (nest.inputs.contains(value) || value.getDefiningOp() == nest.op)
        most = std::max(most, nest.countBytes(value.getType()));
    bytes += most;
  }
  work.note(kernel, bytes);
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// Lets an access of a local tensor be one of its rows, the one that the
/// counters say less `first`. With `isOnlyRow` it is row `first`, whatever the
/// counters.
void RowKernel::makeLocal(OpBuilder &b, LoopNest &nest, Value tensor,
                          Access &access, Value first, bool isOnlyRow) {
  if (!locals.contains(tensor))
    return;
  int64_t &last = access.coefficients[nest.loops[numRowLoops - 1].lastDim];
  int64_t stride = isOnlyRow ? last : -last;
  if (isOnlyRow)
    last = 0;
  for (unsigned loop = 0; loop + 1 < numRowLoops; ++loop)
    access.coefficients[nest.loops[loop].lastDim] = 0;
  access.start = arith::MulIOp::create(b, nest.loc, first,
                                       constantIndex(b, nest.loc, stride));
}

void RowKernel::makeLocals(OpBuilder &b, LoopNest &nest, Value first,
                           bool isOnlyRow) {
  for (Access &access : nest.reads)
    if (access.buffer != ~0u)
      makeLocal(b, nest, nest.inputs[access.buffer], access, first, isOnlyRow);
  for (auto [number, access] : llvm::enumerate(nest.writes))
    makeLocal(b, nest, nest.op->getResult(number), access, first, isOnlyRow);
}

/// The nests for the rows from `from` to `to` of the last row loop.
void RowKernel::emitRows(OpBuilder &b, ValueRange outer, Value from, Value to) {
  for (LoopNest &nest : nests) {
    makeLocals(b, nest, from, /*isOnlyRow=*/false);
    llvm::copy(outer, nest.counters.begin());
    nest.begin = from;
    nest.end = to;
    nest.emitLevel(b, numRowLoops - 1);
  }
}

/// Blocks of rows, one after the other.
void RowKernel::emitLoops(OpBuilder &b, Value begin, Value end) {
  Location loc = begin.getLoc();
  SmallVector<Value> outer;
  ArrayRef<Loop> loops = ArrayRef(nests.front().loops).take_front(numRowLoops);
  for (auto [number, loop] : llvm::enumerate(loops)) {
    bool isLast = number + 1 == loops.size();
    Value from = number == 0 ? begin : constantIndex(b, loc, 0);
    Value to = number == 0 ? end : constantIndex(b, loc, loop.size);
    Value step = constantIndex(b, loc, isLast ? blockRows : 1);
    auto rowLoop = scf::ForOp::create(b, loc, from, to, step);
    b.setInsertionPointToStart(rowLoop.getBody());
    Value row = rowLoop.getInductionVar();
    if (!isLast) {
      outer.push_back(row);
      continue;
    }
    Value next = arith::AddIOp::create(b, loc, row, step);
    if (number == 0 || loop.size % blockRows != 0)
      next = arith::MinUIOp::create(b, loc, next, to);
    emitRows(b, outer, row, next);
  }
}

void RowKernel::emit(KernelOp kernel) {
  Location loc = kernel.getLoc();
  Block *block = rewriter.createBlock(&kernel.getBody());
  OpBuilder b = OpBuilder::atBlockBegin(block);
  llvm::DenseMap<Value, Value> buffers, flat;
  for (Value value : llvm::concat<const Value>(inputs, results))
    buffers[value] = block->addArgument(getBufferType(value.getType()), loc);
  Value begin = block->addArgument(b.getIndexType(), loc);
  Value end = block->addArgument(b.getIndexType(), loc);
  if (target.isWithoutCode())
    return;
  SmallVector<Value> stored;
  if (!isInRegisters())
    llvm::append_range(stored, locals);
  for (Value value : stored) {
    MemRefType type = getBufferType(value.getType());
    int64_t count = type.getNumElements() / countRows(rows) * blockRows;
    buffers[value] =
        target.isGpu()
            ? allocateShared(b, loc, count, type.getElementType())
            : memref::AllocaOp::create(
                  b, loc, MemRefType::get({count}, type.getElementType()),
                  b.getI64IntegerAttr(64));
  }
  for (Value value : llvm::concat<const Value>(inputs, results, stored))
    flat[value] = flatten(b, loc, buffers[value]);
  for (LoopNest &nest : nests) {
    auto add = [&](Value value) {
      nest.buffers.push_back(buffers[value]);
      nest.flat.push_back(flat[value]);
    };
    llvm::for_each(nest.inputs, add);
    llvm::for_each(nest.op->getResults(), add);
    nest.allocate(b);
  }
  if (target.isGpu())
    emitThreads(b, kernel, begin, end);
  else
    emitLoops(b, begin, end);
}

void RowKernel::plan() {
  findNests();
  findBuffers();
  if (target.isGpu())
    findThreads();
  else
    findBlockRows();
}

KernelOp RowKernel::build() {
  rewriter.setInsertionPoint(members.back());
  int64_t extent = target.isGpu() ? countRows(rows) / blockRows
                                  : nests.front().loops[0].size;
  SmallVector<Location> locations;
  SmallVector<Type> types;
  for (GenericOp op : members)
    locations.push_back(getAllLocations(op));
  for (Value result : results)
    types.push_back(result.getType());
  auto kernel = KernelOp::create(
      rewriter, FusedLoc::get(rewriter.getContext(), locations), types,
      inputs.getArrayRef(), extent, /*inplace=*/nullptr, /*updates=*/nullptr);
  findInplace(kernel);
  countCosts(kernel);
  // The innermost loops are those of the nests.
  kernel->setAttr(kParallelAttrName, rewriter.getUnitAttr());
  if (target.isGpu())
    kernel->setAttr(kThreadsAttrName,
                    rewriter.getI64IntegerAttr(rowThreads * blockRows));
  emit(kernel);
  for (auto [result, value] : llvm::zip_equal(results, kernel.getResults()))
    rewriter.replaceAllUsesWith(result, value);
  for (GenericOp op : llvm::reverse(members))
    rewriter.eraseOp(op);
  return kernel;
}

KernelOp whale::convertRows(RewriterBase &rewriter, ArrayRef<GenericOp> members,
                            ArrayRef<int64_t> rows, const Target &target) {
  RowKernel kernel(rewriter, members, rows, target);
  kernel.plan();
  if (kernel.fits())
    return kernel.build();
  SmallVector<GenericOp> alone = recomputeLines(rewriter, members, rows);
  RowKernel again(rewriter, alone, rows, target);
  again.plan();
  return again.build();
}
