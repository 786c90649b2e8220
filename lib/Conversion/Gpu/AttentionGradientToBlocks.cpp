//===- AttentionGradientToBlocks.cpp - Gradients of attention -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a gradient of attention. Out: its two kernels, as AttentionToBlocks.cpp
// says. With P the probabilities, dO the cotangent of the result, of a row:
//
//   dP[k] = sum over e of dO[e] * V[k, e]
//   dS[k] = scale * P[k] * (dP[k] - sum over k' of P[k'] * dP[k'])
//   dQ[d] = sum over k of dS[k] * K[k, d]
//
// and of a key dK[d] = sum over q of dS[q] * Q[q, d], dV[e] = sum over q of
// P[q] * dO[q, e]. What is masked depends on no query: its dS is 0.
//
// Cost: the kernel for rows forms 5 products and reads keys and values twice
// for each tile of rows; the one for keys forms 4 and reads queries and
// cotangents once for each tile of keys. The first writes for the second three
// f32 for each row of a head and an i32 for each tile of rows.
//
//===----------------------------------------------------------------------===//

#include "Gpu/AttentionKernels.h"
#include "Kernel/KernelWork.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "llvm/Support/MathExtras.h"

#include "whale/Transforms/OpCost.h"
#include <limits>

using namespace mlir;
using namespace whale;

namespace {

/// Of each row of a thread: what its exponentials are counted from, 1 / their
/// sum, and the sum of its probabilities times their cotangents. Not one number
/// for the first two: a fill may be so large that it would lose the second.
struct RowFacts {
  SmallVector<Value> bases, inverses, sums;
};

/// The tiles of a kernel of the gradient, and what a thread knows of its rows.
class GradientTiles {
public:
  using Values = SmallVector<Value>;

  GradientTiles(AttentionTiles &t, Value head)
      : t(t), k(t.k), head(head), lines(t.tiles.rows / kAttentionSide),
        columns(t.tiles.keys / kAttentionSide), query(t.operands[0]),
        key(t.operands[1]), value(t.operands[2]), cotangent(t.operands.back()),
        queries(t.allocate(t.tiles.rows, t.depth, query.element)),
        keys(t.allocate(t.tiles.keys, t.depth, key.element)),
        values(t.allocate(t.tiles.keys, t.features, value.element)),
        cotangents(t.allocate(t.tiles.rows, t.features, cotangent.element)),
        starts{t.findHead(query, head), t.findHead(key, head),
               t.findHead(value, head), t.findHead(cotangent, head)} {}

  void readRows(Value first) {
    t.read(queries, t.tiles.rows, query, starts[0], first, t.sizes.rows,
           query.row, t.sizes.depth, query.depth);
    t.read(cotangents, t.tiles.rows, cotangent, starts[3], first, t.sizes.rows,
           cotangent.row, t.sizes.features, cotangent.feature);
  }

  void readKeys(Value first) {
    t.read(keys, t.tiles.keys, key, starts[1], first, t.sizes.keys, key.key,
           t.sizes.depth, key.depth);
    t.read(values, t.tiles.keys, value, starts[2], first, t.sizes.keys,
           value.key, t.sizes.features, value.feature);
  }

  Values findScores(Value firstRow, Value firstKey, Values *isKept = nullptr) {
    return t.makeScores(t.multiply(queries, keys.transposed(), t.tiles.rows,
                                   t.tiles.keys, t.depth,
                                   t.zeros(t.tiles.rows, t.tiles.keys)),
                        head, firstRow, firstKey, isKept);
  }

  /// The cotangents of probabilities.
  Values findCotangents() {
    return t.multiply(cotangents, values.transposed(), t.tiles.rows,
                      t.tiles.keys, t.features,
                      t.zeros(t.tiles.rows, t.tiles.keys));
  }

