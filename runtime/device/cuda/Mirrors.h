//===- Mirrors.h - Arrays of the host on a GPU ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_MIRRORS_H
#define WHALE_RUNTIME_DEVICE_CUDA_MIRRORS_H

#include "device/Device.h"
#include "device/cuda/ArrayMemory.h"
#include "device/cuda/Staging.h"

#include <deque>
#include <map>
#include <unordered_map>

namespace whale::runtime::cuda {

/// How many sets of addresses a table remembers, and how many of them have
/// recorded graphs: the one that was used the longest ago goes first.
inline constexpr size_t mostLayouts = 32;

/// Memory of the host that a table names has a copy on the GPU: what the
/// program reads is brought there before its first operation of a run, what it
/// writes is brought back at the end. The copies of arrays stay there, with the
/// arrays: what a step has written, or was brought there before, the next one
/// finds, and whoever reads it on the host brings it back. A table whose arrays
/// change gets addresses that it has had together for the new ones, where they
/// are free. A few small results are written to memory of the table's own, and
/// copied to that of their arrays at the end: a caller may keep them.
class Mirrors {
public:
  Mirrors(std::shared_ptr<const Gpu> gpu, PinnedPool &pool)
      : gpu(std::move(gpu)), pool(pool),
        memory(std::make_shared<ArrayMemory>(this->gpu)) {}

  /// The host's regions of a table, by their places in it. Returns the
  /// addresses of their copies.
  std::vector<void *> bind(const void *table,
                           std::span<const std::pair<size_t, Region>> regions);

  /// Before a run.
  void reset();
  bool areCurrent() const { return isCurrent; }
  /// Puts on the stream what brings all there that is read.
  void bringThere(Stream stream);
  /// Puts on the stream, behind a run, what gives arrays their results.
  void deliver(Stream stream);
  /// Whether nothing of a run has to be in the host's memory when it ends.
  bool areOfArrays() const;
  /// At the end of a run, when the GPU has done it: returns when all that was
  /// written is in the host's memory, or is known to be newer here. The GPU may
  /// still be at it where all are of arrays: these are returned.
  std::vector<std::shared_ptr<ArrayCopy>> bringBack(Stream stream);

  /// Frees the memory of tables' own, between runs.
  void giveBack();

  int64_t bytes() const { return memory->bytes(); }

private:
  struct Mirror {
    void *host;
    int64_t bytes;
    bool isOfArray;
    std::shared_ptr<ArrayCopy> copy = nullptr;
    /// Where operations write it; null where that is the copy.
    std::shared_ptr<ArrayCopy> staged = nullptr;
    /// What the host has is here already.
    bool isHere = false;
    int64_t uses = 0;
    bool isRead = false, isWritten = false, isCurrent = false;

    /// For operations; null before it has any.
    void *memory() const {
      return staged ? staged->memory : copy ? copy->memory : nullptr;
    }
  };
  struct Table {
    std::vector<const Buffer *> buffers;
    /// Where its buffers have lain, in the last runs and the last one first.
    std::deque<std::vector<void *>> layouts;
    /// By place.
    std::map<size_t, std::shared_ptr<ArrayCopy>> staged;
  };
  using Known = std::unordered_map<const Buffer *, Mirror>;
  void find(const Buffer &buffer, Mirror &mirror);
  void provide(Table &table, const std::vector<Mirror *> &named);
  void dropUnused();
  void dropArrays();

  std::shared_ptr<const Gpu> gpu;
  PinnedPool &pool;
  Known mirrors;
  std::unordered_map<const void *, Table> tables;
  const std::shared_ptr<ArrayMemory> memory;
  bool isCurrent = true;
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_MIRRORS_H
