//===- LargeMemory.cpp - Memory of large buffers --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Large buffers are mapped, not taken of the C library, which keeps what is
// freed in pieces: a process grew by up to twice what is planned. But a page
// that is touched first costs more than computing what is written to it, and
// the batch and the results of each step are new buffers. So what is given back
// is kept for the next buffer of its size, within two limits: the process never
// holds more than it had in use at once, and never keeps more than it uses, but
// for a little: a program whose arguments are the caller's uses nothing between
// its steps.
//
//===----------------------------------------------------------------------===//

#include "LargeMemory.h"

#include <algorithm>
#include <cstdint>
#include <sys/mman.h>

namespace whale::runtime {

/// What is kept however little is used; as much as glibc keeps of freed memory.
static constexpr size_t kLittle = 32 << 20;

static void *map(size_t bytes) {
  // A huge page is one where it is aligned.
  constexpr size_t huge = 2 << 20;
  size_t slack = bytes >= 2 * huge ? huge : 0;
  void *mapped = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  if (!slack)
    return mapped;
  char *start = static_cast<char *>(mapped);
  size_t before = (huge - reinterpret_cast<uintptr_t>(start) % huge) % huge;
  if (before)
    munmap(start, before);
  // Pages are unmapped whole: the last one of the memory stays.
  constexpr size_t page = 4096;
  size_t end = (before + bytes + page - 1) / page * page;
  if (end < bytes + slack)
    munmap(start + end, bytes + slack - end);
  madvise(start + before, bytes, MADV_HUGEPAGE);
  return start + before;
}

LargeMemory &LargeMemory::get() {
  // Never destroyed: buffers may live as long as the process.
  static auto *all = new LargeMemory;
  return *all;
}

std::shared_ptr<void> LargeMemory::allocate(size_t bytes) {
  void *data = take(bytes);
  if (!data)
    return nullptr;
  return {data, [this, bytes](void *p) { giveBack(p, bytes); }};
}

void *LargeMemory::take(size_t bytes) {
  std::lock_guard lock(mutex);
  auto found = std::ranges::find(kept, bytes, &Kept::bytes);
  void *data = nullptr;
  if (found != kept.end()) {
    data = found->data;
    keptBytes -= bytes;
    kept.erase(found);
  } else {
    // What is asked for has other sizes now.
    size_t most = std::max(mostBytes, usedBytes + bytes);
    shrink(most - usedBytes - bytes);
    data = map(bytes);
    if (!data)
      return nullptr;
  }
  usedBytes += bytes;
  mostBytes = std::max(mostBytes, usedBytes);
  return data;
}

void LargeMemory::giveBack(void *data, size_t bytes) {
  std::lock_guard lock(mutex);
  usedBytes -= bytes;
  kept.push_back({data, bytes});
  keptBytes += bytes;
  shrink(std::max(usedBytes, kLittle));
}

void LargeMemory::shrink(size_t most) {
  while (keptBytes > most) {
    munmap(kept.front().data, kept.front().bytes);
    keptBytes -= kept.front().bytes;
    kept.pop_front();
  }
}

} // namespace whale::runtime
