//===- CudaDevice.cpp - A device that computes on a GPU -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the operations of a rank. Out: calls of the driver and of NVIDIA's
// libraries. Each queue is a stream; events are events of CUDA. Arguments and
// results, which are in the host's memory, have copies on the GPU (Mirrors.h).
// Transfers between GPUs are put on the communication stream (NcclTransport.h);
// others go through the host (Transfers.h). So does what no library has:
// operands are copied to pinned memory, the processor computes, and the results
// are copied back; the rank waits meanwhile. A part of a run without such
// operations, transfers and control flow is recorded as a CUDA graph when it
// comes for the second time, as long as the run's addresses stay the same. A
// run that is one such part may be left on the streams; an event says when it
// is over.
//
// Cost: for each operation a call of the driver and a look-up. A recorded part
// is one launch, found by comparing the addresses with those of at most 32
// sets. A run ends with a wait for all streams. With NCCL every 64th operation
// waits until the one 64 before is done.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/RankDevice.h"

#include "device/cuda/Kernels.h"

#include <algorithm>

namespace whale::runtime {

using cuda::addressOf;
using cuda::Gpu;
using cuda::PinnedPool;

static bool usesNccl(const format::Program &program,
                     const CudaDeviceOptions &options, int64_t rank) {
  return options.nccl &&
         std::ranges::any_of(program.channels, [&](const auto &entry) {
           const auto &[number, channel] = entry;
           return options.nccl->carries(options.ncclOffset + number) &&
                  std::ranges::count(channel->participants, rank);
         });
}

CudaDevice::CudaDevice(std::shared_ptr<const Gpu> given,
                       const format::Program &program, FindGpuKernel find,
                       Transport *transport, int64_t rank,
                       const CudaDeviceOptions &options)
    : gpu(std::move(given)), findKernel(std::move(find)),
      isSynchronous(options.isSynchronous), nccl(options.nccl),
      ncclOffset(options.ncclOffset), rank(rank),
      cpu(createCpuDevice(options.context ? options.context
                                          : createCpuContext(1))),
      pool(*gpu), mirrors(gpu, pool),
      transfers(*gpu, pool, program, transport, rank),
      hasPeers(usesNccl(program, options, rank)),
      plannedWorkspace(
          program.classes[program.ranks[rank].rankClass].workspaceBytes),
      productBytes(std::min(plannedWorkspace,
                            cuda::workspaceOfProducts(gpu->capability()))),
      calls(*gpu, plannedWorkspace, options.choices), epilogues(*gpu) {
  if (cuda::BlasStatus status = gpu->tryLibrary(gpu->blas.create, &blas))
    throw Error(gpu->name() + ": cuBLASLt does not start: " +
                gpu->blas.getStatusString.function(status));
  broughtThere = gpu->newEvent();
  if (hasPeers)
    for (cuda::EventHandle &event : passed)
      event = gpu->newEvent();
}

CudaDevice::~CudaDevice() {
  lender.reset();
  try {
    gpu->attach();
  } catch (const Error &) {
    return; // the process ends, or the GPU is lost
  }
  for (cuda::Stream stream : {gpu->compute, gpu->communication, gpu->copies})
    gpu->driver.streamSynchronize.function(stream);
  destroyRecordings();
  for (QueueEvents &queue : events)
    for (cuda::EventHandle event : queue.handles)
      if (event)
        gpu->driver.eventDestroy.function(event);
  for (cuda::EventHandle event : passed)
    if (event)
      gpu->driver.eventDestroy.function(event);
  gpu->driver.eventDestroy.function(broughtThere);
  gpuMarks.reset();
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
  for (Recordings &run : runs)
    for (auto &[part, recording] : run.parts)
      recording.isBegun = recording.isComplete;
  settle();
  transfers.reset();
  tickets.clear();
  mirrors.reset();
}

void CudaDevice::settle() {
  for (cuda::Stream stream : {gpu->compute, gpu->communication, gpu->copies})
    gpu->synchronize(stream);
  left.clear();
}

void CudaDevice::finish() {
  prepare();
  for (Queue queue : {Queue::Compute, Queue::Communication}) {
    gpu->record(broughtThere, gpu->stream(queue));
    gpu->wait(gpu->copies, broughtThere);
  }
  mirrors.deliver(gpu->copies);
  settle();
  if (!runs.empty())
    for (auto &[part, recording] : runs.front().parts)
      recording.isComplete |= recording.isBegun;
  mirrors.bringBack(gpu->copies);
}

/// A graph is on the compute stream alone, behind what was brought there for
/// it.
std::function<bool()> CudaDevice::leave() {
  if (!isRepeated || !mirrors.areOfArrays()) {
    finish();
    return nullptr;
  }
  mirrors.deliver(gpu->compute);
  Event last = record(Queue::Compute);
  cuda::EventHandle end =
      events[static_cast<size_t>(last.queue)]
          .handles[static_cast<size_t>(last.number % keptEvents)];
  left.push_back({end, mirrors.bringBack(gpu->copies)});
  return [gpu = gpu, end] {
    gpu->attach();
    return gpu->isReached(end);
  };
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
  gpu->owned->add(addressOf(data), bytes);
  std::shared_ptr<void> memory(data, [gpu = gpu, isPinned](void *data) {
    gpu->owned->remove(addressOf(data));
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

/// Recorded graphs name it.
void CudaDevice::useWorkspace(const std::shared_ptr<Buffer> &memory) {
  if (memory == workspace)
    return;
  gpu->attach();
  destroyRecordings();
  workspace = memory;
  calls.setWorkspace(workspace->data.get());
}

/// Unless it was given some.
void CudaDevice::takeWorkspace() {
  if (!workspace)
    useWorkspace(allocate(MemorySpace::Device, plannedWorkspace));
}

/// Recorded graphs have memory of their own.
void CudaDevice::giveBack() {
  gpu->attach();
  // Another program may be at work on the streams.
  for (const Left &run : left)
    gpu->synchronize(run.end);
  left.clear();
  destroyRecordings();
  mirrors.giveBack();
  workspace.reset();
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
  takeWorkspace();
  if (hasPeers)
    nccl->reserve(rank, ncclOffset);
  while (!left.empty() && gpu->isReached(left.front().end))
    left.pop_front();
  std::vector<void *> &addresses = addressesOf(table);
  addresses.assign(regions.size(), nullptr);
  std::vector<std::pair<size_t, Region>> ofHost;
  for (size_t i = 0; i < regions.size(); ++i) {
    const Region &region = regions[i];
    if (!region.allocation)
      continue;
    if (gpu->owned->contains(addressOf(region.allocation->data.get())))
      addresses[i] =
          static_cast<char *>(region.allocation->data.get()) + region.offset;
    else
      ofHost.emplace_back(i, region);
  }
  std::vector<void *> copies = mirrors.bind(&table, ofHost);
  gpu->attach(); // an array may have come from another GPU
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

/// The driver has room for some thousand operations of a stream. Who puts more
/// there waits inside of it, and does not see that another rank is lost, for
/// which the stream waits: a rank is at most two stretches ahead of its GPU.
void CudaDevice::endOperation(Queue queue) {
  constexpr int64_t stretch = 64;
  if (isRecording)
    return;
  if (isSynchronous)
    return synchronize(gpu->stream(queue));
  if (!hasPeers || ++operations % stretch != 0)
    return;
  for (Queue each : {Queue::Compute, Queue::Communication}) {
    cuda::EventHandle event = passed[static_cast<size_t>(each)];
    synchronize(event);
    gpu->record(event, gpu->stream(each));
  }
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
  PinnedPool::Block block = pool.take(8, stream);
  gpu->copy(block->data, addressesOf(table)[buffer], byteSize(dtype), stream);
  synchronize(stream);
  BufferTable own;
  addressesOf(own) = {block->data};
  return cpu->readInteger(queue, own, 0, dtype);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

void CudaDevice::start(Queue queue, const Start &start,
                       const BufferTable &table) {
  prepare();
  hasHostWork = true;
  std::vector<PartBuffers> parts = buffersOf(start, table);
  int64_t channel = ncclOffset + start.channel;
  if (!nccl || !nccl->carries(channel))
    return transfers.start(start, parts, gpu->stream(queue));
  if (queue != Queue::Communication)
    wait(Queue::Communication, record(queue));
  tickets[start.transfer] = nccl->start(rank, channel, parts);
  endOperation(Queue::Communication);
}

Traffic CudaDevice::waitFor(Queue queue, int64_t transfer) {
  if (auto it = tickets.find(transfer); it != tickets.end())
    return nccl->order(rank, tickets.extract(it).mapped(), gpu->stream(queue));
  Traffic traffic = transfers.waitFor(transfer, gpu->stream(queue));
  transfers.postReady();
  return traffic;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

CudaDevice::Recordings *CudaDevice::findRecordings(const BufferTable &table) {
  auto it = std::ranges::find(runs, addressesOf(table), &Recordings::addresses);
  if (it == runs.end())
    return nullptr;
  std::rotate(runs.begin(), it, it + 1);
  return &runs.front();
}

void CudaDevice::destroy(const Recordings &run) {
  for (const auto &[part, recording] : run.parts)
    if (recording.graph)
      gpu->driver.graphExecDestroy.function(recording.graph);
}

void CudaDevice::destroyRecordings() {
  for (const Recordings &run : runs)
    destroy(run);
  runs.clear();
  current = nullptr;
}

bool CudaDevice::repeat(const BufferTable &table, size_t part) {
  Recordings *run = findRecordings(table);
  cuda::GraphExec graph = run ? run->parts[part].graph : nullptr;
  isRepeated = graph;
  if (!graph)
    return false;
  prepare();
  gpu->call(gpu->driver.graphLaunch, graph, gpu->compute);
  endOperation(Queue::Compute);
  return true;
}

/// Records a part if it has shown in a run with these addresses that nothing of
/// it is for the processor.
bool CudaDevice::beginRecording(const BufferTable &table, size_t part) {
  if (!left.empty())
    settle();
  if (!findRecordings(table))
    runs.push_front({addressesOf(table)});
  if (runs.size() > cuda::mostLayouts) {
    destroy(runs.back());
    runs.pop_back();
  }
  Recordings &run = runs.front();
  current = &run.parts[part];
  current->isBegun = true;
  hasHostWork = false;
  if (!current->isComplete || current->hasHostWork || isSynchronous)
    return false;
  prepare();
  // After an error another thread may end it, which only this mode allows.
  gpu->call(gpu->driver.streamBeginCapture, gpu->compute,
            cuda::kCaptureRelaxed);
  isRecording = true;
  return true;
}

void CudaDevice::endRecording() {
  if (!std::exchange(isRecording, false)) {
    current->hasHostWork = hasHostWork;
    return;
  }
  cuda::Graph made = nullptr;
  gpu->call(gpu->driver.streamEndCapture, gpu->compute, &made);
  cuda::GraphExec &graph = current->graph;
  cuda::Status status =
      gpu->tryCall(gpu->driver.graphInstantiate, &graph, made, 0ull);
  gpu->driver.graphDestroy.function(made);
  gpu->check(gpu->driver.graphInstantiate.symbol, status);
  gpu->call(gpu->driver.graphLaunch, graph, gpu->compute);
  endOperation(Queue::Compute);
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

size_t CudaDevice::mark(Queue queue) {
  prepare();
  if (!gpuMarks)
    gpuMarks.emplace(gpu);
  gpuMarks->put(marks.size(), gpu->stream(queue));
  return Device::mark(queue);
}

std::span<const Device::Clock::time_point> CudaDevice::timesOfMarks() {
  if (gpuMarks)
    gpuMarks->read(marks);
  return marks;
}

std::unique_ptr<Device> createCudaDevice(std::shared_ptr<const Gpu> gpu,
                                         const format::Program &program,
                                         FindGpuKernel findKernel,
                                         Transport *transport, int64_t rank,
                                         const CudaDeviceOptions &options) {
  return std::make_unique<CudaDevice>(
      std::move(gpu), program, std::move(findKernel), transport, rank, options);
}

std::unique_ptr<Device> createCudaDevice(std::shared_ptr<const Gpu> gpu,
                                         const BoundProgram &program,
                                         Transport *transport, int64_t rank,
                                         const CudaDeviceOptions &options) {
  auto remark = [&](const std::string &text) {
    if (options.remark)
      options.remark({/*isWarning=*/false, text});
  };
  auto kernels =
      std::make_shared<const cuda::GpuKernels>(gpu, program, rank, remark);
  if (!program.classes.empty())
    if (std::string lack =
            cuda::findAttentionLack(*gpu, program.boundClassOf(rank));
        !lack.empty() && options.remark)
      options.remark({/*isWarning=*/true, lack});
  auto find = [kernels](const KernelLaunch &launch) {
    return kernels->find(launch);
  };
  return std::make_unique<CudaDevice>(std::move(gpu), program.program, find,
                                      transport, rank, options);
}

} // namespace whale::runtime
