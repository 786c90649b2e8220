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
// process never has more than it had in use at once, and of what it keeps
// beyond as much as it uses the system may take pages whenever it needs some: a
// state that is small under one plan and large under the next goes there and
// back without new pages while there are enough. What uses next to nothing
// keeps only a little: a program whose arguments are the caller's uses nothing
// between its steps.
//
//===----------------------------------------------------------------------===//

#include "LargeMemory.h"

#include <algorithm>
#include <cstdint>
#include <sys/mman.h>
#include <utility>

namespace whale::runtime {

/// What is kept however little is used; as much as glibc keeps of freed memory.
static constexpr size_t kLittle = 32 << 20;

static constexpr size_t pageBytes = 4096, hugeBytes = 2 << 20;

static size_t roundUp(size_t bytes, size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

static void *map(size_t bytes) {
  // A huge page is one where it is aligned.
  size_t slack = bytes >= hugeBytes ? hugeBytes : 0;
  void *mapped = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  if (!slack)
    return mapped;
  char *start = static_cast<char *>(mapped);
  auto address = reinterpret_cast<uintptr_t>(start);
  size_t before = roundUp(address, hugeBytes) - address;
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
  size_t whole = roundUp(bytes, pageBytes);
  void *data = take(whole);
  if (!data)
    return nullptr;
  return {data, [this, whole](void *p) { giveBack(p, whole); }};
}

/// From the end of the smallest of the runs that meet and have room for it
/// together, if there are such.
void *LargeMemory::takeKept(size_t bytes) {
  char *best = nullptr, *end = nullptr;
  size_t bestBytes = SIZE_MAX, together = 0;
  for (auto &[start, run] : kept) {
    together = start == end ? together + run.bytes : run.bytes;
    end = start + run.bytes;
    bool isLast = !kept.contains(end);
    if (isLast && together >= bytes && together < bestBytes) {
      best = end;
      bestBytes = together;
    }
  }
  if (!best)
    return nullptr;
  auto it = std::prev(kept.lower_bound(best));
  for (size_t left = bytes; left > 0;) {
    Kept &run = it->second;
    size_t part = std::min(run.bytes, left);
    left -= part;
    keptBytes -= part;
    if (run.isLent)
      lentBytes -= part;
    run.bytes -= part;
    if (run.bytes > 0)
      break;
    auto empty = it;
    if (left > 0)
      --it;
    kept.erase(empty);
  }
  return best - bytes;
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
  join(kept.emplace(static_cast<char *>(data),
                    Kept{bytes, ++given, /*isLent=*/false})
           .first);
  if (usedBytes <= kLittle)
    shrink(kLittle);
  else
    lend(usedBytes);
}

void LargeMemory::join(Runs::iterator run) {
  auto meet = [](const Runs::value_type &one, const Runs::value_type &next) {
    return one.first + one.second.bytes == next.first &&
           one.second.isLent == next.second.isLent;
  };
  auto absorb = [](Kept &one, const Kept &next) {
    one.bytes += next.bytes;
    one.when = std::max(one.when, next.when);
  };
  if (auto next = std::next(run); next != kept.end() && meet(*run, *next)) {
    absorb(run->second, next->second);
    kept.erase(next);
  }
  if (run == kept.begin())
    return;
  if (auto before = std::prev(run); meet(*before, *run)) {
    absorb(before->second, run->second);
    kept.erase(run);
  }
}

void LargeMemory::shrink(size_t most) {
  while (keptBytes > most) {
    auto oldest = std::ranges::min_element(
        kept, {}, [](const auto &run) { return run.second.when; });
    auto &[start, run] = *oldest;
    size_t bytes = std::min(run.bytes, roundUp(keptBytes - most, pageBytes));
    munmap(start + run.bytes - bytes, bytes);
    keptBytes -= bytes;
    if (run.isLent)
      lentBytes -= bytes;
    run.bytes -= bytes;
    if (run.bytes == 0)
      kept.erase(oldest);
  }
}

void LargeMemory::lend(size_t most) {
  while (keptBytes - lentBytes > most) {
    auto oldest =
        std::ranges::min_element(kept, {}, [](const Runs::value_type &run) {
          return std::pair(run.second.isLent, run.second.when);
        });
    auto &[start, run] = *oldest;
    // A huge page is lent whole.
    size_t bytes =
        std::min(run.bytes, roundUp(keptBytes - lentBytes - most, hugeBytes));
    char *part = start + run.bytes - bytes;
    madvise(part, bytes, MADV_FREE);
    lentBytes += bytes;
    Kept lent{bytes, run.when, /*isLent=*/true};
    run.bytes -= bytes;
    if (run.bytes == 0)
      kept.erase(oldest);
    join(kept.emplace(part, lent).first);
  }
}

} // namespace whale::runtime
