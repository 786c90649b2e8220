//===- AttentionKernels.cpp - Attention kernels of a GPU ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kernels that walk over keys have in common: which tiles they visit, and
// the online softmax.
//
//===----------------------------------------------------------------------===//

#include "Gpu/AttentionKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace whale;

void whale::absorbTranspose(PatternRewriter &rewriter, AttentionOp op,
                            bool keepsFeatures) {
  if (!op->hasOneUse())
    return;
  auto user = dyn_cast<stablehlo::TransposeOp>(*op->user_begin());
  if (!user ||
      (keepsFeatures &&
       op.getResultDims()[user.getPermutation().back()] != kFeatureLetter))
    return;
  std::string letters;
  for (int64_t dim : user.getPermutation())
    letters += op.getResultDims()[dim];
  rewriter.modifyOpInPlace(op, [&] {
    op.setResultDims(letters);
    op.getResult().setType(cast<RankedTensorType>(user.getType()));
  });
  // Nothing uses it any more: the pass erases it in the end.
  rewriter.replaceAllUsesWith(user.getResult(), op.getResult());
}

KeyWalk::KeyWalk(AttentionTiles &t, Value firstRow)
    : t(t), k(t.k), firstRow(firstRow) {
  Value end =
      arith::MinUIOp::create(k.b, k.loc, k.add(firstRow, k.index(t.tiles.rows)),
                             k.index(t.sizes.rows));
  kept = t.countKeys(end);
  if (votes())
    memory = t.allocate(1, 2 * kAttentionVotes, k.b.getF32Type());
}

/// Whether masked scores may count.
bool KeyWalk::votes() const { return t.causal && std::isfinite(t.fill); }

SmallVector<Value>
KeyWalk::overTiles(Value from, Value to, ArrayRef<Value> initial,
                   function_ref<Values(Value, ArrayRef<Value>)> body) {
  auto loop =
      scf::ForOp::create(k.b, k.loc, from, to, k.index(t.tiles.keys), initial);
  loop->setAttr(kTilesAttrName, k.b.getUnitAttr());
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(
      k.b, k.loc,
      body(loop.getInductionVar(), Values(loop.getRegionIterArgs())));
  return Values(loop.getResults());
}

/// Whether what is masked counts for a row of the block: the same in all
/// threads. Each turn has memory of its own: it may follow the other at once.
Value KeyWalk::vote(ArrayRef<Value> largest, Value turn) {
  Value first = k.mul(turn, k.index(kAttentionVotes));
  Value counts = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(false));
  for (auto [number, value] : llvm::enumerate(largest)) {
    Value isRow =
        k.inside(k.add(firstRow, t.spread(t.y, number)), t.sizes.rows);
    counts = arith::OrIOp::create(
        k.b, k.loc, counts,
        arith::AndIOp::create(k.b, k.loc, isRow, t.countsMasked(value))
            .getResult());
  }
  k.when(k.compare(arith::CmpIPredicate::eq, t.x, k.index(0)), [&] {
    memref::StoreOp::create(k.b, k.loc,
                            t.select(counts, t.number(1), t.number(0)),
                            memory.memory, k.add(first, t.y));
  });
  t.synchronize();
  Value any = t.number(0);
  for (int64_t number = 0; number < kAttentionVotes; ++number)
    any = arith::MaxNumFOp::create(
        k.b, k.loc, any,
        memref::LoadOp::create(k.b, k.loc, memory.memory,
                               ValueRange{k.add(first, k.index(number))}));
  return arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OGT, any,
                               t.number(0));
}

SmallVector<Value>
KeyWalk::run(ArrayRef<Value> initial,
             function_ref<Values(Value, ArrayRef<Value>)> body) {
  if (!votes()) {
    limit = kept;
    return overTiles(k.index(0), kept, initial, body);
  }
  // First what is kept, then the rest, if it counts.
  Values carried(initial);
  carried.push_back(k.index(0));
  auto turns = scf::ForOp::create(k.b, k.loc, k.index(0), k.index(2),
                                  k.index(1), carried);
  {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(turns.getBody());
    Values now(turns.getRegionIterArgs());
    Value from = now.pop_back_val();
    Value isFirst = k.compare(arith::CmpIPredicate::eq, turns.getInductionVar(),
                              k.index(0));
    Value counts = vote(ArrayRef(now).take_front(t.tiles.rows / kAttentionSide),
                        turns.getInductionVar());
    Value to =
        t.select(isFirst, kept, t.select(counts, k.index(t.sizes.keys), from));
    Values next = overTiles(from, to, now, body);
    // The next tile begins where the last one ended.
    Value size = k.index(t.tiles.keys);
    Value count = arith::DivUIOp::create(
        k.b, k.loc, k.add(to, k.index(t.tiles.keys - 1)), size);
    next.push_back(k.mul(count, size));
    scf::YieldOp::create(k.b, k.loc, next);
  }
  Values results(turns.getResults());
  limit = arith::MinUIOp::create(k.b, k.loc, results.pop_back_val(),
                                 k.index(t.sizes.keys));
  return results;
}

Value whale::findBase(AttentionTiles &t, Value largest) {
  Value isNone =
      arith::CmpFOp::create(t.k.b, t.k.loc, arith::CmpFPredicate::OEQ, largest,
                            t.number(-std::numeric_limits<double>::infinity()));
  return t.select(isNone, t.number(0), largest);
}

Value whale::sumRow(AttentionTiles &t, Value value) {
  return t.overRow(value, [&](Value a, Value b) { return t.addFloats(a, b); });
}

OnlineStep::OnlineStep(AttentionTiles &t, ArrayRef<Value> scores,
                       ArrayRef<Value> before) {
  int64_t columns = t.tiles.keys / kAttentionSide;
  auto maximum = [&](Value a, Value b) {
    return arith::MaximumFOp::create(t.k.b, t.k.loc, a, b).getResult();
  };
  for (auto [number, value] : llvm::enumerate(before)) {
    ArrayRef<Value> row = scores.slice(number * columns, columns);
    Value most = row[0];
    for (Value score : row.drop_front())
      most = maximum(most, score);
    largest.push_back(maximum(value, t.overRow(most, maximum)));
    Value base = findBase(t, largest.back());
    factors.push_back(t.exponential(t.subFloats(value, base)));
    for (Value score : row)
      exponentials.push_back(t.exponential(t.subFloats(score, base)));
  }
}
