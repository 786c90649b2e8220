//===- LargeMemory.h - Memory of large buffers ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LARGEMEMORY_H
#define WHALE_RUNTIME_LARGEMEMORY_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace whale::runtime {

/// Memory of the system; what is given back is kept for a while. May be used by
/// several threads at once.
class LargeMemory {
public:
  LargeMemory() = default;
  LargeMemory(const LargeMemory &) = delete;
  LargeMemory &operator=(const LargeMemory &) = delete;
  /// All must have been given back.
  ~LargeMemory() { shrink(0); }

  /// That of the process.
  static LargeMemory &get();

  /// `bytes` of memory, of any contents, at an address that is a multiple of
  /// 64; null if there is none. Must not outlive this.
  std::shared_ptr<void> allocate(size_t bytes);

private:
  /// A run of pages, by its first one.
  struct Kept {
    size_t bytes;
    /// Grows with each that is given back.
    uint64_t when;
    /// Whether the system may take its pages when it needs some.
    bool isLent;
  };
  using Runs = std::map<char *, Kept>;

  void *take(size_t bytes);
  void *takeKept(size_t bytes);
  void giveBack(void *data, size_t bytes);
  /// Joins a run with those of its kind that it meets.
  void join(Runs::iterator run);
  /// Unmaps what was given back first, until no more than `most` is kept.
  void shrink(size_t most);
  /// Lends what was given back first, until no more than `most` is kept that
  /// is not lent.
  void lend(size_t most);

  std::mutex mutex;
  /// Where two of them meet, one is lent and the other is not.
  Runs kept;
  /// In whole pages; what is lent is kept, too.
  size_t keptBytes = 0, lentBytes = 0, usedBytes = 0, mostBytes = 0;
  uint64_t given = 0;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LARGEMEMORY_H
