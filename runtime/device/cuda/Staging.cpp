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
  if (!gpu.tryAttach())
    return; // the process ends, or the GPU is lost
  for (const Memory &memory : all) {
    gpu.driver.eventDestroy.function(memory.event);
    if (memory.data)
      gpu.driver.memFreeHost.function(memory.data);
  }
}

PinnedPool::Block PinnedPool::take(int64_t bytes, Stream stream) {
  constexpr int64_t least = 4096;
  auto size = static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(std::max(bytes, least))));
  std::lock_guard lock(mutex);
  auto [begin, end] = unused.equal_range(size);
  for (auto it = begin; it != end; ++it) {
    if (!gpu.isReached(it->second->event))
      continue;
    Block block(it->second, {this, stream});
    unused.erase(it);
    return block;
  }
  EventHandle event = gpu.newEvent();
  Memory &memory = all.emplace_back(Memory{nullptr, size, event});
  memory.data = gpu.allocatePinned(size);
  return Block(&memory, {this, stream});
}

void PinnedPool::give(const Memory &memory, Stream stream) {
  std::lock_guard lock(mutex);
  unused.emplace(memory.bytes, &memory);
  // Where the GPU has failed, whoever takes it next is told.
  gpu.driver.eventRecord.function(memory.event, stream);
}

void upload(const Gpu &gpu, PinnedPool &pool, void *dst, const void *src,
            int64_t bytes, Stream stream) {
  for (int64_t at = 0; at < bytes; at += chunkBytes) {
    int64_t size = std::min(chunkBytes, bytes - at);
    PinnedPool::Block block = pool.take(size, stream);
    std::memcpy(block->data, static_cast<const char *>(src) + at,
                static_cast<size_t>(size));
    gpu.copy(static_cast<char *>(dst) + at, block->data, size, stream);
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
    gpu.call(gpu.driver.eventSynchronize, last->block->event);
    std::memcpy(static_cast<char *>(dst) + last->at, last->block->data,
                static_cast<size_t>(last->size));
  };
  for (int64_t at = 0; at < bytes; at += chunkBytes) {
    int64_t size = std::min(chunkBytes, bytes - at);
    Part next{pool.take(size, stream), at, size};
    gpu.copy(next.block->data, static_cast<const char *>(src) + at, size,
             stream);
    gpu.record(next.block->event, stream);
    take();
    last = std::move(next);
  }
  take();
}

} // namespace whale::runtime::cuda
