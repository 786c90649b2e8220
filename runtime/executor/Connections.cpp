//===- Connections.cpp - How the ranks of a program are connected ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a program and its ranks. Out: its channels in their transports, and a
// device for each rank of this process. Ranks on GPUs have NCCL, unless another
// transport was asked for; where it refuses, data is staged through the host,
// or it is an Error if NCCL was asked for.
//
// Cost: once for each program; linear in ranks and channels.
//
//===----------------------------------------------------------------------===//

#include "executor/Connections.h"

#include "device/HostLinks.h"
#include "device/cuda/CudaDevice.h"

#include <cstdlib>

namespace whale::runtime {

Connections::Connections(const BoundProgram &program, Ranks &ranks)
    : program(program), ranks(ranks),
      host(std::make_unique<ProgramChannels>(ranks.host(), program.program)) {
  if (ranks.nccl())
    connectGpus();
}

/// In all processes, of which the first one tells the user.
void Connections::remark(const LoadNote &note) {
  if (ranks.map().process == 0)
    loadNotes.push_back(note);
}

void Connections::connectGpus() {
  NcclTransport &nccl = *ranks.nccl();
  // What has failed before on these ranks ends a job, but not what comes where
  // there is none.
  if (!ranks.job())
    nccl.reset();
  try {
    gpus = std::make_unique<ProgramChannels>(nccl, program.program);
  } catch (const Aborted &) {
    ranks.throwFirstError();
    throw;
  }
  nccl.settle();
  const std::string &why = nccl.refusal(gpus->offset());
  if (why.empty())
    return;
  if (ranks.options.transport)
    throw Error("the transport 'nccl' cannot carry all data: " + why);
  bool areShared = nccl.hasSharedGpus();
  remark(
      {areShared, "GPUs exchange data through the host: " + why +
                      (areShared ? "; there are more ranks than GPUs" : "")});
}

std::vector<std::unique_ptr<Device>> Connections::createDevices() {
  const RanksOptions &options = ranks.options;
  std::vector<std::unique_ptr<Device>> devices;
  if (options.lateSeed && options.gpus.empty())
    devices = createLateDevices(program.program, options.threadsPerRank, *host,
                                *options.lateSeed);
  devices.resize(ranks.map().processOf.size());
  std::shared_ptr<HostLinks> links;
  if (options.network)
    links = std::make_shared<HostLinks>(options.network, ranks.map().local);
  const char *synchronous = std::getenv("WHALE_CUDA_SYNCHRONOUS");
  const char *choices = std::getenv("WHALE_CUDA_CHOICES");
  for (int64_t rank : ranks.map().local) {
    std::shared_ptr<CpuContext> context = ranks.rank(rank).context;
    if (!ranks.gpus().empty() && ranks.gpus()[rank])
      devices[rank] = createCudaDevice(
          ranks.gpus()[rank], program, host.get(), rank,
          {.context = std::move(context),
           .isSynchronous = synchronous && *synchronous,
           .choices = choices ? choices : "",
           .nccl = ranks.nccl(),
           .ncclOffset = gpus ? gpus->offset() : 0,
           .remark = [this](const LoadNote &note) { remark(note); }});
    else if (!devices[rank])
      devices[rank] =
          createCpuDevice(std::move(context), host.get(), rank, links);
  }
  return devices;
}

std::optional<int64_t>
Connections::awaited(int64_t rank, const Instruction &instruction) const {
  NcclTransport *nccl = ranks.nccl();
  if (nccl)
    if (std::optional<int64_t> channel = nccl->awaited(rank))
      return channel;
  // Of what the GPUs exchange only streams wait.
  const auto *wait = std::get_if<Wait>(&instruction.operation);
  if (!wait || (nccl && nccl->carries(gpus->offset() + wait->channel)))
    return std::nullopt;
  return wait->channel;
}

void Connections::reset() {
  host->reset();
  if (gpus)
    gpus->reset();
}

void Connections::finish(int64_t rank) {
  host->finish(rank);
  if (gpus)
    gpus->finish(rank);
}

bool Connections::settle() {
  bool isSettled = !gpus || gpus->settle();
  return host->settle() && isSettled;
}

void Connections::release() {
  host.release();
  gpus.release();
}

} // namespace whale::runtime
