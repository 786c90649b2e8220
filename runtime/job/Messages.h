//===- Messages.h - What processes say in frames ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fields of the frames that have more than a text. Writing and reading are
// side by side; what is read may come from anybody.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_JOB_MESSAGES_H
#define WHALE_RUNTIME_JOB_MESSAGES_H

#include "job/Frames.h"
#include "whale/Runtime/Job.h"

namespace whale::runtime::job {

/// The first words of a process that joins.
struct Hello {
  std::string version;
  uint64_t process = 0, processes = 0;
  std::string nonce, host;
  uint64_t processId = 0;
  /// The checksum of its program's manifest; may be empty.
  std::string program;
  /// See JobOptions.
  uint64_t attempt = 0;
  /// Of a launcher that speaks for a process that has ended before it had
  /// joined: why. Else empty.
  std::string failure;

  std::string write() const;
  /// Nothing where these are no such fields.
  static std::optional<Hello> read(std::string_view fields);
};

std::string writeProgress(const Progress &progress);
/// The seconds of the slowest step are rounded down to microseconds.
std::optional<Progress> readProgress(std::string_view fields);

} // namespace whale::runtime::job

#endif // WHALE_RUNTIME_JOB_MESSAGES_H
