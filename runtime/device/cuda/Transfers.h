//===- Transfers.h - Transfers through the host -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_TRANSFERS_H
#define WHALE_RUNTIME_DEVICE_CUDA_TRANSFERS_H

#include "device/Device.h"
#include "device/cuda/Staging.h"

#include <deque>

namespace whale::runtime::cuda {

/// Transports read and write the host's memory: what a rank sends is copied
/// there when the GPU has computed it, and posted then; what it receives is
/// copied to the GPU when it is waited for. Posts keep the order of the starts.
class Transfers {
public:
  Transfers(const Gpu &gpu, PinnedPool &pool, const format::Program &program,
            Transport *transport, int64_t rank)
      : gpu(gpu), pool(pool), program(program), transport(transport),
        rank(rank) {}
  ~Transfers();

  /// Forgets those of a run that was stopped; no stream does anything.
  void reset();
  void start(const Start &start, std::span<const PartBuffers> parts,
             Stream stream);
  /// Posts those whose data is there.
  void postReady();
  /// Moves those forward that are under way: others may wait for this rank's
  /// part.
  void advance();
  bool areUnderWay() const { return !open.empty(); }
  /// Returns when the transfer is done but for a copy on `gpu.copies`, which
  /// the stream waits for.
  Traffic waitFor(int64_t number, Stream stream);

private:
  /// Of one part of the channel.
  struct Staged {
    PinnedPool::Block src, dst;
    void *target = nullptr;
    int64_t dstBytes = 0;
  };
  struct Transfer {
    int64_t number, channel;
    std::vector<Staged> parts;
    EventHandle staged = nullptr;
    bool isPosted = false;
    Ticket ticket;
  };
  void post(Transfer &transfer);
  EventHandle takeEvent();

  const Gpu &gpu;
  PinnedPool &pool;
  const format::Program &program;
  Transport *transport;
  int64_t rank;
  /// In the order of their starts.
  std::deque<Transfer> open;
  std::vector<EventHandle> events;
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_TRANSFERS_H