  /// Probabilities, and cotangents of products of queries and keys.
  std::pair<Values, Values> differentiate(Value firstRow, Value firstKey,
                                          const RowFacts &rows) {
    Values isKept;
    Values scores = findScores(firstRow, firstKey, &isKept);
    Values wanted = findCotangents(), probabilities, gradients;
    Value zero = t.number(0);
    for (auto [place, score] : llvm::enumerate(scores)) {
      int64_t line = place / columns;
      Value row = k.add(firstRow, t.spread(t.y, line));
      Value column = k.add(firstKey, t.spread(t.x, place % columns));
      Value isThere =
          arith::AndIOp::create(k.b, k.loc, k.inside(row, t.sizes.rows),
                                k.inside(column, t.sizes.keys));
      Value probability =
          t.mulFloats(t.exponential(t.subFloats(score, rows.bases[line])),
                      rows.inverses[line]);
      probability = t.select(isThere, probability, zero);
      probabilities.push_back(probability);
      Value gradient = t.mulFloats(
          t.mulFloats(probability, t.subFloats(wanted[place], rows.sums[line])),
          t.number(t.scale));
      Value counts = arith::AndIOp::create(k.b, k.loc, isThere, isKept[place]);
      gradients.push_back(t.select(counts, gradient, zero));
    }
    return {probabilities, gradients};
  }

  /// A step of the online softmax with this tile of keys. The values carried
  /// are of each row the largest score, the sum of exponentials, and that of
  /// exponentials times their cotangents.
  Values addFacts(Value firstRow, Value firstKey, ArrayRef<Value> before) {
    OnlineStep step(t, findScores(firstRow, firstKey),
                    before.take_front(lines));
    Values wanted = findCotangents();
    Values next(step.largest), totals, sums;
    for (int64_t i = 0; i < lines; ++i) {
      totals.push_back(t.mulFloats(before[lines + i], step.factors[i]));
      sums.push_back(t.mulFloats(before[2 * lines + i], step.factors[i]));
      for (int64_t j = 0; j < columns; ++j) {
        Value weight = step.exponentials[i * columns + j];
        totals[i] = t.addFloats(totals[i], weight);
        sums[i] =
            t.addFloats(sums[i], t.mulFloats(weight, wanted[i * columns + j]));
      }
    }
    llvm::append_range(next, totals);
    llvm::append_range(next, sums);
    return next;
  }

  /// What is known of the rows when all keys were added.
  RowFacts finishFacts(ArrayRef<Value> found) {
    RowFacts facts;
    for (int64_t i = 0; i < lines; ++i) {
      Value total = sumRow(t, found[lines + i]);
      Value sum = sumRow(t, found[2 * lines + i]);
      facts.bases.push_back(findBase(t, found[i]));
      facts.inverses.push_back(
          arith::DivFOp::create(k.b, k.loc, t.number(1), total));
      facts.sums.push_back(t.mulFloats(sum, facts.inverses.back()));
    }
    return facts;
  }

  /// Stores them to the buffers from `buffer` on; for all threads of column 0.
  void storeFacts(const RowFacts &facts, Value firstRow, unsigned buffer) {
    for (int64_t i = 0; i < lines; ++i) {
      Value row = k.add(firstRow, t.spread(t.y, i));
      k.when(k.inside(row, t.sizes.rows), [&] {
        Value place = k.add(k.mul(head, k.index(t.sizes.rows)), row);
        k.store(facts.bases[i], buffer, place);
        k.store(facts.inverses[i], buffer + 1, place);
        k.store(facts.sums[i], buffer + 2, place);
      });
    }
  }

  /// The facts that storeFacts has stored.
  RowFacts loadFacts(Value firstRow, unsigned buffer) {
    RowFacts facts;
    for (int64_t i = 0; i < lines; ++i) {
      Value row =
          arith::MinUIOp::create(k.b, k.loc, k.add(firstRow, t.spread(t.y, i)),
                                 k.index(t.sizes.rows - 1));
      Value place = k.add(k.mul(head, k.index(t.sizes.rows)), row);
      facts.bases.push_back(k.load(buffer, place));
      facts.inverses.push_back(k.load(buffer + 1, place));
      facts.sums.push_back(k.load(buffer + 2, place));
    }
    return facts;
  }

