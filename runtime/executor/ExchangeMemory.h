//===- ExchangeMemory.h - Where an exchange finds shards --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_EXCHANGEMEMORY_H
#define WHALE_RUNTIME_EXECUTOR_EXCHANGEMEMORY_H

#include "CopyBox.h"
#include "cuda/Gpu.h"
#include "whale/Runtime/Array.h"

#include <memory>

namespace whale::runtime {

/// The memory that the shards of an exchange are in, and where what is packed
/// lies: that of a process, or of the GPU of a rank. `allocate` and `stage` are
/// for any thread. All throw Error.
class ExchangeMemory {
public:
  virtual ~ExchangeMemory() = default;

  /// Called on each thread that uses the others.
  virtual void attachThread() {}
  /// For elements of so many bytes, before they are copied.
  virtual void prepare(int64_t /*elementBytes*/) {}

  /// A shard, uninitialized.
  virtual std::shared_ptr<Buffer> allocate(int64_t bytes) = 0;
  /// For what is packed.
  virtual std::shared_ptr<void> stage(int64_t bytes) = 0;
  /// The address of a shard, of which bytes from `begin` to `end` will be read.
  virtual char *bringFrom(const Buffer &shard, int64_t begin, int64_t end) = 0;
  /// That of one which was allocated here.
  virtual char *placeIn(const Buffer &shard) = 0;

  /// As copyLoops; perhaps not before `finish`. The transport of the memory
  /// sends what was copied before, and has received what is copied behind it.
  virtual void copy(void *to, const void *from, int64_t runBytes,
                    std::span<const CopyLoop> loops, int64_t elementBytes) = 0;
  /// The same to a shard, of which nothing is read before all is there.
  virtual void place(void *to, const void *from, int64_t runBytes,
                     std::span<const CopyLoop> loops, int64_t elementBytes) {
    copy(to, from, runBytes, loops, elementBytes);
  }
  /// Returns when all copies are made.
  virtual void finish() {}
};

/// That of the host, for any threads at once.
std::unique_ptr<ExchangeMemory> createHostMemory();
/// That of a GPU, for NCCL; the others for one thread at a time. What it has
/// allocated stays when it goes.
std::unique_ptr<ExchangeMemory>
createGpuMemory(std::shared_ptr<const cuda::Gpu> gpu);
/// Whether the bytes of a shard are on some GPU.
bool isOnGpu(const Buffer &shard);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_EXCHANGEMEMORY_H
