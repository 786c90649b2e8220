//===- CudaDevice.cpp - A device that computes on a GPU -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In come the operations of a rank, out go calls of the driver and of cuBLASLt.
// Each queue is a stream; events are events of CUDA. The arena and the
// constants are allocations of their own; arguments and results, which are in
// the host's memory, have copies on the GPU (Mirrors.h). Transfers go through
// the host (Transfers.h). So does what cuBLASLt does not have (integers, odd
// strides), convolutions and calls of the library: their operands are copied to
// pinned memory, the processor computes, and their results are copied back; the
// rank waits meanwhile.
//
// A run without such operations, transfers and control flow is recorded when it
// comes for the second time, and from then on is one launch of a CUDA graph, as
// long as its addresses stay the same.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/CudaDevice.h"

#include "Numeric.h"
#include "device/cuda/Kernels.h"
#include "device/cuda/Mirrors.h"
#include "device/cuda/Products.h"
#include "device/cuda/Transfers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>

namespace whale::runtime {

namespace {
using cuda::addressOf;
using cuda::Gpu;
using cuda::PinnedPool;

/// Memory that this device has allocated, by its first address.
using Ranges = std::map<cuda::Address, int64_t>;

class CudaDevice : public Device {
public:
  CudaDevice(std::shared_ptr<const Gpu> gpu, const format::Program &program,
             FindGpuKernel findKernel, Transport *transport, int64_t rank,
             const CudaDeviceOptions &options);
  ~CudaDevice() override;

  void attachThread() override {
    gpu->attach();
    cpu->attachThread();
  }
  void reset() override;
  void finish() override;

  std::shared_ptr<Buffer> allocate(MemorySpace space, int64_t bytes) override;
  std::shared_ptr<Buffer> adoptConstants(const void *data,
                                         int64_t bytes) override;
  void bind(BufferTable &table, std::span<const Region> regions) override;
  void select(BufferTable &table, const BufferTable &from,
              std::span<const BufferIndex> indices) override {
    std::vector<void *> &addresses = addressesOf(table);
    addresses.clear();
    for (BufferIndex index : indices)
      addresses.push_back(addressesOf(from)[index]);
  }

  Event record(Queue queue) override;
  void wait(Queue queue, Event event) override;

  void launch(Queue queue, const KernelLaunch &launch,
              const BufferTable &table) override;
  void matmul(Queue queue, const Matmul &matmul,
              const BufferTable &table) override;
  void convolution(Queue queue, const Convolution &convolution,
                   const BufferTable &table) override;
  void call(Queue queue, const Call &call, const BufferTable &table) override;
  void copy(Queue queue, const Copy &copy, const BufferTable &table) override;
  int64_t readInteger(Queue queue, const BufferTable &table, BufferIndex buffer,
                      DType dtype) override;

  void start(Queue queue, const Start &start,
             const BufferTable &table) override;
  Traffic waitFor(Queue queue, int64_t transfer) override;

  bool repeat(const BufferTable &table) override;
  void beginRecording(const BufferTable &table) override;
  void endRecording() override;

  double leastSeconds(double flops, double bytes,
                      std::optional<DType> product) override;
  int64_t scratchBytes() const override {
    return mirrors.bytes() + 2 * workspaceBytes;
  }

private:
  struct Operand {
    void *memory;
    int64_t bytes;
    bool isRead, isWritten;
  };
  void computeOnHost(Queue queue, std::span<const Operand> operands,
                     const std::function<void(std::span<void *const>)> &run);
  template <typename Op>
  void computeOnHost(Queue queue, const Op &op, const BufferTable &table,
                     std::array<int64_t, 3> bytes, bool readsOut,
                     void (Device::*method)(Queue, const Op &,
                                            const BufferTable &));
  void prepare();
  void endOperation(Queue queue) {
    if (isSynchronous && !isRecording)
      gpu->synchronize(gpu->stream(queue));
  }
  void dropGraph();
  void *workspace(Queue queue);
  double seconds(const std::function<void()> &put);

