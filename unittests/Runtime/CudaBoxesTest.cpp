//===- CudaBoxesTest.cpp - Copies and reductions of boxes on GPUs ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The texts of the kernels are interpreted on a test machine, and assembled
// where ptxas is.
//
//===----------------------------------------------------------------------===//

#include "CopyBox.h"
#include "TransportScenario.h"
#include "cuda/BoxKernels.h"
#include "cuda/test/Machine.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace whale::runtime::cuda {
namespace {

using runtime::test::Bytes;

/// A box of random extents, by dimension, inside buffers of random ones.
struct Case {
  Shape size, dstShape, dstStart, srcShape, srcStart;
};

Case randomCase(std::mt19937 &random, size_t rank) {
  auto upTo = [&](int64_t most) {
    return static_cast<int64_t>(random() % (most + 1));
  };
  Case result;
  for (size_t d = 0; d < rank; ++d) {
    int64_t size = 1 + upTo(rank < 4 ? 6 : 2);
    int64_t before = upTo(1), after = upTo(1);
    result.size.push_back(size);
    result.dstShape.push_back(size + before + after);
    result.dstStart.push_back(before);
    before = upTo(1), after = upTo(1);
    result.srcShape.push_back(size + before + after);
    result.srcStart.push_back(before);
  }
  return result;
}

class OnGpu {
public:
  OnGpu() : gpu(machine.libraries(), 0) {}
  ~OnGpu() {
    for (Address address : memory)
      gpu.driver.memFree.function(address);
    EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
  }
  void *copy(const Bytes &bytes) {
    Address address = gpu.allocate(static_cast<int64_t>(bytes.size()));
    memory.push_back(address);
    auto *data = reinterpret_cast<void *>(address);
    std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t *>(data));
    return data;
  }

  test::Machine machine{{}};
  Gpu gpu;
  std::vector<Address> memory;
};

/// Compares a reduction, or a copy of the last of some sources, with that of
/// the host. All sources but the last are dense.
void check(std::mt19937 &random, DType dtype,
           std::optional<Reduction> reduction, size_t count, size_t rank) {
  Case box = randomCase(random, rank);
  auto bytesOf = [&](const Shape &shape) {
    return runtime::test::randomElements(random, dtype, elementCount(shape));
  };
  Shape origin(rank, 0);
  OnGpu there;
  Bytes expected = bytesOf(box.dstShape);
  void *dst = there.copy(expected);
  std::vector<Bytes> terms;
  for (size_t i = 0; i < count; ++i)
    terms.push_back(bytesOf(i + 1 == count ? box.srcShape : box.size));
  std::vector<BoxSource> here, away;
  for (size_t i = 0; i < count; ++i) {
    bool isLast = i + 1 == count;
    BoxSource source = {terms[i].data(), isLast ? &box.srcShape : &box.size,
                        isLast ? &box.srcStart : &origin};
    here.push_back(source);
    source.data = there.copy(terms[i]);
    away.push_back(source);
  }
  if (count == 1)
    copyBox(expected.data(), box.dstShape, box.dstStart, here[0].data,
            box.srcShape, box.srcStart, box.size, byteSize(dtype));
  else
    reduceBox(dtype, *reduction, expected.data(), box.dstShape, box.dstStart,
              box.size, here);
  {
    BoxKernels kernels(there.gpu);
    kernels.prepare(dtype, count == 1 ? std::nullopt : reduction);
    kernels.run(dtype, reduction, dst, box.dstShape, box.dstStart, box.size,
                away, there.gpu.communication);
    there.gpu.synchronize(there.gpu.communication);
  }
  EXPECT_EQ(std::memcmp(dst, expected.data(), expected.size()), 0)
      << name(dtype) << " of rank " << rank << ", " << count << " sources"
      << (reduction ? ", reduction " + std::to_string(int(*reduction)) : "");
}

TEST(CudaBoxes, AreCopied) {
  std::mt19937 random(1);
  for (DType dtype : {DType::I1, DType::BF16, DType::F32, DType::C64,
                      DType::C128, DType::F8E5M2})
    for (size_t rank = 0; rank < 9; ++rank)
      check(random, dtype, std::nullopt, 1, rank);
}

/// Dimensions in any order, with gaps between them.
TEST(CudaBoxes, AreCopiedBetweenStrides) {
  std::mt19937 random(4);
  for (int round = 0; round < 60; ++round) {
    size_t rank = random() % 5;
    Shape size(rank);
    for (int64_t &extent : size)
      extent = random() % 5;
    auto stridesOf = [&](int64_t &end) {
      std::vector<size_t> order(rank);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, random);
      Shape strides(rank);
      end = 1;
      for (size_t d : order) {
        strides[d] = end;
        end *= std::max<int64_t>(size[d], 1) + random() % 2;
      }
      return strides;
    };
    int64_t bytes = 1 << random() % 5, dstEnd, srcEnd;
    Shape dstStrides = stridesOf(dstEnd), srcStrides = stridesOf(srcEnd);
    auto bytesOf = [&](int64_t count) {
      return runtime::test::randomElements(random, DType::UI8, count * bytes);
    };
    Bytes expected = bytesOf(dstEnd), from = bytesOf(srcEnd);
    OnGpu there;
    void *dst = there.copy(expected), *src = there.copy(from);
    copyStrided(expected.data(), dstStrides, from.data(), srcStrides, size,
                bytes);
    BoxKernels kernels(there.gpu);
    kernels.prepareCopy(bytes);
    kernels.copy(bytes, dst, dstStrides, src, srcStrides, size,
                 there.gpu.communication);
    there.gpu.synchronize(there.gpu.communication);
    EXPECT_EQ(std::memcmp(dst, expected.data(), expected.size()), 0);
  }
}

