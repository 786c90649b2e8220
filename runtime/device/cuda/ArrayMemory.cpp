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
  std::unordered_set<void *> &free = unused[bytes];
  void *memory;
  if (free.empty()) {
    // The thread may have read an array of another GPU.
    gpu->attach();
    memory = allocate(bytes);
    sum += bytes;
  } else {
    auto found = free.find(wanted);
    if (found == free.end())
      found = free.begin();
    memory = *found;
    free.erase(found);
  }
  return std::make_shared<ArrayCopy>(shared_from_this(), memory, bytes);
}

bool ArrayMemory::isFree(int64_t bytes, void *address) const {
  std::lock_guard lock(mutex);
  auto it = unused.find(bytes);
  return it != unused.end() && it->second.contains(address);
}

/// Where memory is short, what lies idle is given back first.
void *ArrayMemory::allocate(int64_t bytes) {
  try {
    return reinterpret_cast<void *>(gpu->allocate(bytes));
  } catch (const Error &) {
    if (!freeUnused())
      throw;
  }
  return reinterpret_cast<void *>(gpu->allocate(bytes));
}

bool ArrayMemory::freeUnused() {
  bool hasFreed = false;
  for (auto &[bytes, free] : unused) {
    for (void *memory : free)
      gpu->driver.memFree.function(addressOf(memory));
    sum -= bytes * static_cast<int64_t>(free.size());
    hasFreed |= !free.empty();
    free.clear();
  }
  return hasFreed;
}

int64_t ArrayMemory::bytes() const {
  std::lock_guard lock(mutex);
  return sum;
}

void ArrayMemory::give(int64_t bytes, void *memory) {
  std::lock_guard lock(mutex);
  unused[bytes].insert(memory);
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