  std::shared_ptr<const Gpu> gpu;
  FindGpuKernel findKernel;
  const bool isSynchronous;
  std::unique_ptr<Device> cpu;
  std::shared_ptr<Ranges> ranges = std::make_shared<Ranges>();
  PinnedPool pool;
  cuda::Mirrors mirrors;
  cuda::Transfers transfers;

  /// The events of a queue, by their numbers modulo the length: an event that
  /// was recorded over is one that comes later.
  static constexpr int64_t keptEvents = 64;
  struct QueueEvents {
    std::array<cuda::EventHandle, keptEvents> handles = {};
    int64_t count = 0;
  };
  std::array<QueueEvents, 2> events;
  cuda::EventHandle broughtThere = nullptr;

  std::unordered_map<const KernelLaunch *, GpuKernel> kernels;
  cuda::BlasHandle blas = nullptr;
  int64_t workspaceBytes = 0;
  std::array<std::shared_ptr<Buffer>, 2> workspaces;
  /// By product and the alignment of its operands; null for those that the
  /// processor does.
  std::map<std::pair<const Matmul *, uint32_t>, std::unique_ptr<cuda::Product>>
      products;

  /// Addresses of the tables of a run that has been recorded, or could be.
  std::vector<void *> recorded;
  cuda::GraphExec graph = nullptr;
  bool isRecording = false, hasHostWork = false;
  int64_t recordings = 0;

