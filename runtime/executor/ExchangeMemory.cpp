//===- ExchangeMemory.cpp - Where an exchange finds shards ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU all is put on the rank's communication stream, where NCCL's sends
// and receives are, too. A shard that is not there yet is brought there, and
// stays: a program that takes it finds it.
//
//===----------------------------------------------------------------------===//

#include "executor/ExchangeMemory.h"

#include "cuda/BoxKernels.h"
#include "device/cuda/ArrayMemory.h"

namespace whale::runtime {

namespace {
class HostMemory : public ExchangeMemory {
public:
  std::shared_ptr<Buffer> allocate(int64_t bytes) override {
    return Buffer::allocate(bytes);
  }
  std::shared_ptr<void> stage(int64_t bytes) override {
    return Buffer::allocate(bytes)->data;
  }
  char *bringFrom(const Buffer &shard, int64_t begin, int64_t end) override {
    return static_cast<char *>(shard.host(begin, end));
  }
  char *placeIn(const Buffer &shard) override {
    return static_cast<char *>(shard.data.get());
  }
  void copy(void *to, const void *from, int64_t runBytes,
            std::span<const CopyLoop> loops, int64_t) override {
    copyLoops(to, from, runBytes, loops);
  }
  void place(void *to, const void *from, int64_t runBytes,
             std::span<const CopyLoop> loops, int64_t) override {
    streamLoops(to, from, runBytes, loops);
  }
};

class GpuMemory : public ExchangeMemory {
public:
  explicit GpuMemory(std::shared_ptr<const cuda::Gpu> given)
      : gpu(std::move(given)), arrays(std::make_shared<cuda::ArrayMemory>(gpu)),
        pool(*gpu), kernels(*gpu) {}

  void attachThread() override { gpu->attach(); }
  void prepare(int64_t elementBytes) override {
    gpu->attach();
    kernels.prepareCopy(elementBytes);
  }
  std::shared_ptr<Buffer> allocate(int64_t bytes) override {
    std::shared_ptr<Buffer> shard = Buffer::allocate(bytes);
    std::shared_ptr<cuda::ArrayCopy> copy = arrays->take(bytes, nullptr);
    copy->setNewer();
    shard->backing = std::move(copy);
    return shard;
  }
  std::shared_ptr<void> stage(int64_t bytes) override {
    std::shared_ptr<cuda::ArrayCopy> copy = arrays->take(bytes, nullptr);
    return {copy, copy->memory};
  }
  char *bringFrom(const Buffer &shard, int64_t, int64_t) override {
    std::shared_ptr<cuda::ArrayCopy> copy = find(shard);
    if (!copy || !copy->isOf(*gpu)) {
      const void *host = shard.host();
      gpu->attach(); // it may have come from another GPU
      copy = arrays->take(shard.bytes, nullptr);
      cuda::upload(*gpu, pool, copy->memory, host, shard.bytes,
                   gpu->communication);
      std::atomic_store(&shard.backing, std::shared_ptr<Backing>(copy));
    }
    return static_cast<char *>(copy->memory);
  }
  char *placeIn(const Buffer &shard) override {
    return static_cast<char *>(find(shard)->memory);
  }
  void copy(void *to, const void *from, int64_t runBytes,
            std::span<const CopyLoop> loops, int64_t elementBytes) override {
    Shape toStrides, fromStrides, size;
    for (size_t i = loops.size(); i-- > 0;) {
      size.push_back(loops[i].count);
      toStrides.push_back(loops[i].toStride / elementBytes);
      fromStrides.push_back(loops[i].fromStride / elementBytes);
    }
    size.push_back(runBytes / elementBytes);
    toStrides.push_back(1);
    fromStrides.push_back(1);
    kernels.copy(elementBytes, to, toStrides, from, fromStrides, size,
                 gpu->communication);
  }
  void finish() override { gpu->synchronize(gpu->communication); }

  static std::shared_ptr<cuda::ArrayCopy> find(const Buffer &shard) {
    return std::dynamic_pointer_cast<cuda::ArrayCopy>(
        std::atomic_load(&shard.backing));
  }

private:
  const std::shared_ptr<const cuda::Gpu> gpu;
  const std::shared_ptr<cuda::ArrayMemory> arrays;
  cuda::PinnedPool pool;
  cuda::BoxKernels kernels;
};
} // namespace

std::unique_ptr<ExchangeMemory> createHostMemory() {
  return std::make_unique<HostMemory>();
}

std::unique_ptr<ExchangeMemory>
createGpuMemory(std::shared_ptr<const cuda::Gpu> gpu) {
  return std::make_unique<GpuMemory>(std::move(gpu));
}

bool isOnGpu(const Buffer &shard) { return GpuMemory::find(shard) != nullptr; }

} // namespace whale::runtime
