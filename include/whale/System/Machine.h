//===- Machine.h - What this machine has ------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_MACHINE_H
#define WHALE_SYSTEM_MACHINE_H

#include <cstdint>
#include <filesystem>

namespace whale::system {

/// The bytes of memory that the processes of this machine may use together: of
/// all that it has, what control groups leave. Asks the kernel, whose files are
/// below `proc`.
int64_t machineMemory(const std::filesystem::path &proc = "/proc");

} // namespace whale::system

#endif // WHALE_SYSTEM_MACHINE_H
