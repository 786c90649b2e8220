//===- NcclTransport.h - Ranks on GPUs, by NCCL -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_NCCL_NCCLTRANSPORT_H
#define WHALE_RUNTIME_TRANSPORT_NCCL_NCCLTRANSPORT_H

#include "cuda/Gpu.h"
#include "transport/Transport.h"
#include "transport/message/Mover.h"

namespace whale::runtime {

/// An error that ended a transfer.
struct TransferError : Error {
  TransferError(int64_t channel, const std::string &what)
      : Error(what), channel(channel) {}
  const int64_t channel;
};

namespace nccl {
class Communicators;
} // namespace nccl

/// A transport of some channels whose buffers are in the memory of the ranks'
/// GPUs. `start` puts the rank's part on its communication stream, behind what
/// is there. Several may have the same ranks, if one is used at a time, from
/// `reset` to `settle`; an abort is for all.
class NcclTransport : public Transport {
public:
  /// Whether a channel goes this way: each rank that exchanges data in it is on
  /// a GPU of its own, and its reduction has a kernel. The same in all
  /// processes.
  virtual bool carries(int64_t channel) const = 0;
  /// Why it does not carry all channels; empty where it does.
  virtual const std::string &refusal() const = 0;
  /// Whether ranks, of any process, share a GPU.
  virtual bool hasSharedGpus() const = 0;
  /// Called once, before anything is started. Collective where the transport's
  /// exchange is; `abort` ends it, from another thread, with Aborted. NCCL is
  /// opened where it carries something. Throws Error.
  virtual void connect() = 0;
  /// In place of `wait`: what is put on the stream from now on runs after the
  /// transfer. Returns at once.
  virtual Traffic order(int64_t rank, const Ticket &ticket,
                        cuda::Stream stream) = 0;
  /// The channel of the first transfer that is not done, while the rank waits
  /// for its GPU. From any thread.
  virtual std::optional<int64_t> awaited(int64_t rank) const = 0;
  /// Memory that it has taken of the rank's GPU.
  virtual int64_t scratchBytes(int64_t rank) const = 0;
};

/// What the ranks of several transports use together. `gpus`: by rank, null for
/// those of other processes and those that are on no GPU. Collective where
/// `exchange` is. The libraries outlive it. Throws Error.
std::shared_ptr<nccl::Communicators>
createCommunicators(const cuda::Libraries &libraries,
                    std::vector<std::shared_ptr<cuda::Gpu>> gpus,
                    Exchange exchange);

/// Throws Error.
std::unique_ptr<NcclTransport>
createNcclTransport(const Channels &channels,
                    std::shared_ptr<nccl::Communicators> communicators);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_NCCL_NCCLTRANSPORT_H
