//===- CpuDevice.cpp - Computes on CPU threads ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the operations of a rank. Out: calls of kernels, oneDNN and the runtime's
// own functions on the processor's threads. All queues are one, and empty: an
// operation runs before the method that puts it there returns.
//
// Cost: an operation besides its work gathers the addresses of its operands;
// products and convolutions are looked up in a hash table, after they have been
// prepared when they were first seen. Nothing is allocated in later runs but
// what libraries allocate. How many threads one wakes, Work.h says. Peaks are
// measured once, when first asked for.
//
//===----------------------------------------------------------------------===//

#include "Numeric.h"
#include "device/HostLinks.h"
#include "device/cpu/Epilogue.h"
#include "device/cpu/Operations.h"
#include "device/cpu/Parallel.h"
#include "device/cpu/Peaks.h"
#include "device/cpu/Work.h"
#include "emulator/Emulator.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>
#include <unordered_map>

namespace whale::runtime {

namespace {
class CpuDevice : public Device {
public:
  CpuDevice(std::shared_ptr<CpuContext> given, Transport *transport,
            int64_t rank, std::shared_ptr<HostLinks> links)
      : shared(std::move(given)), context(*shared), transport(transport),
        rank(rank), links(std::move(links)) {}

  void attachThread() override {
    checkThreads(context.threads);
    setThreadCount(context.threads);
  }
  void reset() override { copies.clear(); }
  void finish() override {}

  std::shared_ptr<Buffer> allocate(MemorySpace, int64_t bytes) override {
    return Buffer::allocate(bytes);
  }
  std::shared_ptr<Buffer> adoptConstants(const void *data,
                                         int64_t bytes) override {
    std::shared_ptr<void> memory(const_cast<void *>(data), [](void *) {});
    return std::make_shared<Buffer>(Buffer{std::move(memory), bytes, false});
  }
  void bind(BufferTable &table, std::span<const Region> regions) override;
  void select(BufferTable &table, const BufferTable &from,
              std::span<const BufferIndex> indices) override;

  Event record(Queue queue) override { return {queue, 0}; }
  void wait(Queue, Event) override {}

  void launch(Queue, const KernelLaunch &launch,
              const BufferTable &table) override {
    int64_t parts = threadsFor(launch.work, context.threads);
    gather(table, launch.buffers, 0);
    void **buffers = list.data();
    if (parts <= 1) {
      if (launch.extent > 0)
        launch.function(buffers, 0, launch.extent);
    } else {
      parallelFor(launch.extent, parts, [&](int64_t begin, int64_t end) {
        launch.function(buffers, begin, end);
      });
    }
    if (hasEmulatorFault())
      throw Error(takeEmulatorFault().value_or("an emulated kernel is wrong"));
  }

  void matmul(Queue, const Matmul &matmul, const BufferTable &table) override {
    auto it = matmuls.find(&matmul);
    if (it == matmuls.end()) {
      it = matmuls.try_emplace(&matmul, matmul, context).first;
      count(it->second.getScratch());
    }
    const std::vector<void *> &memory = addressesOf(table);
    it->second.run(context, memory[matmul.lhs], memory[matmul.rhs],
                   memory[matmul.out]);
    Epilogue epilogue = matmul.epilogue;
    if (epilogue != Epilogue::None)
      applyEpilogue(matmul, memory[matmul.out],
                    usesBias(epilogue) ? memory[matmul.bias] : nullptr,
                    usesAux(epilogue) ? memory[matmul.aux] : nullptr,
                    threadsFor(workOf(matmul), context.threads));
  }

  void convolution(Queue, const Convolution &convolution,
                   const BufferTable &table) override {
    auto it = convolutions.find(&convolution);
    if (it == convolutions.end()) {
      it = convolutions.try_emplace(&convolution, convolution, context).first;
      count(it->second.getScratch());
    }
    const std::vector<void *> &memory = addressesOf(table);
    it->second.run(context, memory[convolution.lhs], memory[convolution.rhs],
                   memory[convolution.out]);
  }

  void call(Queue, const Call &call, const BufferTable &table) override {
    gather(table, call.inputs, 0);
    gather(table, call.outputs, call.inputs.size());
    std::span<void *const> all = list;
    call.function(all.first(call.inputs.size()),
                  all.subspan(call.inputs.size(), call.outputs.size()));
  }

  void copy(Queue, const Copy &copy, const BufferTable &table) override {
    const std::vector<void *> &memory = addressesOf(table);
    if (copy.bytes)
      std::memmove(memory[copy.dst], memory[copy.src],
                   static_cast<size_t>(copy.bytes));
  }

  int64_t readInteger(Queue, const BufferTable &table, BufferIndex buffer,
                      DType dtype) override;

  void start(Queue, const Start &start, const BufferTable &table) override {
    auto number = static_cast<size_t>(start.transfer);
    tickets.resize(std::max(tickets.size(), number + 1));
    tickets[number] =
        transport->start(rank, start.channel, buffersOf(start, table));
  }
  void startCopy(Queue, const Start &start, int64_t bytes,
                 const BufferTable &table) override;
  Traffic waitFor(Queue, int64_t transfer) override {
    if (auto copy = copies.find(transfer); copy != copies.end())
      return waitForCopy(copies.extract(copy).mapped());
    return transport->wait(rank, tickets.at(static_cast<size_t>(transfer)));
  }

