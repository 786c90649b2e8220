//===- Machine.cpp - What this machine has --------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/Machine.h"

#include "whale/System/Processors.h"

#include <algorithm>
#include <unistd.h>

namespace whale::system {

/// Numbers of f32 in a register.
static double registerWidth() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return 16;
  return __builtin_cpu_supports("avx2") ? 8 : 4;
#else
  return 4;
#endif
}

Machine thisMachine(const std::filesystem::path &proc) {
  // A clock that servers keep with all cores busy; a multiplication and an
  // addition on each of two units; and the part of a socket's memory bandwidth
  // that one core draws, up to what a socket has.
  constexpr double clock = 2.5e9, operations = 2, units = 2;
  constexpr double coreBandwidth = 1e10, socketBandwidth = 1e11;
  auto processors = static_cast<double>(usableProcessors());
  Machine machine;
  machine.memoryBytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<int64_t>(sysconf(_SC_PAGE_SIZE));
  if (std::optional<int64_t> limit = findMemoryLimit(proc))
    machine.memoryBytes = std::min(machine.memoryBytes, *limit);
  machine.flops = processors * clock * operations * units * registerWidth();
  machine.memoryBandwidth =
      std::min(processors * coreBandwidth, socketBandwidth);
  return machine;
}

} // namespace whale::system
