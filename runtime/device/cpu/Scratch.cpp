//===- Scratch.cpp - Temporary memory of products ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Scratch.h"

#include "device/cpu/Operations.h"
#include "device/cpu/Parallel.h"
#include "whale/System/Processors.h"

#include <algorithm>
#include <thread>

namespace whale::runtime {

std::vector<ScratchSizes> findScratch(std::span<const format::Product> products,
                                      int64_t threads) {
  std::vector<ScratchSizes> sizes(products.size());
  if (products.empty())
    return sizes;
  // Operations are prepared for the threads of the one that prepares them.
  std::thread([&] {
    setThreadCount(threads);
    CpuContext context(threads);
    for (size_t i = 0; i < products.size(); ++i) {
      if (auto *matmul = std::get_if<Matmul>(&products[i]))
        sizes[i] = PreparedMatmul(*matmul, context).getScratch();
      else
        sizes[i] =
            PreparedConvolution(std::get<Convolution>(products[i]), context)
                .getScratch();
    }
  }).join();
  return sizes;
}

int64_t threadsOfRanks(int64_t ranks) {
  return std::max<int64_t>(1, system::usableProcessors() / ranks);
}

} // namespace whale::runtime
