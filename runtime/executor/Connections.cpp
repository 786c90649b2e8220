//===- Connections.cpp - How the ranks of a program are connected ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the program, the options, and which ranks run in which process. Out: the
// transports, and a device for each rank of this process. Between all ranks
// there is one transport through the hosts' memory, by default `local` in one
// process and UCX between several. Ranks on GPUs have NCCL besides, unless
// another transport was asked for; where it refuses, data is staged through the
// host, or it is an Error if NCCL was asked for. The ranks of a host take the
// GPUs of their kinds, in turn where there are several (AssignGpus.h).
//
// Cost: once for each program; linear in ranks and channels. Between processes
// a few exchanges of texts, each of all with all, in which every process waits
// for the last; then what the transports take to connect.
//
//===----------------------------------------------------------------------===//

#include "executor/Connections.h"

#include "HostId.h"
#include "device/cuda/CudaDevice.h"
#include "executor/AssignGpus.h"
#include "transport/message/MessageTransport.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace whale::runtime {

Ranks::Ranks(size_t count, std::shared_ptr<Job> given) : job(std::move(given)) {
  auto ranks = static_cast<int64_t>(count);
  int64_t processes = job ? job->processes() : 1;
  process = job ? job->process() : 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    processOf.push_back(processOfRank(rank, ranks, processes));
    if (processOf.back() == process)
      local.push_back(rank);
  }
  if (processes == 1)
    job = nullptr;
}

static Exchange exchangeOf(const Ranks &place, const char *what) {
  return [job = place.job, what](const std::string &mine) {
    return job ? job->allGather(what, mine) : std::vector<std::string>{mine};
  };
}

/// Hosts are numbered in the order of the processes.
static Topology findHosts(const Ranks &place) {
  std::map<std::string, unsigned> numbers;
  std::vector<unsigned> hosts;
  for (const std::string &host : exchangeOf(place, "hosts")(hostId()))
    hosts.push_back(
        numbers.try_emplace(host, static_cast<unsigned>(numbers.size()))
            .first->second);
  Topology topology;
  for (int64_t process : place.processOf)
    topology.node.push_back(hosts[place.job ? process : 0]);
  return topology;
}

static std::unique_ptr<Transport> createTransport(const BoundProgram &program,
                                                  const LoadOptions &options,
                                                  const Ranks &place) {
  TransportKind kind = options.transport.value_or(TransportKind::Nccl);
  if (kind == TransportKind::Nccl)
    kind = place.job ? TransportKind::Ucx : TransportKind::Local;
  if (kind == TransportKind::Local) {
    if (place.job)
      throw Error("the transport 'local' is for ranks of one process");
    // Late devices measure nothing.
    return createLocalTransport(program.program,
                                options.lateSeed ? Network() : options.network);
  }
  Exchange exchange = exchangeOf(place, "addresses of the transport");
  std::unique_ptr<Mover> mover;
  try {
    mover = kind == TransportKind::Ucx ? createUcxMover(exchange)
                                       : createMpiMover(exchange);
  } catch (const Error &error) {
    // Where NCCL must carry all, nothing of a step goes this way.
    if (options.transport != TransportKind::Nccl)
      throw;
    mover = createNoMover(error.what());
  }
  return createMessageTransport(program.program, place.processOf, place.process,
                                std::move(mover),
                                options.lateSeed ? Network() : options.network);
}

Connections::Connections(const BoundProgram &program,
                         const LoadOptions &options, const Ranks &place)
    : program(program), options(options), hostOfRank(findHosts(place)),
      transport(createTransport(program, options, place)) {
  if (program.program.target == "cuda")
    findGpus(place);
  else if (options.transport == TransportKind::Nccl)
    throw Error("the transport 'nccl' is for programs for 'cuda', this one is "
                "for '" +
                program.program.target + "'");
}

/// What the GPU of a rank has to be: what its class was compiled for, and of
/// its kind.
static WantedGpu findWanted(const format::Program &program, int64_t rank) {
  WantedGpu wanted;
  wanted.rank = rank;
  const std::string &arch = program.classes[program.ranks[rank].rankClass].arch;
  if (!arch.empty())
    wanted.capability = format::capabilityOf(arch);
  auto kind = program.gpuKinds.find(program.ranks[rank].kind);
  if (kind == program.gpuKinds.end())
    return wanted;
  wanted.kind = kind->first;
  wanted.memoryBytes = kind->second.memoryBytes;
  wanted.isExact = !kind->second.arch.empty();
  if (wanted.isExact)
    wanted.capability = format::capabilityOf(kind->second.arch);
  return wanted;
}

