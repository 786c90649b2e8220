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

/// An error that ended a transfer of a channel, by the number that this was
/// added with.
struct TransferError : Error {
  TransferError(int64_t channel, const std::string &what)
      : Error(what), channel(channel) {}
  const int64_t channel;
};

/// A transport whose buffers are in the memory of the ranks' GPUs, of those
/// channels that can go this way. `start` puts the rank's part on its
/// communication stream, behind what is there. Channels are added and dropped
/// while no rank is at work; that makes the communicators that they need,
/// opening NCCL where they need any, and is ended by `abort`, from another
/// thread, with Aborted.
class NcclTransport : public Transport {
public:
  /// Whether a channel goes this way: each rank that exchanges data in it is on
  /// a GPU of its own, and its reduction has a kernel. The same in all
  /// processes.
  virtual bool carries(int64_t channel) const = 0;
  /// Why it does not carry all channels that were added with this result; empty
  /// where it does.
  virtual const std::string &refusal(int64_t first) const = 0;
  /// Whether ranks, of any process, share a GPU.
  virtual bool hasSharedGpus() const = 0;
  /// Whether all ranks are on GPUs of their own, of which each can send
  /// messages to each.
  virtual bool carriesMessages() const = 0;
  /// Makes what messages need, if it is not there; as for channels. Returns why
  /// a process cannot, the same in all: nothing has changed then.
  virtual std::string connectMessages() = 0;
  /// In place of `wait`: what is put on the stream from now on runs after the
  /// transfer. Returns at once.
  virtual Traffic order(int64_t rank, const Ticket &ticket,
                        cuda::Stream stream) = 0;
  /// The channel, by the number that it was added with, of the first transfer
  /// that is not done, while the rank waits for its GPU. From any thread.
  virtual std::optional<int64_t> awaited(int64_t rank) const = 0;
  /// Memory that it has taken of the rank's GPU.
  virtual int64_t scratchBytes(int64_t rank) const = 0;
  /// Takes the memory that transfers of the channels which were added with this
  /// result stage in, unless it is there; before the rank's first one of a run.
  virtual void reserve(int64_t rank, int64_t first) = 0;
  /// Frees it; false where there is none. On any thread, while the rank is not
  /// at work.
  virtual bool giveBack(int64_t rank) = 0;
};

/// A transport of ranks with these GPUs: by rank, null for those of other
/// processes and those that are on no GPU. Collective where `exchange` is. The
/// libraries outlive it. Throws Error.
std::unique_ptr<NcclTransport>
createNcclTransport(const cuda::Libraries &libraries,
                    std::vector<std::shared_ptr<cuda::Gpu>> gpus,
                    Exchange exchange);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_NCCL_NCCLTRANSPORT_H
