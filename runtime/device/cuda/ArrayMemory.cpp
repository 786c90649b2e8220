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
    : gpu(std::move(given)), pool(*gpu),
      lender(std::in_place, *gpu, Lender::Turn::First,
             [this] { return freeUnused(); }) {
  gpu->attach();
  gpu->call(gpu->driver.streamCreate, &stream, unsigned(kStreamNonBlocking));
}

/// All copies have given back their memory.
ArrayMemory::~ArrayMemory() {
  lender.reset();
  if (!gpu->tryAttach())
    return; // the process ends, or the GPU is lost
  freeUnused();
  gpu->driver.streamDestroy.function(stream);
}

std::shared_ptr<ArrayCopy> ArrayMemory::take(int64_t bytes, void *wanted) {
  void *memory = takeUnused(bytes, wanted);
  if (!memory) {
    // The thread may have read an array of another GPU.
    gpu->attach();
    // Nobody waits for the lock meanwhile: others may give memory back for it.
    memory = reinterpret_cast<void *>(gpu->allocate(bytes));
    std::lock_guard lock(mutex);
    sum += bytes;
  }
  return std::make_shared<ArrayCopy>(shared_from_this(), memory, bytes);
}

void *ArrayMemory::takeUnused(int64_t bytes, void *wanted) {
  std::lock_guard lock(mutex);
  std::unordered_set<void *> &free = unused[bytes];
  if (free.empty())
    return nullptr;
  auto found = free.find(wanted);
  if (found == free.end())
    found = free.begin();
  void *memory = *found;
  free.erase(found);
  return memory;
}

bool ArrayMemory::isFree(int64_t bytes, void *address) const {
  std::lock_guard lock(mutex);
  auto it = unused.find(bytes);
  return it != unused.end() && it->second.contains(address);
}

bool ArrayMemory::freeUnused() {
  std::lock_guard lock(mutex);
  if (!gpu->tryAttach())
    return false;
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

/// Without the lock, which a step takes for the memory of its results.
void ArrayMemory::download(void *host, const void *memory, int64_t bytes) {
  gpu->attach();
  cuda::download(*gpu, pool, host, memory, bytes, stream);
}

void ArrayCopy::setNewer() {
  std::lock_guard lock(mutex);
  isNewer = true;
}

void ArrayCopy::bring(void *host, int64_t, int64_t) {
  std::lock_guard lock(mutex);
  if (!isNewer)
    return;
  owner->download(host, memory, bytes);
  isNewer = false;
}

} // namespace whale::runtime::cuda
