//===- Sockets.h - Sockets that processes of a job meet at ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_JOB_SOCKETS_H
#define WHALE_RUNTIME_JOB_SOCKETS_H

#include <chrono>
#include <string>

namespace whale::runtime::job {

/// A socket that listens at a name or address, or where that is empty on all
/// interfaces; port 0 takes a free one. Throws Error.
int listenOn(const std::string &host, int port);
int portOf(int listener);
/// What this host calls itself.
std::string hostName();

/// The milliseconds until a time, for poll.
int millisecondsTo(std::chrono::steady_clock::time_point end);

/// Has a connection end with an error when its other host has answered nothing
/// for 20 seconds, as one that is gone. That of a process that is stopped does,
/// until more is sent than it keeps.
void watchLink(int socket);
/// Whether the error of a connection is one of these.
bool isUnreachable(int error);

/// A connection with who listens there, or does so before `end`; else -1, and
/// in `what` the reason.
int connectTo(const std::string &host, int port,
              std::chrono::steady_clock::time_point end, std::string &what);

} // namespace whale::runtime::job

#endif // WHALE_RUNTIME_JOB_SOCKETS_H
