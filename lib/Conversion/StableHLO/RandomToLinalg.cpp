//===- RandomToLinalg.cpp - Random bits -----------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: rng_bit_generator. Out: two parallel linalg operations, for the bits and
// for the next state: THREE_FRY and PHILOX with the counters and the order of
// XLA, so that the bits are the same. Each element is a function of the state
// and its position.
//
// Cost: nothing is read but the state. Each element computes all rounds (20 of
// Threefry, 10 of Philox) of its block and keeps its part of the result: for
// elements of up to 32 bits a block of Threefry is so computed twice, one of
// Philox four times; for those of 64 bits once and twice.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

namespace {

/// Arithmetic on i32 and i64 scalars.
struct Bits {
  OpBuilder &b;
  Location loc;

  Value c32(uint32_t value) {
    return arith::ConstantOp::create(
        b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value c64(uint64_t value) {
    return arith::ConstantOp::create(
        b, loc, b.getI64IntegerAttr(static_cast<int64_t>(value)));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
  Value xorOf(Value x, Value y) { return arith::XOrIOp::create(b, loc, x, y); }
  Value low(Value x) {
    return arith::TruncIOp::create(b, loc, b.getI32Type(), x);
  }
  Value high(Value x) {
    return low(arith::ShRUIOp::create(b, loc, x, c64(32)));
  }
  Value wide(Value x) {
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), x);
  }
  Value join(Value lowHalf, Value highHalf) {
    return arith::OrIOp::create(
        b, loc, wide(lowHalf),
        arith::ShLIOp::create(b, loc, wide(highHalf), c64(32)));
  }
  Value rotate(Value x, unsigned amount) {
    return arith::OrIOp::create(
        b, loc, arith::ShLIOp::create(b, loc, x, c32(amount)),
        arith::ShRUIOp::create(b, loc, x, c32(32 - amount)));
  }
  /// The element of `values` that `number` (i64) selects.
  Value choose(Value number, ArrayRef<Value> values) {
    Value result = values.back();
    for (int64_t i = static_cast<int64_t>(values.size()) - 2; i >= 0; --i)
      result = arith::SelectOp::create(
          b, loc,
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number,
                                c64(i)),
          values[i], result);
    return result;
  }
};

/// Threefry-2x32 with 20 rounds.
std::array<Value, 2> threefry(Bits &s, Value counter, Value key) {
  static constexpr unsigned rotations[2][4] = {{13, 15, 26, 6},
                                               {17, 29, 16, 24}};
  Value keys[3] = {s.low(key), s.high(key), {}};
  keys[2] = s.xorOf(s.xorOf(keys[0], keys[1]), s.c32(0x1BD11BDA));
  Value x = s.add(s.low(counter), keys[0]);
  Value y = s.add(s.high(counter), keys[1]);
  for (unsigned group = 0; group < 5; ++group) {
    for (unsigned amount : rotations[group % 2]) {
      x = s.add(x, y);
      y = s.xorOf(x, s.rotate(y, amount));
    }
    x = s.add(x, keys[(group + 1) % 3]);
    y = s.add(s.add(y, keys[(group + 2) % 3]), s.c32(group + 1));
  }
  return {x, y};
}

/// Philox-4x32 with 10 rounds.
std::array<Value, 4> philox(Bits &s, std::array<Value, 4> x, Value key) {
  Value key0 = s.low(key), key1 = s.high(key);
  for (unsigned round = 0; round < 10; ++round) {
    Value product0 = s.mul(s.wide(x[0]), s.c64(0xD2511F53));
    Value product1 = s.mul(s.wide(x[2]), s.c64(0xCD9E8D57));
    x = {s.xorOf(s.xorOf(s.high(product1), x[1]), key0), s.low(product1),
         s.xorOf(s.xorOf(s.high(product0), x[3]), key1), s.low(product0)};
    key0 = s.add(key0, s.c32(0x9E3779B9));
    key1 = s.add(key1, s.c32(0xBB67AE85));
  }
  return x;
}

struct RngBitGeneratorToLinalg
    : OpRewritePattern<stablehlo::RngBitGeneratorOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::RngBitGeneratorOp op,
                                PatternRewriter &rewriter) const override {
    auto state = cast<RankedTensorType>(op.getInitialState().getType());
    auto type = cast<RankedTensorType>(op->getResult(1).getType());
    RankedTensorType storage = getStorageType(type);
    if (!storage || !state.getElementType().isInteger(64) ||
        state.getRank() != 1)
      return failure();
    // XLA's default on a CPU is Philox.
    bool isThreefry =
        op.getRngAlgorithm() == stablehlo::RngAlgorithm::THREE_FRY;
    int64_t words = state.getDimSize(0);
    if (words != 2 && (isThreefry || words != 3))
      return failure();
    unsigned width = storage.getElementTypeBitWidth();
    if (width == 1)
      return failure();
    Value input = stored(rewriter, op.getInitialState());
    auto inputsOf = [&](int64_t rank) {
      SmallVector<Input> inputs;
      for (int64_t word = 0; word < words; ++word)
        inputs.push_back(
            {input,
             AffineMap::get(rank, 0, rewriter.getAffineConstantExpr(word))});
      return inputs;
    };
    std::optional<int64_t> splitDim = isThreefry && width != 64
                                          ? findSplitDim(type.getShape())
                                          : std::nullopt;
    int64_t used = 0;
    int64_t count = type.getNumElements();
    if (isThreefry && width == 64)
      used = count;
    else if (isThreefry)
      used = !splitDim ? 1
                       : count / type.getDimSize(*splitDim) *
                             llvm::divideCeil(type.getDimSize(*splitDim), 2);
    else
      used = llvm::divideCeil(width == 64 ? 2 * count : count, 4);

    auto bits = makeParallel(
        rewriter, op.getLoc(), storage.getShape(), storage.getElementType(),
        inputsOf(type.getRank()),
        [&](OpBuilder &b, Location loc,
            ValueRange words) -> FailureOr<SmallVector<Value>> {
          Bits s{b, loc};
          Value result = isThreefry
                             ? makeThreefry(s, words, type, width, splitDim)
                             : makePhilox(s, words, type, width);
          if (width < 32)
            result = arith::TruncIOp::create(b, loc, b.getIntegerType(width),
                                             result);
          if (result.getType() != storage.getElementType())
            result = arith::BitcastOp::create(b, loc, storage.getElementType(),
                                              result);
          return SmallVector<Value>{result};
        });
    auto next = makeParallel(
        rewriter, op.getLoc(), state.getShape(), rewriter.getI64Type(),
        inputsOf(1),
        [&](OpBuilder &b, Location loc,
            ValueRange words) -> FailureOr<SmallVector<Value>> {
          Bits s{b, loc};
          Value index = arith::IndexCastOp::create(
              b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, 0));
          SmallVector<Value> updated{words[0], s.add(words[1], s.c64(used))};
          if (words.size() == 3)
            updated.push_back(s.add(words[2], carry(s, updated[1], words[1])));
          return SmallVector<Value>{s.choose(index, updated)};
        });
    if (failed(bits) || failed(next))
      return failure();
    replaceWithStored(rewriter, op, {next->getResult(0), bits->getResult(0)});
    return success();
  }

  /// 1 if an unsigned sum is less than its summand.
  static Value carry(Bits &s, Value sum, Value summand) {
    Value less = arith::CmpIOp::create(s.b, s.loc, arith::CmpIPredicate::ult,
                                       sum, summand);
    return arith::ExtUIOp::create(s.b, s.loc, s.b.getI64Type(), less);
  }

  /// Two numbers come from one counter; they are neighbours along this
  /// dimension: the first even one, else the largest.
  static std::optional<int64_t> findSplitDim(ArrayRef<int64_t> shape) {
    std::optional<int64_t> best;
    for (auto [dim, size] : llvm::enumerate(shape)) {
      if (size % 2 == 0)
        return dim;
      if (!best || size > shape[*best])
        best = dim;
    }
    return best;
  }

  /// The position of an element in row-major order, or that of its pair if
  /// the size of `splitDim` is halved.
  static Value linearIndex(Bits &s, RankedTensorType type,
                           std::optional<int64_t> splitDim) {
    Value result = s.c64(0);
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      Value index =
          arith::IndexCastOp::create(s.b, s.loc, s.b.getI64Type(),
                                     linalg::IndexOp::create(s.b, s.loc, dim));
      uint64_t size = type.getDimSize(dim);
      if (splitDim == dim) {
        index = arith::ShRUIOp::create(s.b, s.loc, index, s.c64(1));
        size = llvm::divideCeil(size, 2);
      }
      result = s.add(s.mul(result, s.c64(size)), index);
    }
    return result;
  }

  static Value makeThreefry(Bits &s, ValueRange words, RankedTensorType type,
                            unsigned width, std::optional<int64_t> splitDim) {
    Value counter = s.add(words[1], linearIndex(s, type, splitDim));
    std::array<Value, 2> out = threefry(s, counter, words[0]);
    if (width == 64)
      return s.join(out[0], out[1]);
    if (!splitDim)
      return out[0];
    Value index = arith::IndexCastOp::create(
        s.b, s.loc, s.b.getI64Type(),
        linalg::IndexOp::create(s.b, s.loc, *splitDim));
    Value half = arith::AndIOp::create(s.b, s.loc, index, s.c64(1));
    return s.choose(half, out);
  }

  static Value makePhilox(Bits &s, ValueRange words, RankedTensorType type,
                          unsigned width) {
    Value position = linearIndex(s, type, std::nullopt);
    unsigned perBlock = width == 64 ? 2 : 4;
    Value block = arith::DivUIOp::create(s.b, s.loc, position, s.c64(perBlock));
    Value lane = arith::RemUIOp::create(s.b, s.loc, position, s.c64(perBlock));
    Value low = s.add(words[1], block);
    // XLA reads a state of two words backwards: the key is the upper half.
    Value high = words.size() == 3 ? words[2] : words[0];
    high = s.add(high, carry(s, low, words[1]));
    std::array<Value, 4> out = philox(
        s, {s.low(low), s.high(low), s.low(high), s.high(high)}, words[0]);
    if (width == 64)
      return s.choose(lane, {s.join(out[0], out[1]), s.join(out[2], out[3])});
    return s.choose(lane, out);
  }
};

} // namespace

void whale::populateRandomPatterns(RewritePatternSet &patterns) {
  patterns.add<RngBitGeneratorToLinalg>(patterns.getContext());
}
