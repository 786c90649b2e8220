//===- AttentionTiles.cpp - Tiles of attention for a GPU ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an operation of attention and the sizes of tiles. Out: operations of a
// kernel, which read tiles into shared memory, multiply them and make scores.
// Everything is computed in f32; tiles are held in the type of their tensor.
// Rows in shared memory have an odd number of words, so that the threads of a
// warp that read a column use different banks.
//
// Cost: of a tile a thread reads 1/256. Of a product of m x length by length x
// n it computes as much, for which it loads length * (m + n) / 16 elements of
// shared memory. The code has kUnrolled steps of a product, and a load of the
// mask and one of the bias for each score of a thread.
//
//===----------------------------------------------------------------------===//

#include "Gpu/AttentionTiles.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <numeric>

using namespace mlir;
using namespace whale;

/// Products that are unrolled, a divisor of kAttentionSide.
static constexpr int64_t kUnrolled = 8;

template <typename Op>
static std::tuple<double, std::optional<double>, Value, Value,
                  std::optional<StringRef>, std::optional<StringRef>>
getShared(Op op) {
  std::optional<double> fill;
  if (auto value = op.getFill())
    fill = value->convertToDouble();
  return {op.getScale().convertToDouble(),
          fill,
          op.getMask(),
          op.getBias(),
          op.getMaskDims(),
          op.getBiasDims()};
}

AttentionTiles::AttentionTiles(KernelBuilder &k, Operation *op,
                               AttentionTileSizes tiles)
    : k(k), op(op), sizes(getAttentionSizes(op)), tiles(tiles),
      depth(llvm::alignTo(sizes.depth, kAttentionSide)),
      features(llvm::alignTo(sizes.features, kAttentionSide)),
      causal(getAttentionCausal(op)) {
  AttentionLetters letters = getAttentionLetters(op);
  auto query = cast<RankedTensorType>(op->getOperand(0).getType());
  for (auto [letter, extent] :
       llvm::zip_equal(letters.operands[0], query.getShape()))
    if (letter != kRowLetter && letter != kDepthLetter &&
        letter != kUnitLetter) {
      headLetters += letter;
      heads.push_back(extent);
    }
  auto forward = dyn_cast<AttentionOp>(op);
  auto [factor, filled, maskValue, biasValue, maskDims, biasDims] =
      forward ? getShared(forward) : getShared(cast<AttentionGradientOp>(op));
  scale = factor;
  fill = filled.value_or(-std::numeric_limits<double>::infinity());
  for (auto [number, value] : llvm::enumerate(op->getOperands())) {
    operands.push_back(
        describe(number, value.getType(), letters.operands[number]));
    if (value == maskValue && number >= 3 && !mask)
      mask = operands.back();
    else if (value == biasValue && number >= 3 && !bias)
      bias = operands.back();
  }
  Value thread = gpu::ThreadIdOp::create(k.b, k.loc, gpu::Dimension::x);
  Value side = k.index(kAttentionSide);
  x = arith::RemUIOp::create(k.b, k.loc, thread, side);
  y = arith::DivUIOp::create(k.b, k.loc, thread, side);
}

