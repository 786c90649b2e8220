//===- Mover.h - Bytes between processes ------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The seam between the transport of messages and a communication library: it
// moves contiguous bytes and reduces nothing.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_MESSAGE_MOVER_H
#define WHALE_RUNTIME_TRANSPORT_MESSAGE_MOVER_H

#include "whale/Runtime/Types.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace whale::runtime {

/// Gives each process what every process has given, in the order of the
/// processes. All processes call it in one order.
using Exchange =
    std::function<std::vector<std::string>(const std::string &mine)>;

/// One thread at a time calls the methods, but for those of which it is said
/// otherwise. Messages of one tag from one process to another are received in
/// the order in which they were sent. All methods throw Error when the library
/// fails.
class Mover {
public:
  /// Names a message between two processes; the same number on both sides.
  using Tag = uint32_t;

  virtual ~Mover() = default;

  /// The largest tag.
  virtual Tag maxTag() const = 0;

  /// Starts to send `bytes` bytes. `pending` counts up now, and down once
  /// `data` may change: of a synchronous message not before the receiver has
  /// posted its receive. It must stay where it is until then.
  virtual void send(int64_t process, Tag tag, const void *data, size_t bytes,
                    bool isSynchronous, int64_t &pending) = 0;
  /// Starts to receive as many bytes as are sent; `pending` as above.
  virtual void receive(int64_t process, Tag tag, void *data, size_t bytes,
                       int64_t &pending) = 0;

  /// Moves all messages forward; false where nothing happened.
  virtual bool progress() = 0;
  /// Returns when there may be something to move, or after `wake`.
  virtual void sleep() = 0;
  /// Ends a `sleep`, also the next one. From any thread.
  virtual void wake() = 0;

  /// Whether `watch` works: the library says when there is something to move.
  virtual bool isWatchable() const { return false; }
  /// Lets `watch` return when there is something to move; false where there is
  /// now. Called after a `progress` that moved nothing.
  virtual bool arm() { return false; }
  /// Keeps `watch` from returning until `arm`.
  virtual void disarm() {}
  /// Sleeps until there may be something to move, or `wakeWatch`. From one
  /// thread, beside the others.
  virtual void watch() {}
  /// Ends a `watch`, also the next one. From any thread.
  virtual void wakeWatch() {}

  /// Why messages to a process, or from it, that are on their way can arrive no
  /// more; empty while they can, or where none are.
  virtual const std::string &lossOf(int64_t process) const = 0;

  /// Returns when all that was sent has arrived, or after some seconds.
  virtual void flush() = 0;
  /// Ends all messages where they are. Returns when the library uses none of
  /// their memory any more, or false after some seconds in which it still does.
  virtual bool cancel() = 0;
};

/// Messages by UCX: shared memory, sockets, RDMA, whichever is fastest. There
/// are as many processes as `exchange` returns strings. Throws Error.
std::unique_ptr<Mover> createUcxMover(const Exchange &exchange);
/// Messages by MPI, whose processes are those of `exchange`. Throws Error.
std::unique_ptr<Mover> createMpiMover(const Exchange &exchange);
/// Moves nothing: a message is an Error that says `why`.
std::unique_ptr<Mover> createNoMover(std::string why);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_MESSAGE_MOVER_H
