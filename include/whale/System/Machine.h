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

/// What the processes of this machine may use together.
struct Machine {
  /// Of all of its memory, what control groups leave.
  int64_t memoryBytes = 0;
  /// FLOP/s of f32, and bytes per second from memory, of its usable processors:
  /// rough figures by their number and the width of their registers.
  double flops = 0, memoryBandwidth = 0;
};

/// Asks the kernel, whose files are below `proc`.
Machine thisMachine(const std::filesystem::path &proc = "/proc");

} // namespace whale::system

#endif // WHALE_SYSTEM_MACHINE_H
