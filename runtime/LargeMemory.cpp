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
// is kept for the next buffers, as runs of pages that are joined and cut, since
// a state that goes to another plan has other sizes there. Two limits hold: the
// process never has more than it had in use at once, and never keeps more than
// it uses, but for a little: a program whose arguments are the caller's uses
// nothing between its steps.
//
//===----------------------------------------------------------------------===//

#include "LargeMemory.h"

#include <algorithm>
#include <cstdint>
#include <sys/mman.h>

namespace whale::runtime {

/// What is kept however little is used; as much as glibc keeps of freed memory.
static constexpr size_t kLittle = 32 << 20;

static constexpr size_t pageBytes = 4096;

static void *map(size_t bytes) {
  // A huge page is one where it is aligned.
  constexpr size_t huge = 2 << 20;
  size_t slack = bytes >= huge ? huge : 0;
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
  munmap(start + before + bytes, slack - before);
  madvise(start + before, bytes, MADV_HUGEPAGE);
  return start + before;
}

LargeMemory &LargeMemory::get() {
  // Never destroyed: buffers may live as long as the process.
  static auto *all = new LargeMemory;
  return *all;
}

std::shared_ptr<void> LargeMemory::allocate(size_t bytes) {
  if (bytes > SIZE_MAX / 2)
    return nullptr;
  size_t whole = (bytes + pageBytes - 1) / pageBytes * pageBytes;
  void *data = take(whole);
  if (!data)
    return nullptr;
  return {data, [this, whole](void *p) { giveBack(p, whole); }};
}

/// From the end of the smallest run that has room for it, if there is one.
void *LargeMemory::takeKept(size_t bytes) {
  auto best = kept.end();
  for (auto it = kept.begin(); it != kept.end(); ++it)
    if (it->second.bytes >= bytes &&
        (best == kept.end() || it->second.bytes < best->second.bytes))
      best = it;
  if (best == kept.end())
    return nullptr;
  keptBytes -= bytes;
  best->second.bytes -= bytes;
  char *data = best->first + best->second.bytes;
  if (best->second.bytes == 0)
    kept.erase(best);
  return data;
}

void *LargeMemory::take(size_t bytes) {
  std::lock_guard lock(mutex);
  void *data = takeKept(bytes);
  if (!data) {
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
  keptBytes += bytes;
  auto it = kept.emplace(static_cast<char *>(data), Kept{bytes, ++given}).first;
  if (auto next = std::next(it);
      next != kept.end() && it->first + it->second.bytes == next->first) {
    it->second.bytes += next->second.bytes;
    kept.erase(next);
  }
  if (it != kept.begin())
    if (auto before = std::prev(it);
        before->first + before->second.bytes == it->first) {
      before->second = {before->second.bytes + it->second.bytes, given};
      kept.erase(it);
    }
  shrink(std::max(usedBytes, kLittle));
}

void LargeMemory::shrink(size_t most) {
  while (keptBytes > most) {
    auto oldest = std::ranges::min_element(
        kept, {}, [](const auto &run) { return run.second.when; });
    auto &[start, run] = *oldest;
    size_t bytes = std::min(run.bytes, keptBytes - most);
    bytes = (bytes + pageBytes - 1) / pageBytes * pageBytes;
    munmap(start + run.bytes - bytes, bytes);
    keptBytes -= bytes;
    run.bytes -= bytes;
    if (run.bytes == 0)
      kept.erase(oldest);
  }
}

} // namespace whale::runtime
