//===- RankDevice.h - The device of a rank on a GPU -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The class behind createCudaDevice. RankProducts.cpp implements products,
// convolutions and library calls, CudaDevice.cpp all else. It keeps what is
// found or made once: 64 events of each queue in a ring, kernels and calls by
// instruction, products by the alignment of their operands, and the recorded
// graphs by the addresses of their buffers, of the last sets of these. All
// operations use one workspace, which the program plans, one after the other.
//
// Cost: a look-up for each operation, and a call of the driver or of a library
// for each that is not in a recorded graph (CudaDevice.cpp). On the GPU: the
// rank's arena and constants, that workspace, and copies of arguments and
// results.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_RANKDEVICE_H
#define WHALE_RUNTIME_DEVICE_CUDA_RANKDEVICE_H

#include "cuda/EpilogueKernels.h"
#include "device/cuda/Calls.h"
#include "device/cuda/CudaDevice.h"
#include "device/cuda/Marks.h"
#include "device/cuda/Mirrors.h"
#include "device/cuda/Products.h"
#include "device/cuda/Transfers.h"

#include <array>
#include <map>

namespace whale::runtime {

class CudaDevice : public Device {
public:
  CudaDevice(std::shared_ptr<const cuda::Gpu> gpu,
             const format::Program &program, FindGpuKernel findKernel,
             Transport *transport, int64_t rank,
             const CudaDeviceOptions &options);
  ~CudaDevice() override;

  void attachThread() override {
    gpu->attach();
    cpu->attachThread();
  }
  void reset() override;
  void finish() override;
  std::function<bool()> leave() override;

  void lend(std::function<bool()> giveBack) override {
    lender.reset();
    if (giveBack)
      lender.emplace(*gpu, cuda::Lender::Turn::Last, std::move(giveBack));
  }
  void giveBack() override;

  int64_t workspaceBytes() const override { return plannedWorkspace; }
  void useWorkspace(const std::shared_ptr<Buffer> &memory) override;

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
  /// checkTarget refuses programs that have any.
  void startCopy(Queue, const Start &, int64_t, const BufferTable &) override {
    throw Error("GPUs take no copies from and to the host's memory");
  }
  Traffic waitFor(Queue queue, int64_t transfer) override;

  bool repeat(const BufferTable &table, size_t part) override;
  bool beginRecording(const BufferTable &table, size_t part) override;
  void endRecording() override;

  size_t mark(Queue queue) override;
  std::span<const Clock::time_point> timesOfMarks() override;
  double leastSeconds(double flops, double bytes,
                      std::optional<DType> product) override;
  std::string algorithmOf(const Instruction &instruction) const override;
  int64_t scratchBytes() const override {
    return mirrors.bytes() + plannedWorkspace +
           (nccl ? nccl->scratchBytes(rank) : 0);
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
  /// False without a call.
  bool run(Queue queue, const cuda::GpuCall *call, const BufferTable &table,
           std::span<const BufferIndex> inputs,
           std::span<const BufferIndex> outputs);
  void takeWorkspace();
  void prepare();
  void endOperation(Queue queue);
  /// Waits for a stream or an event; other ranks get meanwhile what they wait
  /// for.
  template <typename Handle>
  void synchronize(Handle handle) {
    if (transfers.areUnderWay())
      gpu->synchronize(handle, [this] { transfers.advance(); });
    else
      gpu->synchronize(handle);
  }

  std::shared_ptr<const cuda::Gpu> gpu;
  FindGpuKernel findKernel;
  const bool isSynchronous;
  NcclTransport *const nccl;
  const int64_t ncclOffset;
  const int64_t rank;
  /// The transfers that it carries, by their numbers.
  std::map<int64_t, Ticket> tickets;
  std::unique_ptr<Device> cpu;
  cuda::PinnedPool pool;
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
  /// Whether this rank exchanges data by NCCL; if so, how many operations it
  /// has put on its streams, and how far each was a while ago.
  const bool hasPeers;
  int64_t operations = 0;
  std::array<cuda::EventHandle, 2> passed = {};
  cuda::EventHandle broughtThere = nullptr;
  std::optional<cuda::Marks> gpuMarks;
  /// Waits for all that is on the streams.
  void settle();
  /// Runs that were left, until they are known to be over: memory that they use
  /// is nobody else's.
  struct Left {
    cuda::EventHandle end;
    std::vector<std::shared_ptr<cuda::ArrayCopy>> arrays;
  };
  std::deque<Left> left;

  std::unordered_map<const KernelLaunch *, GpuKernel> kernels;
  cuda::BlasHandle blas = nullptr;
  /// Of the compute queue.
  const int64_t plannedWorkspace;
  std::shared_ptr<Buffer> workspace;
  /// Of it, what products may use.
  const int64_t productBytes;
  cuda::Calls calls;
  /// By product and the alignment of its operands; null for those that the
  /// processor does.
  std::map<std::pair<const Matmul *, uint32_t>, std::unique_ptr<cuda::Product>>
      products;
  cuda::EpilogueKernels epilogues;

  /// A part of runs with the same addresses: the first one loads and chooses
  /// what is needed, the second one is recorded.
  struct Recording {
    cuda::GraphExec graph = nullptr;
    /// Whether a run has begun it and come to its end, so that all is known and
    /// taken that it needs.
    bool isBegun = false, isComplete = false;
    /// Whether something of it is for the processor.
    bool hasHostWork = false;
  };
  struct Recordings {
    std::vector<void *> addresses;
    std::map<size_t, Recording> parts = {};
  };
  Recordings *findRecordings(const BufferTable &table);
  void destroy(const Recordings &run);
  void destroyRecordings();
  /// The last one first. Arrays that a caller keeps for a while lie in two or
  /// three places in turn.
  std::deque<Recordings> runs;
  Recording *current = nullptr;
  bool isRecording = false, isRepeated = false, hasHostWork = false;

  std::optional<double> bandwidth;
  /// Of products, by their type.
  std::map<DType, double> peaks;

  /// Last: what it gives back is still there when it goes.
  std::optional<cuda::Lender> lender;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CUDA_RANKDEVICE_H
