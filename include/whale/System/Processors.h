//===- Processors.h - What a process may compute on -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_PROCESSORS_H
#define WHALE_SYSTEM_PROCESSORS_H

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>

namespace whale::system {

/// The processors that the calling thread may run on, by the numbers of its
/// machine: those of its affinity, which is within its cpuset.
std::set<int64_t> allowedProcessors();

/// The time of processors that control groups leave to a process.
struct ProcessorQuota {
  /// As many processors as run all of the time.
  double processors;
  /// Names the group on its machine: all that is in it shares the quota.
  std::string group;

  /// Threads that use it up, nearly: at least 1.
  int64_t threads() const;
};

/// The least quota of the control groups that this process is in, of either
/// version; nothing where none of them has one. `proc` is where the kernel
/// shows processes.
std::optional<ProcessorQuota>
findQuota(const std::filesystem::path &proc = "/proc");

/// The least number of bytes that a control group of this process may take;
/// nothing where none of them has a limit.
std::optional<int64_t>
findMemoryLimit(const std::filesystem::path &proc = "/proc");

/// How many threads this process can have run at once: at least 1.
int64_t usableProcessors();

/// As `getpid`, without asking the kernel.
pid_t processId();

} // namespace whale::system

#endif // WHALE_SYSTEM_PROCESSORS_H
