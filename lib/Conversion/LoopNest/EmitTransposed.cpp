//===- EmitTransposed.cpp - Transpositions by blocks of threads -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a nest without reductions of which some operands are in memory along
// another loop than the results. Out: a kernel whose iterations are blocks of
// threads, each with a tile of these two loops. Neighbouring threads read
// neighbours of those operands into shared memory; behind a barrier they
// compute neighbours of the results. Lines in shared memory are an element
// longer than the tile, so that threads that read a column meet in few banks.
//
// Cost: each element is read once, in whole sectors of memory.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;

/// Points of a tile in each direction; lines of it that a block's threads walk
/// at a time; elements from one line in shared memory to the next.
static constexpr int64_t kSide = kWarp, kLines = 8, kLine = kSide + 1;
/// Loops that fill less than half of a tile are walked element by element.
static constexpr int64_t kMinSize = 16;

void LoopNest::findTransposed() {
  if (op.getNumReductionLoops() > 0)
    return;
  findTiles(kMinSize);
  int64_t bytes = 0;
  for (unsigned number : across)
    bytes += kSide * kLine *
             getStoredBytes(getBufferType(op.getInputs()[number].getType()));
  if (bytes > kMaxSharedBytes) {
    across.clear();
    tile = 0;
  }
}

int64_t LoopNest::countTileThreads() const { return kSide * kLines; }

int64_t LoopNest::countTileBlocks() const {
  int64_t count = blocks.results;
  for (const Loop &loop : ArrayRef(loops).take_back(2))
    count = count / loop.size * llvm::divideCeil(loop.size, kSide);
  return count;
}

/// Where the tile of block `block` begins, by loop; sets the counters of the
/// loops around it.
SmallVector<Value> LoopNest::findCorner(OpBuilder &b, Value block) {
  unsigned first = loops.size() - 2, last = loops.size() - 1;
  SmallVector<Value> corner(loops.size());
  for (unsigned number : {last, first}) {
    Value tiles =
        constantIndex(b, loc, llvm::divideCeil(loops[number].size, kSide));
    corner[number] = arith::MulIOp::create(
        b, loc, arith::RemUIOp::create(b, loc, block, tiles),
        constantIndex(b, loc, kSide));
    block = arith::DivUIOp::create(b, loc, block, tiles);
  }
  if (first > 0)
    setLoops(b, llvm::to_vector(llvm::seq<unsigned>(0, first)), block);
  return corner;
}

/// What a block does.
void LoopNest::emitTransposed(OpBuilder &b, Value block) {
  auto index = [&](int64_t value) { return constantIndex(b, loc, value); };
  auto add = [&](Value lhs, Value rhs) {
    return arith::AddIOp::create(b, loc, lhs, rhs).getResult();
  };
  auto multiply = [&](Value lhs, int64_t rhs) {
    return arith::MulIOp::create(b, loc, lhs, index(rhs)).getResult();
  };
  unsigned first = loops.size() - 2, last = loops.size() - 1;
  Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  Value x = arith::RemUIOp::create(b, loc, thread, index(kSide));
  Value y = arith::DivUIOp::create(b, loc, thread, index(kSide));
  SmallVector<Value> corner = findCorner(b, block);
  // The body is run where the counters are at each point of the thread, of
  // which neighbours have neighbours along `near`; it gets the line.
  auto overTile = [&](unsigned near, llvm::function_ref<void(Value)> body) {
    auto loop =
        scf::ForOp::create(b, loc, index(0), index(kSide / kLines), index(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value line = add(y, multiply(loop.getInductionVar(), kLines));
    unsigned far = near == first ? last : first;
    counters[near] = add(corner[near], x);
    counters[far] = add(corner[far], line);
    for (unsigned number : {first, last}) {
      int64_t size = loops[number].size;
      if (size % kSide == 0)
        continue;
      Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                             counters[number], index(size));
      auto branch = scf::IfOp::create(b, loc, isInside, false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    body(line);
  };
  SmallVector<Value> shared;
  for (unsigned number : across) {
    auto buffer = cast<MemRefType>(flat[reads[number].buffer].getType());
    shared.push_back(
        allocateShared(b, loc, kSide * kLine, buffer.getElementType()));
  }
  overTile(first, [&](Value line) {
    Value place = add(multiply(line, kLine), x);
    for (auto [number, memory] : llvm::zip_equal(across, shared)) {
      Value value = memref::LoadOp::create(
          b, loc, flat[reads[number].buffer],
          ValueRange{emitAddress(b, reads[number], loops.size())});
      memref::StoreOp::create(b, loc, value, memory, place);
    }
  });
  gpu::BarrierOp::create(b, loc);
  overTile(last, [&](Value line) {
    Value place = add(multiply(x, kLine), line);
    SmallVector<Value> saved(loaded);
    for (auto [number, memory] : llvm::zip_equal(across, shared))
      loaded[number] =
          asElement(b, memref::LoadOp::create(b, loc, memory, place),
                    op.getRegionInputArgs()[number].getType());
    emitReduction(b, loops.size());
    loaded = saved;
  });
}
