//===- Transport.h - How ranks exchange data --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The seam between the executor and the ranks' connection.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_TRANSPORT_H
#define WHALE_RUNTIME_TRANSPORT_TRANSPORT_H

#include "program/Format.h"

namespace whale::runtime {

/// Thrown in the ranks that stop because another one failed.
class Aborted : public std::exception {
public:
  const char *what() const noexcept override { return "stopped"; }
};

/// What a rank exchanged with others.
struct Traffic {
  int64_t sent = 0;
  int64_t received = 0;
  /// How long it waited for them.
  double waitedSeconds = 0;
};

class Transport {
public:
  virtual ~Transport() = default;

  /// This rank's part of a channel; returns when `dst` is complete and no
  /// peer reads `src` any more. A rank that only sends doesn't wait for its
  /// peers: they receive in the order in which it sent. Called on the rank's
  /// thread. Throws Aborted when the run was aborted, Error when the ranks wait
  /// for one another in a circle.
  virtual Traffic run(int64_t rank, int64_t channel, const void *src,
                      void *dst) = 0;

  /// The rank executes no more collectives in this run.
  virtual void finish(int64_t rank) = 0;

  /// Wakes all waiting ranks, which throw Aborted.
  virtual void abort() = 0;
  /// True from `abort` on; cheap.
  virtual bool aborted() const = 0;

  /// Makes ready for the next run; no rank is inside.
  virtual void reset() = 0;
};

/// Ranks are threads of this process and read one another's buffers. `program`
/// outlives the transport.
std::unique_ptr<Transport> createLocalTransport(const format::Program &program);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_TRANSPORT_H