AttentionBuffer AttentionTiles::describe(unsigned buffer, Type type,
                                         StringRef letters) const {
  auto tensor = cast<RankedTensorType>(type);
  AttentionBuffer result;
  result.buffer = buffer;
  result.element = tensor.getElementType();
  result.heads.assign(heads.size(), 0);
  int64_t stride = 1;
  for (int64_t dim = tensor.getRank(); dim-- > 0;
       stride *= tensor.getDimSize(dim)) {
    char letter = letters[dim];
    if (letter == kRowLetter)
      result.row = stride;
    else if (letter == kKeyLetter)
      result.key = stride;
    else if (letter == kDepthLetter)
      result.depth = stride;
    else if (letter == kFeatureLetter)
      result.feature = stride;
    else if (letter != kUnitLetter)
      result.heads[headLetters.find(letter)] = stride;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value AttentionTiles::number(double value) {
  // Infinity and what f32 rounds to it.
  return arith::ConstantOp::create(
      k.b, k.loc, k.b.getF32FloatAttr(static_cast<float>(value)));
}

Value AttentionTiles::addFloats(Value a, Value b) {
  return arith::AddFOp::create(k.b, k.loc, a, b);
}

Value AttentionTiles::subFloats(Value a, Value b) {
  return arith::SubFOp::create(k.b, k.loc, a, b);
}

Value AttentionTiles::mulFloats(Value a, Value b) {
  return arith::MulFOp::create(k.b, k.loc, a, b);
}

Value AttentionTiles::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(k.b, k.loc, condition, yes, no);
}

Value AttentionTiles::exponential(Value value) {
  return math::ExpOp::create(k.b, k.loc, value);
}

Value AttentionTiles::spread(Value value, int64_t number) {
  return k.add(value, k.index(number * kAttentionSide));
}

void AttentionTiles::synchronize() { gpu::BarrierOp::create(k.b, k.loc); }

Value AttentionTiles::toF32(Value value) {
  if (value.getType().isF32())
    return value;
  return arith::ExtFOp::create(k.b, k.loc, k.b.getF32Type(), value);
}

Value AttentionTiles::findHead(const AttentionBuffer &buffer, Value head) {
  Value place = k.index(0);
  for (auto [index, stride] :
       llvm::zip_equal(k.unflatten(head, heads), buffer.heads))
    if (stride != 0)
      place = k.add(place, k.mul(index, k.index(stride)));
  return place;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

AttentionTile AttentionTiles::allocate(int64_t rows, int64_t columns,
                                       Type element) {
  int64_t line = columns + (element.isF32() ? 1 : 2);
  return {allocateShared(k.b, k.loc, rows * line, element), line, 1};
}

void AttentionTiles::read(const AttentionTile &tile, int64_t rows,
                          const AttentionBuffer &buffer, Value start,
                          Value first, int64_t lines, int64_t stride,
                          int64_t width, int64_t widthStride) {
  int64_t columns = llvm::alignTo(width, kAttentionSide);
  Value thread = k.add(k.mul(y, k.index(kAttentionSide)), x);
  int64_t unrolled =
      std::gcd(rows * columns, kAttentionReads) / kAttentionThreads;
  auto loop = scf::ForOp::create(k.b, k.loc, thread, k.index(rows * columns),
                                 k.index(unrolled * kAttentionThreads));
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(loop.getBody());
  for (int64_t number = 0; number < unrolled; ++number) {
    SmallVector<Value> at = k.unflatten(
        k.add(loop.getInductionVar(), k.index(number * kAttentionThreads)),
        {rows, columns});
    Value line = k.add(first, at[0]);
    Value inside = k.inside(line, lines);
    if (width != columns)
      inside =
          arith::AndIOp::create(k.b, k.loc, inside, k.inside(at[1], width));
    auto branch = scf::IfOp::create(k.b, k.loc, buffer.element, inside,
                                    /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard inner(k.b);
      k.b.setInsertionPointToStart(branch.thenBlock());
      Value place = k.add(start, k.add(k.mul(line, k.index(stride)),
                                       k.mul(at[1], k.index(widthStride))));
      scf::YieldOp::create(k.b, k.loc, k.load(buffer.buffer, place));
      k.b.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(k.b, k.loc, makeZero(k.b, k.loc, buffer.element));
    }
    Value place = k.add(k.mul(at[0], k.index(tile.row)),
                        k.mul(at[1], k.index(tile.column)));
    memref::StoreOp::create(k.b, k.loc, branch.getResult(0), tile.memory,
                            place);
  }
}

void AttentionTiles::write(const AttentionTile &tile, ArrayRef<Value> values,
                           int64_t columns) {
  Value base =
      k.add(k.mul(y, k.index(tile.row)), k.mul(x, k.index(tile.column)));
  for (auto [number, value] : llvm::enumerate(values)) {
    int64_t i = number / columns, j = number % columns;
    Value place = spread(base, i * tile.row + j * tile.column);
    memref::StoreOp::create(k.b, k.loc, value, tile.memory, place);
  }
}

void AttentionTiles::store(const AttentionBuffer &buffer,
                           ArrayRef<Value> values, Value start, Value first,
                           int64_t lines, int64_t stride, int64_t width,
                           int64_t widthStride) {
  int64_t columns = llvm::divideCeil(width, kAttentionSide);
  for (int64_t i = 0; i < int64_t(values.size()) / columns; ++i) {
    Value line = k.add(first, spread(y, i));
    k.when(k.inside(line, lines), [&] {
      Value begin = k.add(start, k.mul(line, k.index(stride)));
      for (int64_t j = 0; j < columns; ++j) {
        Value column = spread(x, j);
        auto put = [&] {
          Value value = values[i * columns + j];
          if (!buffer.element.isF32())
            value = arith::TruncFOp::create(k.b, k.loc, buffer.element, value);
          k.store(value, buffer.buffer,
                  k.add(begin, k.mul(column, k.index(widthStride))));
        };
        if ((j + 1) * kAttentionSide <= width)
          put();
        else
          k.when(k.inside(column, width), put);
      }
    });
  }
}

//===----------------------------------------------------------------------===//
// Products and scores
//===----------------------------------------------------------------------===//

SmallVector<Value> AttentionTiles::zeros(int64_t m, int64_t n) {
  return Values(m / kAttentionSide * (n / kAttentionSide), number(0));
}

SmallVector<Value> AttentionTiles::multiply(const AttentionTile &a,
                                            const AttentionTile &b, int64_t m,
                                            int64_t n, int64_t length,
                                            ArrayRef<Value> sums) {
  int64_t lines = m / kAttentionSide, columns = n / kAttentionSide;
  assert(int64_t(sums.size()) == lines * columns && length % kUnrolled == 0 &&
         "tiles are whole");
  Value left = k.mul(y, k.index(a.row)), right = k.mul(x, k.index(b.column));
  auto loop = scf::ForOp::create(k.b, k.loc, k.index(0), k.index(length),
                                 k.index(kUnrolled), sums);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(loop.getBody());
  Value step = loop.getInductionVar();
  left = k.add(left, k.mul(step, k.index(a.column)));
  right = k.add(right, k.mul(step, k.index(b.row)));
  Values now(loop.getRegionIterArgs());
  auto load = [&](const AttentionTile &tile, Value base, int64_t offset) {
    return toF32(memref::LoadOp::create(
        k.b, k.loc, tile.memory, ValueRange{k.add(base, k.index(offset))}));
  };
  for (int64_t number = 0; number < kUnrolled; ++number) {
    Values fromLeft, fromRight;
    for (int64_t i = 0; i < lines; ++i)
      fromLeft.push_back(
          load(a, left, number * a.column + i * kAttentionSide * a.row));
    for (int64_t j = 0; j < columns; ++j)
      fromRight.push_back(
          load(b, right, number * b.row + j * kAttentionSide * b.column));
    for (int64_t i = 0; i < lines; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        Value &sum = now[i * columns + j];
        sum = math::FmaOp::create(k.b, k.loc, fromLeft[i], fromRight[j], sum);
      }
  }
  scf::YieldOp::create(k.b, k.loc, now);
  return Values(loop.getResults());
}

SmallVector<Value> AttentionTiles::makeScores(ArrayRef<Value> products,
                                              Value head, Value firstRow,
                                              Value firstKey, Values *isKept) {
  int64_t columns = tiles.keys / kAttentionSide;
  Value maskStart = mask ? findHead(*mask, head) : Value();
  Value biasStart = bias ? findHead(*bias, head) : Value();
  auto clamp = [&](Value value, int64_t size) {
    return arith::MinUIOp::create(k.b, k.loc, value, k.index(size - 1))
        .getResult();
  };
  Values scores;
  for (auto [place, product] : llvm::enumerate(products)) {
    Value row = k.add(firstRow, spread(y, place / columns));
    Value key = k.add(firstKey, spread(x, place % columns));
    auto locate = [&](const AttentionBuffer &buffer, Value start) {
      return k.add(start,
                   k.add(k.mul(clamp(row, sizes.rows), k.index(buffer.row)),
                         k.mul(clamp(key, sizes.keys), k.index(buffer.key))));
    };
    Value score = mulFloats(product, number(scale));
    if (bias)
      score = addFloats(score,
                        toF32(k.load(bias->buffer, locate(*bias, biasStart))));
    Value kept = k.inside(key, sizes.keys);
    Value isThere = kept;
    if (mask)
      kept = arith::AndIOp::create(k.b, k.loc, kept,
                                   k.loadScalar(mask->buffer,
                                                locate(*mask, maskStart),
                                                k.b.getI1Type()));
    if (causal)
      kept = arith::AndIOp::create(k.b, k.loc, kept,
                                   k.compare(arith::CmpIPredicate::sle, key,
                                             k.add(row, k.index(*causal))));
    score = select(kept, score, number(fill));
    if (sizes.keys % tiles.keys != 0)
      score = select(isThere, score,
                     number(-std::numeric_limits<double>::infinity()));
    scores.push_back(score);
    if (isKept)
      isKept->push_back(kept);
  }
  return scores;
}

Value AttentionTiles::overRow(Value value,
                              function_ref<Value(Value, Value)> combine) {
  for (int64_t offset = kAttentionSide / 2; offset > 0; offset /= 2) {
    auto other = gpu::ShuffleOp::create(
        k.b, k.loc, value, offset, 2 * kAttentionSide, gpu::ShuffleMode::XOR);
    value = combine(value, other.getShuffleResult());
  }
  return value;
}

Value AttentionTiles::countsMasked(Value largest) {
  // The exponential of less is 0. What is no number counts, too.
  constexpr double negligible = -104;
  return arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::UGE,
                               subFloats(number(fill), largest),
                               number(negligible));
}

Value AttentionTiles::countKeys(Value end) {
  if (!causal)
    return k.index(sizes.keys);
  return clampIndex(k.b, k.loc, k.add(end, k.index(*causal)), 0, sizes.keys);
}