  /// Adds the cotangents of a tile of keys, `before`, and of values, after
  /// them, that the rows from `firstRow` on give.
  Values addKeys(const AttentionTile &weights, Value firstRow, Value firstKey,
                 const RowFacts &facts, ArrayRef<Value> before,
                 size_t numKeySums) {
    auto [probabilities, gradients] = differentiate(firstRow, firstKey, facts);
    // One after the other, in the same memory.
    t.write(weights, gradients, columns);
    t.synchronize();
    Values next =
        t.multiply(weights.transposed(), queries, t.tiles.keys, t.depth,
                   t.tiles.rows, before.take_front(numKeySums));
    t.synchronize();
    t.write(weights, probabilities, columns);
    t.synchronize();
    llvm::append_range(next, t.multiply(weights.transposed(), cotangents,
                                        t.tiles.keys, t.features, t.tiles.rows,
                                        before.drop_front(numKeySums)));
    return next;
  }

  AttentionTiles &t;
  KernelBuilder &k;
  Value head;
  int64_t lines, columns;
  const AttentionBuffer &query, &key, &value, &cotangent;
  AttentionTile queries, keys, values, cotangents;
  Value starts[4];
};

} // namespace

/// The kernel for tiles of rows: the cotangent of the queries, the facts of
/// each head and row, and by block the keys that count for it.
FailureOr<KernelOp> Attention::makeRowGradient(ArrayRef<Value> inputs) {
  AttentionTileSizes tiles = *findTiles(false);
  int64_t blocks = llvm::divideCeil(sizes.rows, tiles.rows);
  auto body = [&](AttentionTiles &t, Value head, Value number) {
    KernelBuilder &k = t.k;
    GradientTiles g(t, head);
    AttentionTile weights =
        t.allocate(tiles.rows, tiles.keys, k.b.getF32Type());
    Value firstRow = k.mul(number, k.index(tiles.rows));
    g.readRows(firstRow);
    Values carried(g.lines, t.number(-std::numeric_limits<double>::infinity()));
    carried.append(2 * g.lines, t.number(0));
    KeyWalk walk(t, firstRow);
    Values found = walk.run(carried, [&](Value first, ArrayRef<Value> before) {
      t.synchronize();
      g.readKeys(first);
      t.synchronize();
      return g.addFacts(firstRow, first, before);
    });
    RowFacts facts = g.finishFacts(found);
    Values gradients = walk.repeat(
        t.zeros(tiles.rows, depth), [&](Value first, ArrayRef<Value> before) {
          t.synchronize();
          g.readKeys(first);
          t.synchronize();
          t.write(weights, g.differentiate(firstRow, first, facts).second,
                  g.columns);
          t.synchronize();
          return t.multiply(weights, g.keys, tiles.rows, depth, tiles.keys,
                            before);
        });
    unsigned result = op->getNumOperands();
    AttentionBuffer out =
        t.describe(result, op->getResult(0).getType(), letters.results[0]);
    t.store(out, gradients, t.findHead(out, head), firstRow, sizes.rows,
            out.row, sizes.depth, out.depth);
    Value isFirst = k.compare(arith::CmpIPredicate::eq, t.x, k.index(0));
    k.when(isFirst, [&] {
      g.storeFacts(facts, firstRow, result + 1);
      k.when(k.compare(arith::CmpIPredicate::eq, t.y, k.index(0)), [&] {
        Value place = k.add(k.mul(head, k.index(blocks)), number);
        k.store(arith::IndexCastUIOp::create(k.b, loc, k.b.getI32Type(),
                                             walk.getLimit()),
                result + 4, place);
      });
    });
  };
  auto make = [&](int64_t count, Type element) {
    return RankedTensorType::get({sizes.heads * count}, element);
  };
  Type f32 = rewriter.getF32Type();
  Type types[] = {op->getResult(0).getType(), make(sizes.rows, f32),
                  make(sizes.rows, f32), make(sizes.rows, f32),
                  make(blocks, rewriter.getI32Type())};
  return makeBlocks(types, inputs, blocks, tiles, body);
}

