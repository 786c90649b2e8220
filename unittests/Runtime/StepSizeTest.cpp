//===- StepSizeTest.cpp - How much a step does ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/StepSize.h"

#include "device/cpu/Work.h"

#include <gtest/gtest.h>

using namespace whale::runtime;

namespace {

Matmul product(int64_t m, int64_t k, int64_t n, int64_t batch = 1) {
  Matmul op;
  op.lhsType = op.rhsType = op.outType = DType::F32;
  op.m = m;
  op.n = n;
  op.k = k;
  op.batch = {{batch, m * k, k * n, m * n}};
  return op;
}

Instruction kernel(double work) {
  Instruction result;
  result.operation = KernelLaunch{nullptr, {}, 1, work};
  return result;
}

Instruction loop(std::vector<Instruction> body, std::optional<int64_t> trips) {
  Instruction result;
  result.operation = While{{}, 0, std::move(body), trips};
  return result;
}

StepSize sizeOf(std::vector<Instruction> instructions) {
  BoundClass rankClass;
  rankClass.instructions = std::move(instructions);
  return findSize(rankClass);
}

TEST(Work, ThreadsAreThoseThatPay) {
  auto threads = [](const Matmul &op, int64_t most) {
    return threadsFor(workOf(op), most);
  };
  // It takes 65 us on one thread, and 308 on two that wait for one another.
  EXPECT_EQ(threads(product(384, 54, 12), 2), 1);
  EXPECT_EQ(threads(product(32, 64, 128), 64), 1);
  // 65 us, and 45 to 190 on two.
  EXPECT_EQ(threads(product(64, 256, 256), 2), 1);
  EXPECT_EQ(threads(product(512, 512, 512), 2), 2);
  EXPECT_EQ(threads(product(512, 512, 512), 1), 1);
  EXPECT_EQ(threads(product(4096, 4096, 4096), 64), 64);
  // Of few rows what counts is the matrix that is read.
  EXPECT_EQ(threads(product(1, 64, 64), 2), 1);
  EXPECT_EQ(threads(product(1, 2048, 2048), 2), 2);
  EXPECT_GT(workOf(product(8, 8, 8, 100)), workOf(product(8, 8, 8)));
  EXPECT_EQ(threadsFor(0, 8), 1);
}

TEST(Work, ConvolutionsCountTheirProducts) {
  Convolution op;
  op.lhsType = op.rhsType = op.outType = DType::F32;
  op.lhsShape = {48, 6, 6, 2};
  op.rhsShape = {3, 3, 2, 48};
  op.outShape = {48, 6, 6, 48};
  op.lhsDims = op.outDims = {0, 3, {1, 2}};
  op.rhsDims = {2, 3, {0, 1}};
  op.windows.resize(2);
  double small = workOf(op);
  op.rhsShape[2] = op.lhsShape[3] = 64;
  EXPECT_GT(workOf(op), 16 * small);
}

TEST(Work, TransformsCountTheirPasses) {
  whale::format::Call fft{"fft", {0}, {1}}, cholesky{"potrf", {0}, {1}};
  auto threads = [](const whale::format::Call &given, int64_t bytes) {
    Call call;
    call.bytes = {bytes, bytes};
    call.given = &given;
    return threadsFor(workOf(call), 2);
  };
  // It takes 30 us on one thread, for which no other one is woken.
  EXPECT_EQ(threads(fft, 8 * 32 * 32 * 8), 1);
  EXPECT_EQ(threads(fft, 64 * 64 * 64 * 8), 2);
  EXPECT_EQ(threads(cholesky, 8 * 32 * 32 * 8), 2);
}

TEST(StepSize, FewKernelsAreBriefAndSerial) {
  StepSize size = sizeOf({kernel(100), kernel(10000)});
  EXPECT_TRUE(size.isBrief);
  EXPECT_TRUE(size.isSerial);
}

TEST(StepSize, OneThatPaysForThreadsIsNotSerial) {
  Matmul op = product(512, 512, 64);
  Instruction multiply;
  multiply.operation = &op;
  StepSize size = sizeOf({kernel(100), loop({multiply}, 3)});
  EXPECT_TRUE(size.isBrief);
  EXPECT_FALSE(size.isSerial);
  // A copy takes none, whatever its size.
  Instruction copy;
  copy.operation = Copy{0, 1, 1 << 22};
  EXPECT_TRUE(sizeOf({copy}).isSerial);
}

TEST(StepSize, LoopsCountAsOftenAsTheyRun) {
  std::vector<Instruction> body = {kernel(1e5)};
  EXPECT_TRUE(sizeOf({loop(body, 100)}).isBrief);
  EXPECT_FALSE(sizeOf({loop(body, 10000)}).isBrief);
  EXPECT_FALSE(sizeOf({loop({kernel(1)}, 1 << 20)}).isBrief);
  EXPECT_TRUE(sizeOf({loop(body, 0)}).isBrief);
  EXPECT_TRUE(sizeOf({loop(body, 100)}).isBounded);
  // Nobody knows how many turns it has.
  StepSize open = sizeOf({loop({loop({kernel(1)}, std::nullopt)}, 3)});
  EXPECT_TRUE(open.isBrief);
  EXPECT_FALSE(open.isBounded);
  EXPECT_FALSE(sizeOf({loop({kernel(1e9)}, std::nullopt)}).isBrief);
  EXPECT_TRUE(sizeOf({loop(body, 10000)}).isSerial);
}

TEST(StepSize, CasesAndFunctionsCount) {
  Instruction choice;
  choice.operation = Case{0, DType::I32, {{kernel(10)}, {kernel(1e9)}}};
  EXPECT_FALSE(sizeOf({choice}).isBrief);
  BoundFunction function;
  function.instructions = {kernel(1e9)};
  Instruction run;
  run.operation = whale::runtime::Run{&function, nullptr};
  EXPECT_FALSE(sizeOf({run}).isBrief);
}

} // namespace