TEST(CudaBoxes, AreReducedWithTheHostsBits) {
  std::mt19937 random(2);
  int64_t kinds = 0;
  for (int type = 0; type <= static_cast<int>(DType::C128); ++type)
    for (int which = 0; which <= static_cast<int>(Reduction::Or); ++which) {
      auto dtype = static_cast<DType>(type);
      auto reduction = static_cast<Reduction>(which);
      if (!runtime::test::isAllowed(dtype, reduction) ||
          !BoxKernels::canReduce(dtype, reduction, 4))
        continue;
      ++kinds;
      for (size_t count : {0, 2, 4})
        check(random, dtype, reduction, count, random() % 4);
    }
  // Nine integer types, four of floats, sums of two of complex numbers.
  EXPECT_EQ(kinds, 9 * 6 + 4 * 4 + 2);
}

/// The values that have rules of their own.
template <typename T>
void checkSpecials(DType dtype) {
  constexpr T inf = std::numeric_limits<T>::infinity();
  const std::vector<T> values = {0, -T(0), 1, -1, inf, -inf};
  std::vector<T> first, second;
  for (T a : values)
    for (T b : values) {
      first.push_back(a);
      second.push_back(b);
    }
  auto count = static_cast<int64_t>(first.size());
  auto bytes = [](const std::vector<T> &from) {
    auto *data = reinterpret_cast<const uint8_t *>(from.data());
    return Bytes(data, data + from.size() * sizeof(T));
  };
  for (Reduction reduction : {Reduction::Min, Reduction::Max}) {
    std::vector<T> expected(first.size());
    const void *sources[] = {first.data(), second.data()};
    reduce(dtype, reduction, expected.data(), sources, count);
    OnGpu there;
    Shape shape = {count}, start = {0};
    BoxSource terms[] = {{there.copy(bytes(first)), &shape, &start},
                         {there.copy(bytes(second)), &shape, &start}};
    void *dst = there.copy(bytes(first));
    BoxKernels kernels(there.gpu);
    kernels.prepare(dtype, reduction);
    kernels.run(dtype, reduction, dst, shape, start, shape, terms,
                there.gpu.communication);
    there.gpu.synchronize(there.gpu.communication);
    EXPECT_EQ(std::memcmp(dst, expected.data(), bytes(expected).size()), 0);
  }
}

TEST(CudaBoxes, ZerosAndInfinitiesHaveTheHostsOrder) {
  checkSpecials<float>(DType::F32);
  checkSpecials<double>(DType::F64);
}

TEST(CudaBoxes, NaNsWin) {
  for (Reduction reduction : {Reduction::Sum, Reduction::Min, Reduction::Max}) {
    std::vector<uint16_t> values = {0x7FC0, 0x3F80};
    OnGpu there;
    Shape shape = {2}, start = {0};
    Bytes ahead = {0xC0, 0x7F, 0x80, 0x3F}, behind = {0x80, 0x3F, 0xC0, 0x7F};
    BoxSource terms[] = {{there.copy(ahead), &shape, &start},
                         {there.copy(behind), &shape, &start}};
    auto *dst = static_cast<uint16_t *>(there.copy(ahead));
    BoxKernels kernels(there.gpu);
    kernels.prepare(DType::BF16, reduction);
    kernels.run(DType::BF16, reduction, dst, shape, start, shape, terms,
                there.gpu.communication);
    there.gpu.synchronize(there.gpu.communication);
    for (int i : {0, 1})
      EXPECT_TRUE((dst[i] & 0x7F80) == 0x7F80 && (dst[i] & 0x7F)) << dst[i];
  }
}

TEST(CudaBoxes, AreAssembled) {
  if (std::system("ptxas --version > /dev/null 2>&1"))
    GTEST_SKIP() << "there is no ptxas";
  // One of each form of load, store and operation: each takes a while.
  namespace fs = std::filesystem;
  fs::path file = fs::path(testing::TempDir()) /
                  ("boxes." + std::to_string(getpid()) + ".ptx");
  for (const char *name :
       {"box_copy_1", "box_copy_8", "box_sum_bf16", "box_max_f16",
        "box_min_f64", "box_product_s64", "box_min_u8", "box_and_i1"}) {
    std::ofstream(file) << boxKernelText(name);
    std::string command =
        "ptxas -arch=sm_75 -o /dev/null '" + file.string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << name;
  }
  fs::remove(file);
}

} // namespace
} // namespace whale::runtime::cuda
