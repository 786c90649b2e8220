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

#include <deque>
#include <map>
#include <memory>
#include <mutex>

namespace whale::runtime::cuda {

/// Pinned memory that is used again when the GPU is done with it. For any
/// threads.
class PinnedPool {
  struct Memory {
    void *data = nullptr;
    int64_t bytes = 0;
    /// Reached when the GPU has used what it was asked to use.
    EventHandle event = nullptr;
  };
  struct GiveBack {
    PinnedPool *pool = nullptr;
    Stream stream = nullptr;
    void operator()(const Memory *memory) const { pool->give(*memory, stream); }
  };

public:
  using Block = std::unique_ptr<const Memory, GiveBack>;

  explicit PinnedPool(const Gpu &gpu) : gpu(gpu) {}
  ~PinnedPool();
  PinnedPool(const PinnedPool &) = delete;
  PinnedPool &operator=(const PinnedPool &) = delete;

  /// At least so many bytes, which the GPU does not use. When the block goes,
  /// nobody but what is on the stream by then uses them.
  Block take(int64_t bytes, Stream stream);

private:
  void give(const Memory &memory, Stream stream);

  const Gpu &gpu;
  std::mutex mutex;
  std::deque<Memory> all;
  /// By size, a power of two.
  std::multimap<int64_t, const Memory *> unused;
};

/// Copies pageable memory to the GPU: returns when `src` may change.
void upload(const Gpu &gpu, PinnedPool &pool, void *dst, const void *src,
            int64_t bytes, Stream stream);
/// Copies to pageable memory: returns when all is there. Nothing on the stream
/// waits for other ranks, which would have to be watched.
void download(const Gpu &gpu, PinnedPool &pool, void *dst, const void *src,
              int64_t bytes, Stream stream);

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_STAGING_H