  double leastSeconds(double flops, double bytes,
                      std::optional<DType> product) override {
    if (!bandwidth)
      bandwidth = measureBandwidth(context.threads);
    bool half = product == DType::BF16;
    std::optional<double> &peak = half ? halfPeak : floatPeak;
    if (!peak)
      peak = measureProducts(half ? DType::BF16 : DType::F32, context);
    return std::max(flops / *peak, bytes / *bandwidth);
  }

  int64_t scratchBytes() const override {
    return std::accumulate(needed.begin(), needed.end(), int64_t(0));
  }

private:
  /// Of a copy between host and device.
  struct HostCopy {
    Traffic traffic;
    Clock::time_point end;
  };
  Traffic waitForCopy(const HostCopy &copy) const;

  /// Puts the addresses of buffers into `list`.
  void gather(const BufferTable &table, const std::vector<BufferIndex> &buffers,
              size_t at) {
    void *const *memory = addressesOf(table).data();
    if (list.size() < at + buffers.size())
      list.resize(at + buffers.size());
    void **next = list.data() + at;
    for (BufferIndex buffer : buffers)
      *next++ = memory[buffer];
  }

  void count(const ScratchSizes &sizes) {
    for (size_t slot = 0; slot < sizes.size(); ++slot)
      needed[slot] = std::max(needed[slot], sizes[slot]);
  }

  const std::shared_ptr<CpuContext> shared;
  CpuContext &context;
  /// Of the scratch memory there, what operations of this device need.
  ScratchSizes::array needed = {};
  Transport *transport;
  int64_t rank;
  /// Addresses to give to kernels.
  std::vector<void *> list;
  /// Of the transfers, by number.
  std::vector<Ticket> tickets;
  /// Of the copies that were not waited for, by number; the links that they
  /// go over, where these are emulated.
  std::unordered_map<int64_t, HostCopy> copies;
  std::shared_ptr<HostLinks> links;
  /// Bytes and FLOP/s a second, once measured.
  std::optional<double> bandwidth, floatPeak, halfPeak;
  std::unordered_map<const Matmul *, PreparedMatmul> matmuls;
  std::unordered_map<const Convolution *, PreparedConvolution> convolutions;
};
} // namespace

/// The bytes move at once: that they may as well move later is for the one who
/// waits.
void CpuDevice::startCopy(Queue, const Start &start, int64_t bytes,
                          const BufferTable &table) {
  PartBuffers buffers = buffersOf(start, table).front();
  if (bytes)
    std::memcpy(buffers.dst, buffers.src, static_cast<size_t>(bytes));
  copies[start.transfer] = {{.sent = bytes, .received = bytes},
                            links ? links->reserve(rank, bytes)
                                  : Clock::time_point::min()};
}

Traffic CpuDevice::waitForCopy(const HostCopy &copy) const {
  Traffic traffic = copy.traffic;
  // A run that is stopped is not slept through.
  constexpr std::chrono::milliseconds patience(20);
  auto begin = Clock::now();
  for (auto now = begin; now < copy.end; now = Clock::now()) {
    if (transport && transport->aborted())
      throw Aborted();
    std::this_thread::sleep_until(std::min(copy.end, now + patience));
  }
  traffic.linkSeconds =
      std::chrono::duration<double>(Clock::now() - begin).count();
  return traffic;
}

void CpuDevice::bind(BufferTable &table, std::span<const Region> regions) {
  std::vector<void *> &addresses = addressesOf(table);
  addresses.clear();
  for (const Region &region : regions) {
    const Buffer *buffer = region.allocation;
    if (!buffer) {
      addresses.push_back(nullptr);
      continue;
    }
    void *data = region.isOfArray ? buffer->host() : buffer->data.get();
    if (region.isOfArray && region.isWritten)
      std::atomic_store(&buffer->backing, {});
    addresses.push_back(static_cast<char *>(data) + region.offset);
  }
}

void CpuDevice::select(BufferTable &table, const BufferTable &from,
                       std::span<const BufferIndex> indices) {
  std::vector<void *> &addresses = addressesOf(table);
  addresses.clear();
  for (BufferIndex index : indices)
    addresses.push_back(addressesOf(from)[index]);
}

int64_t CpuDevice::readInteger(Queue, const BufferTable &table,
                               BufferIndex buffer, DType dtype) {
  const void *memory = addressesOf(table)[buffer];
  return dispatch(dtype, [&]<typename T>() -> int64_t {
    if constexpr (!isOpaque<T>) {
      using Compute = typename Element<T>::Compute;
      if constexpr (std::is_integral_v<Compute>) {
        T stored;
        std::memcpy(&stored, memory, sizeof(T));
        return static_cast<int64_t>(Element<T>::load(stored));
      }
    }
    return 0;
  });
}

std::shared_ptr<CpuContext> createCpuContext(int64_t threads) {
  return std::make_shared<CpuContext>(threads);
}

std::unique_ptr<Device> createCpuDevice(std::shared_ptr<CpuContext> context,
                                        Transport *transport, int64_t rank,
                                        std::shared_ptr<HostLinks> links) {
  return std::make_unique<CpuDevice>(std::move(context), transport, rank,
                                     std::move(links));
}

} // namespace whale::runtime
