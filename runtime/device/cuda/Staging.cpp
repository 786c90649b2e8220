//===- Staging.cpp - Pinned memory between host and GPU -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Staging.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace whale::runtime::cuda {

/// Copied at a time, so that the host copies one part while the GPU copies
/// another.
static constexpr int64_t chunkBytes = 4 << 20;

PinnedPool::~PinnedPool() {
  for (auto &[bytes, block] : blocks) {
    gpu.driver.eventDestroy.function(block.event);
    gpu.driver.memFreeHost.function(block.data);
  }
}

PinnedPool::Block PinnedPool::take(int64_t bytes) {
  constexpr int64_t least = 4096;
  auto size = static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(std::max(bytes, least))));
  auto [begin, end] = blocks.equal_range(size);
  for (auto it = begin; it != end; ++it) {
    if (!gpu.isReached(it->second.event))
      continue;
    Block block = it->second;
    blocks.erase(it);
    return block;
  }
  Block block{gpu.allocatePinned(size), size, gpu.newEvent()};
  sum += size;
  return block;
}

void PinnedPool::give(Block block, Stream stream) {
  // Kept first: if the GPU has failed, it is freed at the end all the same.
  blocks.emplace(block.bytes, block);
  gpu.record(block.event, stream);
}

void upload(const Gpu &gpu, PinnedPool &pool, void *dst, const void *src,
            int64_t bytes, Stream stream) {
  for (int64_t at = 0; at < bytes; at += chunkBytes) {
    int64_t size = std::min(chunkBytes, bytes - at);
    PinnedPool::Block block = pool.take(size);
    std::memcpy(block.data, static_cast<const char *>(src) + at,
                static_cast<size_t>(size));
    gpu.copy(static_cast<char *>(dst) + at, block.data, size, stream);
    pool.give(block, stream);
  }
}

void download(const Gpu &gpu, PinnedPool &pool, void *dst, const void *src,
              int64_t bytes, Stream stream) {
  struct Part {
    PinnedPool::Block block;
    int64_t at, size;
  };
  std::optional<Part> last;
  auto take = [&] {
    if (!last)
      return;
    gpu.synchronize(last->block.event);
    std::memcpy(static_cast<char *>(dst) + last->at, last->block.data,
                static_cast<size_t>(last->size));
    pool.give(last->block, stream);
  };
  for (int64_t at = 0; at < bytes; at += chunkBytes) {
    Part next{{}, at, std::min(chunkBytes, bytes - at)};
    next.block = pool.take(next.size);
    gpu.copy(next.block.data, static_cast<const char *>(src) + at, next.size,
             stream);
    gpu.record(next.block.event, stream);
    take();
    last = next;
  }
  take();
}

} // namespace whale::runtime::cuda
