//===- Peaks.cpp - How fast a CPU device can be -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Peaks.h"

#include "device/cpu/Parallel.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace whale::runtime {

/// The shortest of a few runs: the others were disturbed.
static double shortest(const std::function<void()> &run) {
  using Clock = std::chrono::steady_clock;
  double least = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    auto begin = Clock::now();
    run();
    double seconds =
        std::chrono::duration<double>(Clock::now() - begin).count();
    least = attempt == 0 ? seconds : std::min(least, seconds);
  }
  return std::max(least, 1e-9);
}

double measureBandwidth(int64_t threads) {
  constexpr int64_t size = 16 << 20;
  std::shared_ptr<Buffer> from = Buffer::allocate(size);
  std::shared_ptr<Buffer> to = Buffer::allocate(size);
  auto *src = static_cast<char *>(from->data.get());
  auto *dst = static_cast<char *>(to->data.get());
  std::memset(src, 0, size);
  return 2.0 * size / shortest([&] {
           parallelFor(size, threads, [&](int64_t begin, int64_t end) {
             std::memcpy(dst + begin, src + begin, end - begin);
           });
         });
}

double measureProducts(DType dtype, CpuContext &context) {
  constexpr int64_t side = 768;
  Matmul product = {.lhs = 0,
                    .rhs = 0,
                    .out = 0,
                    .lhsType = dtype,
                    .rhsType = dtype,
                    .outType = dtype,
                    .batch = {},
                    .m = side,
                    .mLhs = side,
                    .mOut = side,
                    .n = side,
                    .nRhs = 1,
                    .nOut = 1,
                    .k = side,
                    .kLhs = 1,
                    .kRhs = side};
  int64_t bytes = side * side * byteSize(dtype);
  std::shared_ptr<Buffer> operand = Buffer::allocate(bytes);
  std::shared_ptr<Buffer> result = Buffer::allocate(bytes);
  std::memset(operand->data.get(), 0, bytes);
  PreparedMatmul prepared(product, context);
  return 2.0 * side * side * side / shortest([&] {
           prepared.run(context, operand->data.get(), operand->data.get(),
                        result->data.get());
         });
}

} // namespace whale::runtime
