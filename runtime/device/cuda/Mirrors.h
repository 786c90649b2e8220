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
#include "device/cuda/Staging.h"

#include <unordered_map>

namespace whale::runtime::cuda {

/// The arguments and results of a program are in the host's memory. Each that a
/// table names has a copy on the GPU: what the program reads is brought there
/// before its first operation of a run, what it writes is brought back at the
/// end. A table whose arrays change gets the same addresses for the new ones
/// where sizes are the same.
class Mirrors {
public:
  Mirrors(std::shared_ptr<const Gpu> gpu, PinnedPool &pool)
      : gpu(std::move(gpu)), pool(pool) {}
  ~Mirrors();

  /// The host's regions of a table, by their places in it. Returns the
  /// addresses of their copies.
  std::vector<void *> bind(const void *table,
                           std::span<const std::pair<size_t, Region>> regions);

  /// Before a run.
  void reset();
  bool areCurrent() const { return isCurrent; }
  /// Puts on the stream what brings all there that is read.
  void bringThere(Stream stream);
  /// Returns when all that was written is in the host's memory.
  void bringBack(Stream stream);

  int64_t bytes() const { return sum; }

private:
  struct Mirror {
    void *host;
    int64_t bytes;
    void *memory;
    int64_t uses = 0;
    bool isRead = false, isWritten = false, isCurrent = false;
  };
  using Known = std::unordered_map<const Buffer *, Mirror>;
  void *take(int64_t bytes, void *wanted);
  void drop(Known::iterator mirror);
  void dropUnused();

  std::shared_ptr<const Gpu> gpu;
  PinnedPool &pool;
  Known mirrors;
  struct Table {
    std::vector<const Buffer *> buffers;
    std::unordered_map<size_t, void *> addresses;
  };
  std::unordered_map<const void *, Table> tables;
  /// Memory of mirrors that are gone, by its size.
  std::unordered_multimap<int64_t, void *> unused;
  bool isCurrent = true;
  int64_t sum = 0;
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_MIRRORS_H
