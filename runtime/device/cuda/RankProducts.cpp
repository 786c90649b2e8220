//===- RankProducts.cpp - Products and library calls on a GPU -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: products, convolutions and calls with the addresses of their buffers on
// the GPU. Out: what NVIDIA's libraries have goes there, the rest to the
// processor. Peaks of the roofline are measured here, too.
//
// Cost: a look-up, and the calls of the library. A product is prepared once for
// each alignment of its operands. The processor's part: a copy of all operands
// to pinned memory, a wait for the stream, and a copy of the results back. A
// peak is measured once for each type, by a copy and by a product of 32 rows
// for each multiprocessor.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/RankDevice.h"

#include "whale/ProgramFormat/GpuArchitecture.h"

#include <algorithm>

namespace whale::runtime {

using cuda::PinnedPool;

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

/// Operations of another queue would use it at the same time.
static void requireWorkspace(Queue queue) {
  if (queue != Queue::Compute)
    throw Error("only operations of the compute queue have a workspace");
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
  Epilogue epilogue = matmul.epilogue;
  void *bias = usesBias(epilogue) ? memory[matmul.bias] : nullptr;
  void *aux = usesAux(epilogue) ? memory[matmul.aux] : nullptr;
  uint32_t alignment = cuda::alignmentOf(matmul, lhs, rhs, out, bias, aux);
  auto [it, isNew] = products.try_emplace({&matmul, alignment});
  if (isNew && cuda::isForBlas(matmul, gpu->capability(), alignment)) {
    it->second = std::make_unique<cuda::Product>(*gpu, blas, matmul, alignment,
                                                 productBytes, bias, aux);
    if (!it->second->isThere())
      it->second.reset();
  }
  if (!it->second && epilogue != Epilogue::None)
    throw Error(gpu->name() + ": a product with the epilogue '" +
                name(epilogue) +
                "' is none that cuBLASLt forms, and the "
                "processor forms none with an epilogue");
  if (it->second) {
    requireWorkspace(queue);
    const cuda::Product &product = *it->second;
    cuda::Stream stream = gpu->stream(queue);
    product.run(lhs, rhs, out, bias, aux, workspace->data.get(), stream);
    if (epilogue != Epilogue::None && !product.doesEpilogue()) {
      epilogues.prepare(matmul);
      epilogues.run(matmul, out, bias, aux, stream);
    }
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

bool CudaDevice::run(Queue queue, const cuda::GpuCall *call,
                     const BufferTable &table,
                     std::span<const BufferIndex> inputs,
                     std::span<const BufferIndex> outputs) {
  if (!call)
    return false;
  hasHostWork |= !call->isRecordable;
  auto memoryOf = [&](std::span<const BufferIndex> buffers) {
    std::vector<void *> memory;
    for (BufferIndex buffer : buffers)
      memory.push_back(addressesOf(table)[buffer]);
    return memory;
  };
  requireWorkspace(queue);
  calls.run(*call, memoryOf(inputs), memoryOf(outputs), gpu->stream(queue));
  endOperation(queue);
  return true;
}

void CudaDevice::convolution(Queue queue, const Convolution &convolution,
                             const BufferTable &table) {
  prepare();
  const std::vector<void *> &memory = addressesOf(table);
  const cuda::GpuCall *call = calls.find(
      convolution, std::array{memory[convolution.lhs], memory[convolution.rhs]},
      std::array{memory[convolution.out]});
  if (run(queue, call, table, std::array{convolution.lhs, convolution.rhs},
          std::array{convolution.out}))
    return;
  computeOnHost(
      queue, convolution, table,
      {elementCount(convolution.lhsShape) * byteSize(convolution.lhsType),
       elementCount(convolution.rhsShape) * byteSize(convolution.rhsType),
       elementCount(convolution.outShape) * byteSize(convolution.outType)},
      /*readsOut=*/false, &Device::convolution);
}

void CudaDevice::call(Queue queue, const Call &call, const BufferTable &table) {
  prepare();
  if (run(queue, calls.find(call), table, call.inputs, call.outputs))
    return;
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
  for (const Operand &operand : operands) {
    blocks.push_back(pool.take(operand.bytes, stream));
    memory.push_back(blocks.back()->data);
    if (operand.isRead)
      gpu->copy(memory.back(), operand.memory, operand.bytes, stream);
  }
  synchronize(stream);
  run(memory);
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].isWritten)
      gpu->copy(operands[i].memory, memory[i], operands[i].bytes, stream);
  endOperation(queue);
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

std::string CudaDevice::algorithmOf(const Instruction &instruction) const {
  if (auto *matmul = std::get_if<const Matmul *>(&instruction.operation)) {
    auto it = products.lower_bound({*matmul, 0});
    if (it == products.end() || it->first.first != *matmul)
      return "";
    return it->second ? it->second->algorithm() : "processor";
  }
  if (auto *op = std::get_if<const Convolution *>(&instruction.operation))
    return calls.algorithmOf(*op);
  if (auto *call = std::get_if<Call>(&instruction.operation))
    return calls.algorithmOf(call);
  return "";
}

double CudaDevice::leastSeconds(double flops, double bytes,
                                std::optional<DType> product) {
  gpu->attach();
  takeWorkspace();
  if (!bandwidth) {
    int64_t size = int64_t(gpu->multiprocessors()) << 20;
    auto from = allocate(MemorySpace::Device, size),
         to = allocate(MemorySpace::Device, size);
    bandwidth =
        2.0 * static_cast<double>(size) / gpu->seconds(gpu->compute, [&] {
          gpu->copy(to->data.get(), from->data.get(), size, gpu->compute);
        });
  }
  DType type = product.value_or(DType::F32);
  bool hasBF16 = format::findGpuArchitecture(gpu->capability()).hasBF16;
  if (type == DType::BF16 && !hasBF16)
    type = DType::F32;
  if (type != DType::F16 && type != DType::BF16 && type != DType::F64)
    type = DType::F32;
  if (!peaks.contains(type)) {
    int64_t side = int64_t(gpu->multiprocessors()) * 32;
    Matmul op;
    op.lhsType = op.rhsType = op.outType = type;
    op.m = op.n = op.k = side;
    op.mLhs = op.mOut = op.kRhs = side;
    op.kLhs = op.nRhs = op.nOut = 1;
    int64_t bytes = side * side * byteSize(type);
    auto operand = allocate(MemorySpace::Device, bytes),
         result = allocate(MemorySpace::Device, bytes);
    void *lhs = operand->data.get(), *out = result->data.get();
    cuda::Product prepared(*gpu, blas, op, 256, productBytes, nullptr, nullptr);
    auto work = 2.0 * static_cast<double>(side) * static_cast<double>(side) *
                static_cast<double>(side);
    peaks[type] = work / gpu->seconds(gpu->compute, [&] {
      prepared.run(lhs, lhs, out, nullptr, nullptr, workspace->data.get(),
                   gpu->compute);
    });
  }
  return std::max(flops / peaks[type], bytes / *bandwidth);
}

} // namespace whale::runtime
