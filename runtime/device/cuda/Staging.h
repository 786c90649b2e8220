//===- Staging.h - Pinned memory between host and GPU -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_STAGING_H
#define WHALE_RUNTIME_DEVICE_CUDA_STAGING_H

#include "cuda/Gpu.h"

#include <map>

namespace whale::runtime::cuda {

/// Pinned blocks that are used again when the GPU is done with them.
class PinnedPool {
public:
  struct Block {
    void *data = nullptr;
    int64_t bytes = 0;
    /// Reached when the GPU has used what it was asked to use.
    EventHandle event = nullptr;
  };

  explicit PinnedPool(const Gpu &gpu) : gpu(gpu) {}
  ~PinnedPool();
  PinnedPool(const PinnedPool &) = delete;
  PinnedPool &operator=(const PinnedPool &) = delete;

  /// At least so many bytes, which the GPU does not use.
  Block take(int64_t bytes);
  /// Nobody but what is on the stream by now uses it.
  void give(Block block, Stream stream);
  int64_t bytes() const { return sum; }

private:
  const Gpu &gpu;
  /// By size, a power of two.
  std::multimap<int64_t, Block> blocks;
  int64_t sum = 0;
};

/// Copies pageable memory to the GPU: returns when `src` may change.
void upload(const Gpu &gpu, PinnedPool &pool, void *dst, const void *src,
            int64_t bytes, Stream stream);
/// Copies to pageable memory: returns when all is there.
void download(const Gpu &gpu, PinnedPool &pool, void *dst, const void *src,
              int64_t bytes, Stream stream);

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_STAGING_H