/// The kernel for tiles of keys, with what that for rows has found.
FailureOr<KernelOp> Attention::makeKeyGradient(ArrayRef<Value> inputs) {
  AttentionTileSizes tiles = *findTiles(true);
  int64_t rowTile = findTiles(false)->rows;
  int64_t rowBlocks = llvm::divideCeil(sizes.rows, rowTile);
  assert(rowTile % tiles.rows == 0 && "a tile of rows is in one block of them");
  auto body = [&](AttentionTiles &t, Value head, Value number) {
    KernelBuilder &k = t.k;
    GradientTiles g(t, head);
    Type f32 = k.b.getF32Type();
    AttentionTile weights = t.allocate(tiles.rows, tiles.keys, f32);
    Value firstKey = k.mul(number, k.index(tiles.keys));
    g.readKeys(firstKey);
    unsigned found = op->getNumOperands();
    size_t numKeySums = t.zeros(tiles.keys, depth).size();
    Values carried = t.zeros(tiles.keys, depth);
    llvm::append_range(carried, t.zeros(tiles.keys, features));
    auto loop = scf::ForOp::create(k.b, loc, k.index(0), k.index(sizes.rows),
                                   k.index(tiles.rows), carried);
    loop->setAttr(kTilesAttrName, k.b.getUnitAttr());
    {
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(loop.getBody());
      Value firstRow = loop.getInductionVar();
      Values before(loop.getRegionIterArgs());
      Value block =
          arith::DivUIOp::create(k.b, loc, firstRow, k.index(rowTile));
      Value limit = arith::IndexCastUIOp::create(
          k.b, loc, k.b.getIndexType(),
          k.load(found + 3, k.add(k.mul(head, k.index(rowBlocks)), block)));
      auto branch = scf::IfOp::create(
          k.b, loc, ValueRange(before).getTypes(),
          k.compare(arith::CmpIPredicate::ult, firstKey, limit),
          /*withElseRegion=*/true);
      scf::YieldOp::create(k.b, loc, branch.getResults());
      k.b.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(k.b, loc, before);
      k.b.setInsertionPointToStart(branch.thenBlock());
      t.synchronize();
      g.readRows(firstRow);
      RowFacts facts = g.loadFacts(firstRow, found);
      t.synchronize();
      Values next =
          g.addKeys(weights, firstRow, firstKey, facts, before, numKeySums);
      scf::YieldOp::create(k.b, loc, next);
    }
    Values results(loop.getResults());
    AttentionBuffer keys =
        t.describe(found + 4, op->getResult(1).getType(), letters.results[1]);
    t.store(keys, ArrayRef(results).take_front(numKeySums),
            t.findHead(keys, head), firstKey, sizes.keys, keys.key, sizes.depth,
            keys.depth);
    AttentionBuffer values =
        t.describe(found + 5, op->getResult(2).getType(), letters.results[2]);
    t.store(values, ArrayRef(results).drop_front(numKeySums),
            t.findHead(values, head), firstKey, sizes.keys, values.key,
            sizes.features, values.feature);
  };
  return makeBlocks(op->getResults().drop_front().getTypes(), inputs,
                    llvm::divideCeil(sizes.keys, tiles.keys), tiles, body);
}

LogicalResult Attention::makeGradient() {
  Values inputs;
  for (Value operand : op->getOperands())
    inputs.push_back(stored(rewriter, operand));
  FailureOr<KernelOp> rows = makeRowGradient(inputs);
  if (failed(rows))
    return failure();
  llvm::append_range(inputs, rows->getResults().drop_front());
  FailureOr<KernelOp> keys = makeKeyGradient(inputs);
  if (failed(keys))
    return failure();
  // Of seven products the first kernel has three: scores, their cotangents and
  // those of queries.
  int64_t flops = opFlops(op), ofRows = flops / 7 * 3;
  noteWork(*rows, op, ofRows);
  noteWork(*keys, op, flops - ofRows);
  rewriter.replaceOp(
      op, {rows->getResult(0), keys->getResult(0), keys->getResult(1)});
  return success();
}
