//===- AttentionToBlocks.cpp - Attention for blocks of threads ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The GPU's form of attention and its gradient. In: one of these operations.
// Out: kernels that hold no scores but those of a tile of rows and keys.
//
// - Forward, a block for a tile of rows: tiles of keys and values go through
//   shared memory; what is summed so far is scaled whenever a row's largest
//   score grows (Milakov and Gimelshein, "Online normalizer calculation for
//   softmax"; Dao et al., "FlashAttention").
// - Gradient, first a block for a tile of rows: a pass over the keys finds each
//   row's largest score, the sum of its exponentials and that of its
//   probabilities times their cotangents, a second one the cotangent of the
//   queries. Then a block for a tile of keys: a pass over the rows, with what
//   was found of them, gives the cotangents of keys and values.
//
// Every sum has an order that follows from the shapes: nothing is atomic. With
// a causal mask tiles without a key that counts are skipped; where the fill is
// a number, that is decided when the largest scores are known, since rows of
// scores near the fill count what is masked.
//
// Cost: 2 products forward and 9 in the gradient, of 5 that there are: scores
// are formed three times. An operand that is streamed is read once for each
// tile of the other side.
//
//===----------------------------------------------------------------------===//

#include "Gpu/AttentionKernels.h"
#include "Kernel/KernelWork.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <numeric>

using namespace mlir;
using namespace whale;

/// What a thread may do, as whale-check-threads counts: reads of the tile that
/// a block has, of which some are one, and tiles that are streamed.
static constexpr int64_t kMostSteps = 4096;
/// A thread's sums of one product: more need registers that are not there.
static constexpr int64_t kMostSums = 32;

namespace {

/// Of a tile, whose lines are a word longer at most.
int64_t getTileBytes(int64_t rows, int64_t columns, Type type) {
  return rows * (columns * getStoredBytes(type) + 4);
}

} // namespace

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// The largest tiles that there is shared memory for.
std::optional<AttentionTileSizes> Attention::findTiles(bool isForKeys) const {
  static constexpr AttentionTileSizes choices[] = {
      {128, 32}, {128, 16}, {64, 64}, {64, 32}, {32, 32}, {32, 16}, {16, 16}};
  Type f32 = Float32Type::get(op->getContext());
  auto fits = [&](AttentionTileSizes tiles) {
    if (isForKeys)
      std::swap(tiles.rows, tiles.keys);
    int64_t bytes = getTileBytes(tiles.rows, depth, elements[0]) +
                    getTileBytes(tiles.keys, depth, elements[1]) +
                    getTileBytes(tiles.keys, features, elements[2]) +
                    getTileBytes(tiles.rows, tiles.keys, f32) +
                    getTileBytes(1, 2 * kAttentionVotes, f32);
    if (isGradient)
      bytes += getTileBytes(tiles.rows, features, elements.back());
    int64_t held = isForKeys ? tiles.keys : tiles.rows;
    int64_t sums = isGradient && !isForKeys ? depth : features;
    if (isForKeys)
      sums += depth;
    return bytes <= kMaxSharedBytes &&
           (held / kAttentionSide) * (sums / kAttentionSide) <= kMostSums * 2 &&
           (tiles.rows / kAttentionSide) * (tiles.keys / kAttentionSide) <=
               kMostSums;
  };
  auto countSteps = [&](AttentionTileSizes tiles, int64_t streamed) {
    int64_t reads = 0;
    for (int64_t elements : {tiles.rows * depth, tiles.rows * features})
      reads += elements / std::gcd(elements, kAttentionReads);
    int64_t passes = isForKeys ? 1 : isGradient ? 3 : 2;
    return reads + passes * llvm::divideCeil(streamed, tiles.keys);
  };
  int64_t held = isForKeys ? sizes.keys : sizes.rows;
  int64_t streamed = isForKeys ? sizes.rows : sizes.keys;
  for (AttentionTileSizes tiles : choices) {
    // Not much more than there is.
    auto isWide = [](int64_t tile, int64_t size) {
      return tile > kAttentionSide && tile >= 2 * size;
    };
    if (isWide(tiles.rows, held) || isWide(tiles.keys, streamed) ||
        countSteps(tiles, streamed) > kMostSteps || !fits(tiles))
      continue;
    if (!isForKeys)
      return tiles;
    // Its rows are those of one block of the other kernel.
    if (std::optional<AttentionTileSizes> other = findTiles(false);
        other && other->rows % tiles.keys == 0)
      return AttentionTileSizes{tiles.keys, tiles.rows};
  }
  return std::nullopt;
}

