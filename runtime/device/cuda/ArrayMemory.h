//===- ArrayMemory.h - Arrays that stay on a GPU ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_ARRAYMEMORY_H
#define WHALE_RUNTIME_DEVICE_CUDA_ARRAYMEMORY_H

#include "device/cuda/Staging.h"
#include "whale/Runtime/Array.h"

#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace whale::runtime::cuda {

class ArrayCopy;

/// Memory of a GPU that arrays take and give back, from any thread; those that
/// outlive the device keep it.
class ArrayMemory : public std::enable_shared_from_this<ArrayMemory> {
public:
  explicit ArrayMemory(std::shared_ptr<const Gpu> gpu);
  ~ArrayMemory();
  ArrayMemory(const ArrayMemory &) = delete;
  ArrayMemory &operator=(const ArrayMemory &) = delete;

  /// So many bytes: those at `wanted` if they are free. Nothing that is put on
  /// a stream by now uses them.
  std::shared_ptr<ArrayCopy> take(int64_t bytes, void *wanted);
  bool isFree(int64_t bytes, void *address) const;
  /// Gives back to the GPU what no array has; false if there is nothing.
  bool freeUnused();
  /// All that was taken of the GPU.
  int64_t bytes() const;

private:
  friend class ArrayCopy;
  /// Null where none is free.
  void *takeUnused(int64_t bytes, void *wanted);
  void give(int64_t bytes, void *memory);
  void download(void *host, const void *memory, int64_t bytes);

  const std::shared_ptr<const Gpu> gpu;
  mutable std::mutex mutex;
  /// By size.
  std::unordered_map<int64_t, std::unordered_set<void *>> unused;
  int64_t sum = 0;
  /// For downloads, which may come while the rank works.
  Stream stream = nullptr;
  PinnedPool pool;
  /// What lies idle is for whoever needs memory.
  std::optional<Lender> lender;
};

/// The bytes of an array's shard on a GPU.
class ArrayCopy : public Backing {
public:
  ArrayCopy(std::shared_ptr<ArrayMemory> owner, void *memory, int64_t bytes)
      : memory(memory), bytes(bytes), owner(std::move(owner)) {}
  ~ArrayCopy() override { owner->give(bytes, memory); }

  bool isOf(const Gpu &gpu) const { return owner->gpu->sharesWith(gpu); }
  /// What is there is newer than what the host has.
  void setNewer();
  void bring(void *host, int64_t begin, int64_t end) override;

  void *const memory;
  const int64_t bytes;

private:
  const std::shared_ptr<ArrayMemory> owner;
  std::mutex mutex;
  bool isNewer = false;
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_ARRAYMEMORY_H
