//===- ArrayMemory.cpp - Arrays that stay on a GPU ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/ArrayMemory.h"

namespace whale::runtime::cuda {

ArrayMemory::ArrayMemory(std::shared_ptr<const Gpu> given)
    : gpu(std::move(given)), pool(*gpu) {
  gpu->attach();
  gpu->call(gpu->driver.streamCreate, &stream, unsigned(kStreamNonBlocking));
}

/// All copies have given back their memory.
ArrayMemory::~ArrayMemory() {
  if (!gpu->tryAttach())
    return; // the process ends, or the GPU is lost
  freeUnused();
  gpu->driver.streamDestroy.function(stream);
}

std::shared_ptr<ArrayCopy> ArrayMemory::take(int64_t bytes, void *wanted) {
  std::lock_guard lock(mutex);
  auto [begin, end] = unused.equal_range(bytes);
  auto found = begin;
  for (auto it = begin; it != end; ++it)
    if (it->second == wanted)
      found = it;
  void *memory;
  if (found == end) {
    // The thread may have read an array of another GPU.
    gpu->attach();
    memory = allocate(bytes);
    sum += bytes;
  } else {
    memory = found->second;
    unused.erase(found);
  }
  return std::make_shared<ArrayCopy>(shared_from_this(), memory, bytes);
}

/// Where memory is short, what lies idle is given back first.
void *ArrayMemory::allocate(int64_t bytes) {
  try {
    return reinterpret_cast<void *>(gpu->allocate(bytes));
  } catch (const Error &) {
    if (unused.empty())
      throw;
  }
  freeUnused();
  return reinterpret_cast<void *>(gpu->allocate(bytes));
}

void ArrayMemory::freeUnused() {
  for (auto &[bytes, memory] : unused) {
    gpu->driver.memFree.function(addressOf(memory));
    sum -= bytes;
  }
  unused.clear();
}

int64_t ArrayMemory::bytes() const {
  std::lock_guard lock(mutex);
  return sum;
}

void ArrayMemory::give(int64_t bytes, void *memory) {
  std::lock_guard lock(mutex);
  unused.emplace(bytes, memory);
}

void ArrayMemory::download(void *host, const void *memory, int64_t bytes) {
  std::lock_guard lock(mutex);
  gpu->attach();
  cuda::download(*gpu, pool, host, memory, bytes, stream);
}

void ArrayCopy::setNewer() {
  std::lock_guard lock(mutex);
  isNewer = true;
}

void ArrayCopy::bring(void *host) {
  std::lock_guard lock(mutex);
  if (!isNewer)
    return;
  owner->download(host, memory, bytes);
  isNewer = false;
}

} // namespace whale::runtime::cuda