void Connections::findGpus(const Ranks &place) {
  static const cuda::Libraries none;
  const cuda::Libraries *libraries = &none;
  gpus.resize(place.processOf.size());
  if (std::ranges::any_of(place.local,
                          [&](size_t rank) { return isOnGpu(rank); })) {
    libraries =
        program.testLibraries ? program.testLibraries : &cuda::openLibraries();
    std::vector<cuda::GpuFacts> found = cuda::findGpus(*libraries);
    if (found.empty())
      throw Error("the driver finds no GPU");
    // Processes of one host see the same GPUs, and agree about them.
    std::vector<WantedGpu> wanted;
    for (size_t rank = 0; rank < place.processOf.size(); ++rank)
      if (isOnGpu(rank) &&
          hostOfRank.node[rank] == hostOfRank.node[place.local.front()]) {
        wanted.push_back(
            findWanted(program.program, static_cast<int64_t>(rank)));
        wanted.back().isHere = place.isLocal(rank);
      }
    std::vector<int> numbers = assignGpus(wanted, found);
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i].isHere)
        gpus[wanted[i].rank] =
            std::make_shared<cuda::Gpu>(*libraries, numbers[i]);
  }
  if (options.transport.value_or(TransportKind::Nccl) != TransportKind::Nccl)
    return;
  gpuTransport = createNcclTransport(program.program, gpus, *libraries,
                                     exchangeOf(place, "GPUs"));
  std::string why = gpuTransport->refusal();
  if (options.transport && !why.empty())
    throw Error("the transport 'nccl' cannot carry all data: " + why);
  if (!why.empty() && place.process == 0)
    loadNotes.push_back(
        {gpuTransport->hasSharedGpus(),
         "GPUs exchange data through the host: " + why +
             (gpuTransport->hasSharedGpus() ? "; there are more ranks than GPUs"
                                            : "")});
}

void Connections::connect() {
  if (gpuTransport)
    gpuTransport->connect();
}

std::vector<std::unique_ptr<Device>>
Connections::createDevices(const Ranks &place) {
  std::vector<std::unique_ptr<Device>> devices;
  if (options.lateSeed && gpus.empty())
    devices = createLateDevices(program.program, options.threadsPerRank,
                                *transport, *options.lateSeed);
  devices.resize(place.processOf.size());
  const char *synchronous = std::getenv("WHALE_CUDA_SYNCHRONOUS");
  const char *choices = std::getenv("WHALE_CUDA_CHOICES");
  auto remark = [&](const LoadNote &note) {
    if (place.process == 0)
      loadNotes.push_back(note);
  };
  for (int64_t rank : place.local)
    if (!gpus.empty() && gpus[rank])
      devices[rank] =
          createCudaDevice(gpus[rank], program, transport.get(), rank,
                           {.threads = options.threadsPerRank,
                            .isSynchronous = synchronous && *synchronous,
                            .choices = choices ? choices : "",
                            .nccl = gpuTransport.get(),
                            .remark = remark});
    else if (!devices[rank])
      devices[rank] =
          createCpuDevice(options.threadsPerRank, transport.get(), rank);
  return devices;
}

std::optional<int64_t>
Connections::awaited(int64_t rank, const Instruction &instruction) const {
  if (gpuTransport)
    if (std::optional<int64_t> channel = gpuTransport->awaited(rank))
      return channel;
  // Of what the GPUs exchange only streams wait.
  const auto *wait = std::get_if<Wait>(&instruction.operation);
  if (!wait || (gpuTransport && gpuTransport->carries(wait->channel)))
    return std::nullopt;
  return wait->channel;
}

void Connections::reset() {
  transport->reset();
  if (gpuTransport)
    gpuTransport->reset();
}

void Connections::finish(int64_t rank) {
  transport->finish(rank);
  if (gpuTransport)
    gpuTransport->finish(rank);
}

void Connections::abort() {
  transport->abort();
  if (gpuTransport)
    gpuTransport->abort();
}

bool Connections::settle() {
  bool isSettled = !gpuTransport || gpuTransport->settle();
  return transport->settle() && isSettled;
}

void Connections::release() {
  transport.release();
  gpuTransport.release();
}

} // namespace whale::runtime
