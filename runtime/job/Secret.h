//===- Secret.h - Who may join a job ----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_JOB_SECRET_H
#define WHALE_RUNTIME_JOB_SECRET_H

#include <string>

namespace whale::runtime::job {

/// The secret of WHALE_SECRET, else of the file that WHALE_SECRET_FILE names,
/// which nobody but its owner may read; empty without both. Throws Error.
std::string readSecret();

/// Throws Error where there is none: who listens to other hosts needs one.
void requireSecret();

/// A socket that the processes of a job find: on all interfaces where they have
/// a secret, as the name of a host may stand for its loopback interface on the
/// host itself; else on `host`, which then must be the loopback interface.
/// Throws Error.
int listenForOthers(const std::string &host, int port);

/// Whether a name or address is this host's loopback interface.
bool isLoopback(const std::string &host);

/// 32 random bytes.
std::string makeNonce();

/// What proves that one end of a connection has the secret: an HMAC-SHA256.
/// `side` differs by end, so that no end can send the other's proof back;
/// `hello` and `challenge` are what the ends have said before it.
std::string prove(const std::string &secret, const std::string &side,
                  const std::string &hello, const std::string &challenge);

/// Compares in a time that does not depend on where they differ.
bool isEqual(const std::string &a, const std::string &b);

} // namespace whale::runtime::job

#endif // WHALE_RUNTIME_JOB_SECRET_H
