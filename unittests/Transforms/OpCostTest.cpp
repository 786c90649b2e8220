//===- OpCostTest.cpp - FLOPs and bytes of operations ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The FLOPs, bytes and trip counts that are estimated from types and
// attributes. Each case is a function of StableHLO as text, whose last
// operation is measured; numbers are computed by hand.
//
// Here are also the limits: sums of FLOPs that do not fit into 64 bits, seconds
// of loops of 2^62 rounds that are nested 18 deep, and counters that leave
// their type. A wrong number does not make a program wrong, but shares, stages
// and schedules are chosen by it; a wrong trip count also decides how a loop is
// divided and run.
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/OpCost.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Step/CostModel.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace whale;

namespace {

class OpCostTest : public testing::Test {
protected:
  OpCostTest() {
    context.loadDialect<func::FuncDialect, stablehlo::StablehloDialect>();
  }

  /// The operation before the terminator of the only function of `text`.
  Operation *parse(llvm::StringRef text) {
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module) {
      ADD_FAILURE() << "doesn't parse: " << text.str();
      return nullptr;
    }
    auto function = *module->getOps<func::FuncOp>().begin();
    return &*std::next(function.front().rbegin());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

// Loops of 2^62 rounds in one another are computed more often than a number
// says.
TEST_F(OpCostTest, SecondsOfNestedLoopsAreFinite) {
  constexpr int kDepth = 18;
  std::string text = R"(
    func.func @f(%x: tensor<4xf32>, %zero: tensor<i64>) {
      %one = stablehlo.constant dense<1> : tensor<i64>
      %start = stablehlo.constant dense<0> : tensor<i64>
      %many = stablehlo.constant dense<4611686018427387904> : tensor<i64>)";
  for (int i = 0; i < kDepth; ++i)
    text += llvm::formatv(R"(
      %r{0} = stablehlo.while(%i{0} = %start) : tensor<i64>
      cond {{
        %c{0} = stablehlo.compare LT, %i{0}, %many
            : (tensor<i64>, tensor<i64>) -> tensor<i1>
        stablehlo.return %c{0} : tensor<i1>
      } do {{)",
                          i)
                .str();
  text += "%y = stablehlo.tanh %x : tensor<4xf32>\n";
  for (int i = kDepth; i-- > 0;)
    text += llvm::formatv(R"(
        %n{0} = stablehlo.add %i{0}, %one : tensor<i64>
        stablehlo.return %n{0} : tensor<i64>
      })",
                          i)
                .str();
  Operation *op = parse(text + "return }");
  Cluster cluster = Cluster::ofRanks(1);
  double seconds = opSeconds(op, *createRooflineModel(cluster), 0);
  EXPECT_GT(seconds, 1e50);
  EXPECT_TRUE(std::isfinite(seconds * seconds));
}

// A counter that has no next value within its type starts anew.
TEST_F(OpCostTest, TripsOfLoopsThatCountWithinTheirType) {
  auto trips = [&](const char *type, const char *start, const char *direction,
                   const char *limit, const char *step) {
    Operation *loop = parse(llvm::formatv(
                                R"(
    func.func @f() {{
      %start = stablehlo.constant dense<{1}> : tensor<{0}>
      %limit = stablehlo.constant dense<{3}> : tensor<{0}>
      %step = stablehlo.constant dense<{4}> : tensor<{0}>
      %r = stablehlo.while(%i = %start) : tensor<{0}>
      cond {{
        %c = stablehlo.compare {2}, %i, %limit
            : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {{
        %n = stablehlo.add %i, %step : tensor<{0}>
        stablehlo.return %n : tensor<{0}>
      }
      return
    })",
                                type, start, direction, limit, step)
                                .str());
    return tripCount(cast<stablehlo::WhileOp>(loop));
  };
  EXPECT_EQ(trips("i32", "0", "LT", "10", "3"), 4);
  EXPECT_EQ(trips("i32", "10", "LT", "0", "1"), 0);
  EXPECT_EQ(trips("i8", "-128", "LT", "127", "1"), 255);
  EXPECT_EQ(trips("i8", "0", "LT", "127", "100"), std::nullopt);
  EXPECT_EQ(trips("i8", "0", "LE", "127", "1"), std::nullopt);
  EXPECT_EQ(trips("ui8", "0", "LT", "200", "100"), 2);
  EXPECT_EQ(trips("ui8", "0", "LT", "255", "100"), std::nullopt);
  EXPECT_EQ(
      trips("i64", "-9223372036854775808", "LT", "9223372036854775807", "1"),
      std::nullopt);
  EXPECT_EQ(trips("ui64", "0", "LT", "18446744073709551615", "1"),
            std::nullopt);
}

TEST_F(OpCostTest, Products) {
  Operation *op = parse(R"(
    func.func @f(%a: tensor<2x3x5xf32>, %b: tensor<2x5x7xf32>) {
      %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0],
          contracting_dims = [2] x [1]
          : (tensor<2x3x5xf32>, tensor<2x5x7xf32>) -> tensor<2x3x7xf32>
      return
    })");
  EXPECT_EQ(opFlops(op), 2 * 2 * 3 * 7 * 5);
  EXPECT_EQ(opBytes(op), 4 * (30 + 70 + 42));
}

TEST_F(OpCostTest, Convolutions) {
  Operation *op = parse(R"(
    func.func @f(%x: tensor<2x8x8x4xf32>, %k: tensor<3x3x4x6xf32>) {
      %0 = stablehlo.convolution(%x, %k)
          dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
          window = {stride = [1, 1], pad = [[1, 1], [1, 1]],
                    lhs_dilate = [1, 1], rhs_dilate = [1, 1],
                    reverse = [false, false]}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x8x8x6xf32>
      return
    })");
  EXPECT_EQ(opFlops(op), 2 * (2 * 8 * 8 * 6) * (3 * 3 * 4));
}

TEST_F(OpCostTest, DilatedInputsAreMostlyZeros) {
  // The input's gradient of a convolution with stride 2.
  Operation *op = parse(R"(
    func.func @f(%x: tensor<2x4x4x6xf32>, %k: tensor<3x3x6x4xf32>) {
      %0 = stablehlo.convolution(%x, %k)
          dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
          window = {stride = [1, 1], pad = [[1, 2], [1, 2]],
                    lhs_dilate = [2, 2], rhs_dilate = [1, 1],
                    reverse = [false, false]}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<2x4x4x6xf32>, tensor<3x3x6x4xf32>) -> tensor<2x8x8x4xf32>
      return
    })");
  EXPECT_EQ(opFlops(op), 2 * (2 * 8 * 8 * 4) * (3 * 3 * 6) / 4);
}

TEST_F(OpCostTest, ElementwiseAndMovement) {
  Operation *op = parse(R"(
    func.func @f(%x: tensor<4x8xbf16>) {
      %0 = stablehlo.tanh %x : tensor<4x8xbf16>
      return
    })");
  EXPECT_EQ(opFlops(op), 32);
  EXPECT_EQ(opBytes(op), 2 * 64);
  op = parse(R"(
    func.func @f(%x: tensor<4x8xbf16>) {
      %0 = stablehlo.transpose %x, dims = [1, 0]
          : (tensor<4x8xbf16>) -> tensor<8x4xbf16>
      return
    })");
  EXPECT_EQ(opFlops(op), 0);
  EXPECT_EQ(opBytes(op), 2 * 64);
  op = parse(R"(
    func.func @f(%x: tensor<4x8xbf16>) {
      %0 = stablehlo.reshape %x : (tensor<4x8xbf16>) -> tensor<32xbf16>
      return
    })");
  EXPECT_EQ(opBytes(op), 0);
}

TEST_F(OpCostTest, PartsOfTensors) {
  Operation *op = parse(R"(
    func.func @f(%t: tensor<1000x16xf32>, %i: tensor<8x1xi32>) {
      %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<
          offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
          index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>}>
          : (tensor<1000x16xf32>, tensor<8x1xi32>) -> tensor<8x16xf32>
      return
    })");
  EXPECT_EQ(opBytes(op), 4 * (8 + 2 * 8 * 16));
  auto update = [&](const char *from) {
    return parse(llvm::formatv(R"(
    func.func @f(%t: tensor<1000x16xf32>, %u: tensor<8x16xf32>,
                 %i: tensor<i32>) {{
      %zero = stablehlo.constant dense<0.0> : tensor<1000x16xf32>
      %0 = stablehlo.dynamic_update_slice {0}, %u, %i, %i
          : (tensor<1000x16xf32>, tensor<8x16xf32>, tensor<i32>, tensor<i32>)
          -> tensor<1000x16xf32>
      return
    })",
                               from)
                     .str());
  };
  int64_t read = 4 * (8 * 16 + 2);
  EXPECT_EQ(opBytes(update("%t")), 3 * read);
  // The zeros are written before.
  EXPECT_EQ(opBytes(update("%zero")), 3 * read + 4 * 1000 * 16);
}

TEST_F(OpCostTest, Reductions) {
  Operation *op = parse(R"(
    func.func @f(%x: tensor<4x8xf32>, %c: tensor<f32>) {
      %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add
          across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>)
          -> tensor<4xf32>
      return
    })");
  EXPECT_EQ(opFlops(op), 32);
  // A running sum, as JAX writes cumsum.
  op = parse(R"(
    func.func @f(%x: tensor<16xf32>, %c: tensor<f32>) {
      %0 = "stablehlo.reduce_window"(%x, %c) <{padding = dense<[[15, 0]]>
          : tensor<1x2xi64>, window_dimensions = array<i64: 16>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
      return
    })");
  EXPECT_EQ(opFlops(op), 16);
}

std::string loop(llvm::StringRef direction, llvm::StringRef limit,
                 llvm::StringRef step) {
  return R"(
    func.func @f(%x: tensor<8xf32>, %m: tensor<i32>) {
      %c = stablehlo.constant dense<2> : tensor<i32>
      %n = stablehlo.constant dense<11> : tensor<i32>
      %0:3 = stablehlo.while(%a = %x, %i = %c, %k = %n)
          : tensor<8xf32>, tensor<i32>, tensor<i32>
      cond {
        %l = stablehlo.constant dense<12> : tensor<i32>
        %1 = stablehlo.compare )" +
         (direction + ", %i, " + limit + R"(, SIGNED
            : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.tanh %a : tensor<8xf32>
        %s = stablehlo.constant dense<)" +
          step + R"(> : tensor<i32>
        %2 = stablehlo.add %i, %s : tensor<i32>
        stablehlo.return %1, %2, %k : tensor<8xf32>, tensor<i32>, tensor<i32>
      }
      return
    })")
             .str();
}

