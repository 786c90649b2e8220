//===- LateDevice.cpp - A device that takes all the time it has -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/late/LateQueues.h"

#include <cstring>
#include <unordered_map>

namespace whale::runtime {

namespace {
using late::LateQueues;

/// Computes on a CPU device, when the queues say so. What computes holds no
/// other rank up: all do in turn.
class LateDevice : public Device {
public:
  LateDevice(std::shared_ptr<LateQueues> queues, int64_t rank, int64_t threads)
      : queues(std::move(queues)), rank(rank), cpu(createCpuDevice(threads)) {}

  void attachThread() override { cpu->attachThread(); }
  void reset() override;
  void finish() override { queues->finish(rank); }

  std::shared_ptr<Buffer> allocate(MemorySpace space, int64_t bytes) override {
    auto memory = cpu->allocate(space, bytes);
    spoil(*memory);
    return allocated.emplace_back(std::move(memory));
  }
  std::shared_ptr<Buffer> adoptConstants(const void *data,
                                         int64_t bytes) override {
    return cpu->adoptConstants(data, bytes);
  }
  void bind(BufferTable &table, std::span<const Region> regions) override {
    cpu->bind(table, regions);
  }
  void select(BufferTable &table, const BufferTable &from,
              std::span<const BufferIndex> indices) override {
    cpu->select(table, from, indices);
  }

  Event record(Queue queue) override { return queues->record(rank, queue); }
  void wait(Queue queue, Event event) override {
    queues->wait(rank, queue, event);
  }

  void launch(Queue queue, const KernelLaunch &launch,
              const BufferTable &table) override {
    put(queue, &Device::launch, launch, table);
  }
  void matmul(Queue queue, const Matmul &matmul,
              const BufferTable &table) override {
    put(queue, &Device::matmul, matmul, table);
  }
  void convolution(Queue queue, const Convolution &convolution,
                   const BufferTable &table) override {
    put(queue, &Device::convolution, convolution, table);
  }
  void call(Queue queue, const Call &call, const BufferTable &table) override {
    put(queue, &Device::call, call, table);
  }
  void copy(Queue queue, const Copy &copy, const BufferTable &table) override {
    put(queue, &Device::copy, copy, table);
  }
  int64_t readInteger(Queue queue, const BufferTable &table, BufferIndex buffer,
                      DType dtype) override {
    queues->drain(rank, queue);
    return cpu->readInteger(queue, table, buffer, dtype);
  }

  void start(Queue queue, const Start &start,
             const BufferTable &table) override {
    queues->start(rank, queue,
                  {start.transfer, start.channel, buffersOf(start, table)});
  }
  void startCopy(Queue queue, const Start &start, int64_t,
                 const BufferTable &table) override {
    this->start(queue, start, table);
  }
  Traffic waitFor(Queue, int64_t transfer) override {
    // The thread waits, and with it all that it puts anywhere later.
    return queues->waitFor(rank, transfer);
  }

  double leastSeconds(double flops, double bytes,
                      std::optional<DType> product) override {
    return cpu->leastSeconds(flops, bytes, product);
  }
  int64_t scratchBytes() const override { return cpu->scratchBytes(); }
  std::optional<int64_t> movedTransfers() const override {
    return queues->movedTransfers(rank);
  }

private:
  template <typename Operation>
  void put(Queue queue,
           void (Device::*method)(Queue, const Operation &,
                                  const BufferTable &),
           const Operation &operation, const BufferTable &table) {
    std::shared_ptr<const BufferTable> &copy = copies[&table];
    if (!copy || addressesOf(*copy) != addressesOf(table))
      copy = std::make_shared<BufferTable>(table);
    queues->put(rank, queue, [=, this, &operation] {
      ((*cpu).*method)(queue, operation, *copy);
    });
  }

  static void spoil(const Buffer &memory) {
    if (memory.bytes)
      std::memset(memory.data.get(), late::garbage,
                  static_cast<size_t>(memory.bytes));
  }

  std::shared_ptr<LateQueues> queues;
  int64_t rank;
  std::unique_ptr<Device> cpu;
  std::vector<std::shared_ptr<Buffer>> allocated;
  /// Tables as operations on the queues know them.
  std::unordered_map<const BufferTable *, std::shared_ptr<const BufferTable>>
      copies;
};
} // namespace

/// What an earlier run has left in memory is worth nothing.
void LateDevice::reset() {
  copies.clear();
  for (const std::shared_ptr<Buffer> &memory : allocated)
    spoil(*memory);
  if (rank == 0)
    queues->reset();
}

std::vector<std::unique_ptr<Device>>
createLateDevices(const format::Program &program, int64_t threads,
                  Transport &transport, uint64_t seed) {
  auto queues = std::make_shared<LateQueues>(program, transport, seed);
  std::vector<std::unique_ptr<Device>> devices;
  for (size_t rank = 0; rank < program.ranks.size(); ++rank)
    devices.push_back(std::make_unique<LateDevice>(
        queues, static_cast<int64_t>(rank), threads));
  return devices;
}

} // namespace whale::runtime