  std::optional<double> bandwidth, floatPeak, halfPeak;
};
} // namespace

CudaDevice::CudaDevice(std::shared_ptr<const Gpu> given,
                       const format::Program &program, FindGpuKernel find,
                       Transport *transport, int64_t rank,
                       const CudaDeviceOptions &options)
    : gpu(std::move(given)), findKernel(std::move(find)),
      isSynchronous(options.isSynchronous),
      cpu(createCpuDevice(options.threads)), pool(*gpu), mirrors(gpu, pool),
      transfers(*gpu, pool, program, transport, rank) {
  if (cuda::BlasStatus status = gpu->blas.create.function(&blas))
    throw Error(gpu->name() + ": cuBLASLt does not start: " +
                gpu->blas.getStatusString.function(status));
  workspaceBytes = cuda::workspaceBytes(*gpu);
  broughtThere = gpu->newEvent();
}

CudaDevice::~CudaDevice() {
  try {
    gpu->attach();
  } catch (const Error &) {
    return; // the process ends, or the GPU is lost
  }
  for (cuda::Stream stream : {gpu->compute, gpu->communication, gpu->copies})
    gpu->driver.streamSynchronize.function(stream);
  if (graph)
    gpu->driver.graphExecDestroy.function(graph);
  for (QueueEvents &queue : events)
    for (cuda::EventHandle event : queue.handles)
      if (event)
        gpu->driver.eventDestroy.function(event);
  gpu->driver.eventDestroy.function(broughtThere);
  products.clear();
  gpu->blas.destroy.function(blas);
}

/// Also after a run that has failed.
void CudaDevice::reset() {
  gpu->attach();
  if (isRecording) {
    cuda::Graph unfinished = nullptr;
    gpu->driver.streamEndCapture.function(gpu->compute, &unfinished);
    if (unfinished)
      gpu->driver.graphDestroy.function(unfinished);
    isRecording = false;
  }
  for (cuda::Stream stream : {gpu->compute, gpu->communication, gpu->copies})
    gpu->synchronize(stream);
  transfers.reset();
  mirrors.reset();
}

void CudaDevice::finish() {
  prepare();
  for (Queue queue : {Queue::Compute, Queue::Communication}) {
    gpu->record(broughtThere, gpu->stream(queue));
    gpu->wait(gpu->copies, broughtThere);
  }
  mirrors.bringBack(gpu->copies);
  for (cuda::Stream stream : {gpu->compute, gpu->communication, gpu->copies})
    gpu->synchronize(stream);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::shared_ptr<Buffer> CudaDevice::allocate(MemorySpace space, int64_t bytes) {
  if (space == MemorySpace::Host)
    return Buffer::allocate(bytes);
  gpu->attach();
  bool isPinned = space == MemorySpace::PinnedHost;
  void *data = isPinned ? gpu->allocatePinned(bytes)
                        : reinterpret_cast<void *>(gpu->allocate(bytes));
  ranges->emplace(addressOf(data), std::max<int64_t>(bytes, 1));
  std::shared_ptr<void> memory(
      data, [gpu = gpu, ranges = ranges, isPinned](void *data) {
        ranges->erase(addressOf(data));
        try {
          gpu->attach();
        } catch (const Error &) {
          return;
        }
        if (isPinned)
          gpu->driver.memFreeHost.function(data);
        else
          gpu->driver.memFree.function(addressOf(data));
      });
  return std::make_shared<Buffer>(Buffer{std::move(memory), bytes, true});
}

std::shared_ptr<Buffer> CudaDevice::adoptConstants(const void *data,
                                                   int64_t bytes) {
  std::shared_ptr<Buffer> buffer = allocate(MemorySpace::Device, bytes);
  cuda::upload(*gpu, pool, buffer->data.get(), data, bytes, gpu->copies);
  gpu->synchronize(gpu->copies);
  return buffer;
}

void CudaDevice::bind(BufferTable &table, std::span<const Region> regions) {
  gpu->attach();
  std::vector<void *> &addresses = addressesOf(table);
  addresses.assign(regions.size(), nullptr);
  std::vector<std::pair<size_t, Region>> ofHost;
  for (size_t i = 0; i < regions.size(); ++i) {
    const Region &region = regions[i];
    if (!region.allocation)
      continue;
    cuda::Address address = addressOf(region.allocation->data.get());
    auto after = ranges->upper_bound(address);
    if (after != ranges->begin() &&
        address < std::prev(after)->first +
                      static_cast<cuda::Address>(std::prev(after)->second))
      addresses[i] =
          static_cast<char *>(region.allocation->data.get()) + region.offset;
    else
      ofHost.emplace_back(i, region);
  }
  std::vector<void *> copies = mirrors.bind(&table, ofHost);
  for (size_t i = 0; i < ofHost.size(); ++i)
    addresses[ofHost[i].first] = copies[i];
}

/// Brings arrays there that are not.
void CudaDevice::prepare() {
  if (mirrors.areCurrent())
    return;
  mirrors.bringThere(gpu->copies);
  gpu->record(broughtThere, gpu->copies);
  gpu->wait(gpu->compute, broughtThere);
  gpu->wait(gpu->communication, broughtThere);
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

Event CudaDevice::record(Queue queue) {
  prepare();
  QueueEvents &its = events[static_cast<size_t>(queue)];
  cuda::EventHandle &event =
      its.handles[static_cast<size_t>(its.count % keptEvents)];
  if (!event)
    event = gpu->newEvent();
  gpu->record(event, gpu->stream(queue));
  return {queue, its.count++};
}

void CudaDevice::wait(Queue queue, Event event) {
  if (event.queue == queue)
    return;
  gpu->wait(gpu->stream(queue),
            events[static_cast<size_t>(event.queue)]
                .handles[static_cast<size_t>(event.number % keptEvents)]);
}

void CudaDevice::launch(Queue queue, const KernelLaunch &launch,
                        const BufferTable &table) {
  if (launch.extent <= 0)
    return;
  prepare();
  auto [it, isNew] = kernels.try_emplace(&launch);
  if (isNew)
    it->second = findKernel(launch);
  const GpuKernel &kernel = it->second;
  const std::vector<void *> &memory = addressesOf(table);
  std::vector<cuda::Address> values;
  std::vector<void *> parameters;
  values.reserve(launch.buffers.size());
  for (BufferIndex buffer : launch.buffers)
    parameters.push_back(&values.emplace_back(addressOf(memory[buffer])));
  gpu->call(gpu->driver.launchKernel, kernel.function,
            static_cast<unsigned>(kernel.blocks), 1u, 1u,
            static_cast<unsigned>(kernel.threads), 1u, 1u, 0u,
            gpu->stream(queue), parameters.data(),
            static_cast<void **>(nullptr));
  endOperation(queue);
}

void CudaDevice::copy(Queue queue, const Copy &copy, const BufferTable &table) {
  prepare();
  const std::vector<void *> &memory = addressesOf(table);
  if (memory[copy.dst] != memory[copy.src])
    gpu->copy(memory[copy.dst], memory[copy.src], copy.bytes,
              gpu->stream(queue));
  endOperation(queue);
}

int64_t CudaDevice::readInteger(Queue queue, const BufferTable &table,
                                BufferIndex buffer, DType dtype) {
  prepare();
  hasHostWork = true;
  cuda::Stream stream = gpu->stream(queue);
  PinnedPool::Block block = pool.take(8);
  gpu->copy(block.data, addressesOf(table)[buffer], byteSize(dtype), stream);
  gpu->synchronize(stream);
  BufferTable own;
  addressesOf(own) = {block.data};
  int64_t value = cpu->readInteger(queue, own, 0, dtype);
  pool.give(block, stream);
  return value;
}

//===----------------------------------------------------------------------===//
// Products and what the processor does
//===----------------------------------------------------------------------===//

void *CudaDevice::workspace(Queue queue) {
  std::shared_ptr<Buffer> &its = workspaces[static_cast<size_t>(queue)];
  if (!its)
    its = allocate(MemorySpace::Device, workspaceBytes);
  return its->data.get();
}

/// Elements from the first to the last one of a tensor with these strides.
static int64_t spanOf(std::initializer_list<std::pair<int64_t, int64_t>> dims,
                      const std::vector<Matmul::Batch> &batch,
                      int64_t Matmul::Batch::*stride) {
  int64_t span = 1;
  bool isEmpty = false;
  auto add = [&](int64_t size, int64_t step) {
    isEmpty |= size == 0;
    span += (size - 1) * step;
  };
  for (const auto &[size, step] : dims)
    add(size, step);
  for (const Matmul::Batch &dim : batch)
    add(dim.size, dim.*stride);
  return isEmpty ? 0 : span;
}

void CudaDevice::matmul(Queue queue, const Matmul &matmul,
                        const BufferTable &table) {
  prepare();
  using Batch = Matmul::Batch;
  const std::vector<void *> &memory = addressesOf(table);
  void *lhs = memory[matmul.lhs], *rhs = memory[matmul.rhs],
       *out = memory[matmul.out];
  int64_t outSpan = spanOf({{matmul.m, matmul.mOut}, {matmul.n, matmul.nOut}},
                           matmul.batch, &Batch::out);
  if (outSpan == 0)
    return;
  uint32_t alignment = cuda::alignmentOf(matmul, lhs, rhs, out);
  auto [it, isNew] = products.try_emplace({&matmul, alignment});
  if (isNew && cuda::isForBlas(matmul))
    it->second = std::make_unique<cuda::Product>(*gpu, blas, matmul, alignment,
                                                 workspaceBytes);
  if (it->second) {
    it->second->run(lhs, rhs, out, workspace(queue), gpu->stream(queue));
    return endOperation(queue);
  }
  int64_t lhsSpan = spanOf({{matmul.m, matmul.mLhs}, {matmul.k, matmul.kLhs}},
                           matmul.batch, &Batch::lhs);
  int64_t rhsSpan = spanOf({{matmul.k, matmul.kRhs}, {matmul.n, matmul.nRhs}},
                           matmul.batch, &Batch::rhs);
  // Elements between those of the result keep their values.
  computeOnHost(queue, matmul, table,
                {lhsSpan * byteSize(matmul.lhsType),
                 rhsSpan * byteSize(matmul.rhsType),
                 outSpan * byteSize(matmul.outType)},
                /*readsOut=*/true, &Device::matmul);
}

void CudaDevice::convolution(Queue queue, const Convolution &convolution,
                             const BufferTable &table) {
  prepare();
  computeOnHost(
      queue, convolution, table,
      {elementCount(convolution.lhsShape) * byteSize(convolution.lhsType),
       elementCount(convolution.rhsShape) * byteSize(convolution.rhsType),
       elementCount(convolution.outShape) * byteSize(convolution.outType)},
      /*readsOut=*/false, &Device::convolution);
}

void CudaDevice::call(Queue queue, const Call &call, const BufferTable &table) {
  prepare();
  std::vector<Operand> operands;
  auto add = [&](const std::vector<BufferIndex> &buffers, bool isWritten) {
    for (BufferIndex buffer : buffers)
      operands.push_back({addressesOf(table)[buffer],
                          call.bytes.at(operands.size()), !isWritten,
                          isWritten});
  };
  add(call.inputs, false);
  add(call.outputs, true);
  computeOnHost(queue, operands, [&](std::span<void *const> memory) {
    call.function(memory.first(call.inputs.size()),
                  memory.subspan(call.inputs.size()));
  });
}

template <typename Op>
void CudaDevice::computeOnHost(Queue queue, const Op &op,
                               const BufferTable &table,
                               std::array<int64_t, 3> bytes, bool readsOut,
                               void (Device::*method)(Queue, const Op &,
                                                      const BufferTable &)) {
  const std::vector<void *> &memory = addressesOf(table);
  std::array<Operand, 3> operands = {
      Operand{memory[op.lhs], bytes[0], true, false},
      Operand{memory[op.rhs], bytes[1], true, false},
      Operand{memory[op.out], bytes[2], readsOut, true}};
  computeOnHost(queue, operands, [&](std::span<void *const> data) {
    BufferTable own;
    std::vector<void *> &addresses = addressesOf(own);
    addresses.resize(
        static_cast<size_t>(std::max({op.lhs, op.rhs, op.out}) + 1));
    addresses[op.lhs] = data[0];
    addresses[op.rhs] = data[1];
    addresses[op.out] = data[2];
    ((*cpu).*method)(queue, op, own);
  });
}

void CudaDevice::computeOnHost(
    Queue queue, std::span<const Operand> operands,
    const std::function<void(std::span<void *const>)> &run) {
  hasHostWork = true;
  cuda::Stream stream = gpu->stream(queue);
  std::vector<PinnedPool::Block> blocks;
  std::vector<void *> memory;
  auto giveAll = [&] {
    for (PinnedPool::Block &block : blocks)
      pool.give(block, stream);
  };
  for (const Operand &operand : operands) {
    blocks.push_back(pool.take(operand.bytes));
    memory.push_back(blocks.back().data);
    if (operand.isRead)
      gpu->copy(memory.back(), operand.memory, operand.bytes, stream);
  }
  gpu->synchronize(stream);
  try {
    run(memory);
  } catch (...) {
    giveAll();
    throw;
  }
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].isWritten)
      gpu->copy(operands[i].memory, memory[i], operands[i].bytes, stream);
  giveAll();
  endOperation(queue);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

void CudaDevice::start(Queue queue, const Start &start,
                       const BufferTable &table) {
  prepare();
  hasHostWork = true;
  const std::vector<void *> &memory = addressesOf(table);
  transfers.start(start, start.src ? memory[*start.src] : nullptr,
                  start.dst ? memory[*start.dst] : nullptr, gpu->stream(queue));
}

Traffic CudaDevice::waitFor(Queue queue, int64_t transfer) {
  Traffic traffic = transfers.waitFor(transfer, gpu->stream(queue));
  transfers.postReady();
  return traffic;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

void CudaDevice::dropGraph() {
  if (graph)
    gpu->call(gpu->driver.graphExecDestroy, graph);
  graph = nullptr;
}

bool CudaDevice::repeat(const BufferTable &table) {
  if (!graph || addressesOf(table) != recorded)
    return false;
  prepare();
  gpu->call(gpu->driver.graphLaunch, graph, gpu->compute);
  return true;
}

/// The first run with some addresses loads and chooses what is needed; if none
/// of it was for the processor, the second one is recorded.
void CudaDevice::beginRecording(const BufferTable &table) {
  // Addresses that change again and again are not worth it.
  constexpr int64_t mostRecordings = 8;
  bool isKnown = recorded == addressesOf(table) && !recorded.empty();
  bool canRecord =
      isKnown && !hasHostWork && !isSynchronous && recordings < mostRecordings;
  recorded = addressesOf(table);
  hasHostWork = false;
  if (!canRecord)
    return;
  prepare();
  dropGraph();
  gpu->call(gpu->driver.streamBeginCapture, gpu->compute,
            cuda::kCaptureThreadLocal);
  isRecording = true;
  ++recordings;
}

void CudaDevice::endRecording() {
  if (!isRecording)
    return;
  isRecording = false;
  cuda::Graph made = nullptr;
  gpu->call(gpu->driver.streamEndCapture, gpu->compute, &made);
  cuda::Status status =
      gpu->driver.graphInstantiate.function(&graph, made, 0ull);
  gpu->driver.graphDestroy.function(made);
  gpu->check(gpu->driver.graphInstantiate.symbol, status);
  gpu->call(gpu->driver.graphLaunch, graph, gpu->compute);
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// The shortest of a few runs.
double CudaDevice::seconds(const std::function<void()> &put) {
  using Clock = std::chrono::steady_clock;
  double least = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    gpu->synchronize(gpu->compute);
    auto begin = Clock::now();
    put();
    gpu->synchronize(gpu->compute);
    double time = std::chrono::duration<double>(Clock::now() - begin).count();
    least = attempt == 0 ? time : std::min(least, time);
  }
  return std::max(least, 1e-9);
}

double CudaDevice::leastSeconds(double flops, double bytes,
                                std::optional<DType> product) {
  gpu->attach();
  if (!bandwidth) {
    int64_t size = int64_t(gpu->multiprocessors()) << 20;
    auto from = allocate(MemorySpace::Device, size),
         to = allocate(MemorySpace::Device, size);
    bandwidth =
        2.0 * static_cast<double>(size) / seconds([&] {
          gpu->copy(to->data.get(), from->data.get(), size, gpu->compute);
        });
  }
  bool isHalf = product == DType::BF16;
  std::optional<double> &peak = isHalf ? halfPeak : floatPeak;
  if (!peak) {
    int64_t side = int64_t(gpu->multiprocessors()) * 32;
    Matmul op;
    op.lhsType = op.rhsType = op.outType = isHalf ? DType::BF16 : DType::F32;
    op.m = op.n = op.k = side;
    op.mLhs = op.mOut = op.kRhs = side;
    op.kLhs = op.nRhs = op.nOut = 1;
    auto operand =
             allocate(MemorySpace::Device, side * side * byteSize(op.lhsType)),
         result =
             allocate(MemorySpace::Device, side * side * byteSize(op.outType));
    void *lhs = operand->data.get(), *out = result->data.get();
    cuda::Product prepared(*gpu, blas, op, 256, workspaceBytes);
    auto work = 2.0 * static_cast<double>(side) * static_cast<double>(side) *
                static_cast<double>(side);
    peak =
        work / seconds([&] {
          prepared.run(lhs, lhs, out, workspace(Queue::Compute), gpu->compute);
        });
  }
  return std::max(flops / *peak, bytes / *bandwidth);
}

std::unique_ptr<Device> createCudaDevice(const cuda::Libraries &libraries,
                                         const format::Program &program,
                                         FindGpuKernel findKernel,
                                         Transport *transport, int64_t rank,
                                         const CudaDeviceOptions &options) {
  auto gpu = std::make_shared<const Gpu>(libraries, options.gpu);
  return std::make_unique<CudaDevice>(
      std::move(gpu), program, std::move(findKernel), transport, rank, options);
}

std::unique_ptr<Device> createCudaDevice(const cuda::Libraries &libraries,
                                         const BoundProgram &program,
                                         Transport *transport, int64_t rank,
                                         const CudaDeviceOptions &options) {
  auto gpu = std::make_shared<const Gpu>(libraries, options.gpu);
  auto kernels = std::make_shared<const cuda::GpuKernels>(gpu, program);
  auto find = [kernels](const KernelLaunch &launch) {
    return kernels->find(launch);
  };
  return std::make_unique<CudaDevice>(std::move(gpu), program.program, find,
                                      transport, rank, options);
}

} // namespace whale::runtime