TEST_F(OpCostTest, Loops) {
  auto trips = [&](llvm::StringRef direction, llvm::StringRef limit,
                   llvm::StringRef step) {
    Operation *op = parse(loop(direction, limit, step));
    return tripCount(cast<stablehlo::WhileOp>(op));
  };
  EXPECT_EQ(trips("LT", "%l", "1"), 10);
  EXPECT_EQ(trips("LE", "%l", "1"), 11);
  EXPECT_EQ(trips("LT", "%l", "3"), 4);
  // The limit is carried and never changed.
  EXPECT_EQ(trips("LT", "%k", "1"), 9);
  EXPECT_EQ(trips("LT", "%m", "1"), std::nullopt);
  EXPECT_EQ(trips("NE", "%l", "1"), std::nullopt);
  EXPECT_EQ(trips("LT", "%l", "-1"), std::nullopt);

  Operation *op = parse(loop("LT", "%l", "1"));
  EXPECT_EQ(opFlops(op), 10 * (1 + 8 + 1));
  op = parse(loop("LT", "%m", "1"));
  EXPECT_EQ(opFlops(op), 1 + 8 + 1);
}

TEST_F(OpCostTest, BranchesCountTheMostExpensive) {
  Operation *op = parse(R"(
    func.func @f(%x: tensor<8xf32>, %i: tensor<i32>) {
      %0 = "stablehlo.case"(%i) ({
        %1 = stablehlo.tanh %x : tensor<8xf32>
        %2 = stablehlo.sine %1 : tensor<8xf32>
        stablehlo.return %2 : tensor<8xf32>
      }, {
        stablehlo.return %x : tensor<8xf32>
      }) : (tensor<i32>) -> tensor<8xf32>
      return
    })");
  EXPECT_EQ(opFlops(op), 16);
}

TEST_F(OpCostTest, SumsSaturate) {
  int64_t largest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(addCosts(largest, 1), largest);
  EXPECT_EQ(addCosts(2, 3), 5);
  Operation *op = parse(R"(
    func.func @f(%x: tensor<4000000000x4000000000xf32>) {
      %0 = stablehlo.tanh %x : tensor<4000000000x4000000000xf32>
      return
    })");
  EXPECT_EQ(opFlops(op), largest);
}

TEST_F(OpCostTest, Bytes) {
  auto bytes = [&](llvm::StringRef type) {
    return getTensorBytes(mlir::parseType(type, &context));
  };
  EXPECT_EQ(bytes("tensor<3xi1>"), 3);
  EXPECT_EQ(bytes("tensor<3xi4>"), 3);
  EXPECT_EQ(bytes("tensor<f64>"), 8);
  EXPECT_EQ(bytes("tensor<2x0xf32>"), 0);
  EXPECT_EQ(bytes("tensor<2xcomplex<f32>>"), 16);
  EXPECT_EQ(bytes("tensor<?xf32>"), 0);
}

} // namespace
