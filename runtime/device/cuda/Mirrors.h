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

#include <unordered_map>

namespace whale::runtime::cuda {

/// Memory of the host that a table names has a copy on the GPU: what the
/// program reads is brought there before its first operation of a run, what it
/// writes is brought back at the end. The copies of arrays stay there, with the
/// arrays: what a step has written, or was brought there before, the next one
/// finds, and whoever reads it on the host brings it back. A table whose arrays
/// change gets the same addresses for the new ones where they are free.
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
  /// At the end of a run, when the GPU has done it: returns when all that was
  /// written is in the host's memory, or is known to be newer here.
  void bringBack(Stream stream);

  int64_t bytes() const { return memory->bytes(); }

private:
  struct Mirror {
    void *host;
    int64_t bytes;
    std::shared_ptr<ArrayCopy> copy;
    bool isOfArray;
    /// What the host has is here already.
    bool isHere;
    int64_t uses = 0;
    bool isRead = false, isWritten = false, isCurrent = false;
  };
  using Known = std::unordered_map<const Buffer *, Mirror>;
  Mirror mirrorOf(const Region &region, void *wanted);
  void dropUnused();
  void dropArrays();

  std::shared_ptr<const Gpu> gpu;
  PinnedPool &pool;
  Known mirrors;
  struct Table {
    std::vector<const Buffer *> buffers;
    std::unordered_map<size_t, void *> addresses;
  };
  std::unordered_map<const void *, Table> tables;
  const std::shared_ptr<ArrayMemory> memory;
  bool isCurrent = true;
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_MIRRORS_H