StringRef Attention::findReason() {
  if (sizes.heads == 0 || sizes.rows == 0 || sizes.keys == 0 ||
      sizes.depth == 0 || sizes.features == 0)
    return "it has no elements";
  if (!findTiles(false) || (isGradient && !findTiles(true)))
    return "tiles of heads of this size do not fit into shared memory, or "
           "are too many for a block";
  return "";
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// A kernel of `blocks` blocks for each head; `body` gets the head and the
/// number of the block.
FailureOr<KernelOp>
Attention::makeBlocks(TypeRange results, ArrayRef<Value> inputs, int64_t blocks,
                      AttentionTileSizes tiles,
                      function_ref<void(AttentionTiles &, Value, Value)> body) {
  auto kernel = makeKernel(
      rewriter, loc, /*blocks=*/true, results, inputs, [&](KernelBuilder &k) {
        for (Value &buffer : k.buffers)
          buffer = flatten(k.b, loc, buffer);
        k.parallel({sizes.heads, blocks}, [&](ValueRange at) {
          if (!code)
            return;
          AttentionTiles t(k, op, tiles);
          body(t, at[0], at[1]);
        });
        return success();
      });
  if (succeeded(kernel))
    (*kernel)->setAttr(kThreadsAttrName,
                       rewriter.getI64IntegerAttr(kAttentionThreads));
  return kernel;
}

/// What a forward kernel carries after a step: of each of a thread's `lines`
/// rows the largest score and the sum of exponentials; and what was added up
/// of the results, in the new scale.
static std::pair<SmallVector<Value>, SmallVector<Value>>
rescale(AttentionTiles &t, const OnlineStep &step, ArrayRef<Value> before,
        int64_t lines) {
  int64_t columns = step.exponentials.size() / lines;
  int64_t outputs = before.size() / lines - 2;
  SmallVector<Value> next(step.largest), outs;
  for (int64_t i = 0; i < lines; ++i) {
    Value sum = t.mulFloats(before[lines + i], step.factors[i]);
    for (int64_t j = 0; j < columns; ++j)
      sum = t.addFloats(sum, step.exponentials[i * columns + j]);
    next.push_back(sum);
    for (int64_t j = 0; j < outputs; ++j)
      outs.push_back(
          t.mulFloats(before[2 * lines + i * outputs + j], step.factors[i]));
  }
  return {next, outs};
}

/// The results of what a forward kernel has carried.
static SmallVector<Value> divideBySums(AttentionTiles &t, ArrayRef<Value> sums,
                                       int64_t lines) {
  int64_t outputs = sums.size() / lines - 2;
  SmallVector<Value> results;
  for (int64_t i = 0; i < lines; ++i) {
    Value inverse = arith::DivFOp::create(t.k.b, t.k.loc, t.number(1),
                                          sumRow(t, sums[lines + i]));
    for (int64_t j = 0; j < outputs; ++j)
      results.push_back(
          t.mulFloats(sums[2 * lines + i * outputs + j], inverse));
  }
  return results;
}

LogicalResult Attention::makeForward() {
  AttentionTileSizes tiles = *findTiles(false);
  Values inputs;
  for (Value operand : op->getOperands())
    inputs.push_back(stored(rewriter, operand));
  auto body = [&](AttentionTiles &t, Value head, Value number) {
    KernelBuilder &k = t.k;
    int64_t lines = tiles.rows / kAttentionSide;
    int64_t columns = tiles.keys / kAttentionSide;
    const AttentionBuffer &query = t.operands[0], &key = t.operands[1],
                          &value = t.operands[2];
    Value firstRow = k.mul(number, k.index(tiles.rows));
    AttentionTile queries = t.allocate(tiles.rows, depth, query.element);
    AttentionTile keys = t.allocate(tiles.keys, depth, key.element);
    AttentionTile values = t.allocate(tiles.keys, features, value.element);
    AttentionTile weights =
        t.allocate(tiles.rows, tiles.keys, k.b.getF32Type());
    t.read(queries, tiles.rows, query, t.findHead(query, head), firstRow,
           sizes.rows, query.row, sizes.depth, query.depth);
    Value keyStart = t.findHead(key, head);
    Value valueStart = t.findHead(value, head);
    Values carried(lines, t.number(-std::numeric_limits<double>::infinity()));
    carried.append(lines, t.number(0));
    llvm::append_range(carried, t.zeros(tiles.rows, features));
    KeyWalk walk(t, firstRow);
    Values sums = walk.run(carried, [&](Value first, ArrayRef<Value> before) {
      t.synchronize();
      t.read(keys, tiles.keys, key, keyStart, first, sizes.keys, key.key,
             sizes.depth, key.depth);
      t.read(values, tiles.keys, value, valueStart, first, sizes.keys,
             value.key, sizes.features, value.feature);
      t.synchronize();
      Values products =
          t.multiply(queries, keys.transposed(), tiles.rows, tiles.keys, depth,
                     t.zeros(tiles.rows, tiles.keys));
      OnlineStep step(t, t.makeScores(products, head, firstRow, first),
                      before.take_front(lines));
      t.write(weights, step.exponentials, columns);
      t.synchronize();
      auto [next, outs] = rescale(t, step, before, lines);
      llvm::append_range(next, t.multiply(weights, values, tiles.rows, features,
                                          tiles.keys, outs));
      return next;
    });
    Values results = divideBySums(t, sums, lines);
    AttentionBuffer out = t.describe(
        op->getNumOperands(), op->getResult(0).getType(), letters.results[0]);
    t.store(out, results, t.findHead(out, head), firstRow, sizes.rows, out.row,
            sizes.features, out.feature);
  };
  auto kernel =
      makeBlocks(op->getResultTypes(), inputs,
                 llvm::divideCeil(sizes.rows, tiles.rows), tiles, body);
  if (failed(kernel))
    return failure();
  noteWork(*kernel, op);
  rewriter.replaceOp(op, kernel->getResults());
  return success();
}

LogicalResult Attention::run() {
  return isGradient ? makeGradient() : makeForward();
}

namespace {

/// Pattern: attention whose tiles fit becomes kernels.
struct AttentionToBlocks : RewritePattern {
  AttentionToBlocks(MLIRContext *context, bool code)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/2, context),
        code(code) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isAttention(op))
      return failure();
    Attention attention(rewriter, op, code);
    StringRef reason = attention.findReason();
    if (reason.empty()) {
      if (auto forward = dyn_cast<AttentionOp>(op))
        absorbTranspose(rewriter, forward);
      return Attention(rewriter, op, code).run();
    }
    op->emitRemark("attention is left to the library: ") << reason;
    return failure();
  }

  bool code;
};

} // namespace

void whale::populateAttentionBlockPatterns(RewritePatternSet &patterns,
                                           bool code) {
  patterns.add<AttentionToBlocks>(patterns.getContext(), code);
}
