//===- LibrariesTest.cpp - What the compiler is told of libraries ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Libraries.h"

#include "device/cpu/Scratch.h"

#include <gtest/gtest.h>

namespace whale::runtime {
namespace {

TEST(Libraries, TakeTheCallsOfPrograms) {
  const format::Libraries &libraries = getLibraries();
  LibraryTensor real{DType::F32, {2, 8}}, half{DType::C64, {2, 5}};
  std::string config = R"({"type": "RFFT", "length": [8]})";
  EXPECT_NO_THROW(libraries.checkCall("fft", {real}, {half}, config));
  EXPECT_THROW(libraries.checkCall("fft", {real}, {real}, config), Error);
  EXPECT_THROW(libraries.checkCall("ttf", {real}, {half}, config), Error);
  // Its kernel may be anything.
  EXPECT_NO_THROW(libraries.checkCall(
      "sort", {real}, {real}, R"({"dimension": 1, "comparator": "less"})"));
}

TEST(Libraries, SayWhatGpusCompute) {
  const format::Libraries &libraries = getLibraries();
  LibraryTensor real{DType::F32, {2, 8}}, half{DType::C64, {2, 5}};
  EXPECT_GT(libraries.gpuWorkspace("fft", {real}, {half}), 0);
  EXPECT_EQ(libraries.gpuWorkspace("fused_attention", {}, {}), 0);
  EXPECT_EQ(libraries.gpuWorkspace("sort", {real}, {real}), std::nullopt);
  EXPECT_GT(libraries.gpuProductWorkspace(90),
            libraries.gpuProductWorkspace(80));
}

TEST(Libraries, CountScratchForTheThreadsOfARank) {
  EXPECT_TRUE(getLibraries().findScratch({}, 2).empty());
  // Rows of strided operands are packed.
  format::Matmul op;
  op.lhsType = op.rhsType = op.outType = DType::F32;
  op.m = int64_t(1) << 32;
  op.n = 3;
  op.k = op.mLhs = 16;
  op.kLhs = op.nRhs = op.nOut = 1;
  op.kRhs = op.mOut = 3;
  format::Product product = op;
  std::vector<ScratchSizes> sizes =
      getLibraries().findScratch({&product, 1}, 2);
  ASSERT_EQ(sizes.size(), 1u);
  EXPECT_GT(sizes[0].sum(), 0);
  EXPECT_EQ(sizes[0], findScratch({&product, 1}, threadsOfRanks(2))[0]);
}

} // namespace
} // namespace whale::runtime
