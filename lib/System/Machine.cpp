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

int64_t machineMemory(const std::filesystem::path &proc) {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<int64_t>(sysconf(_SC_PAGE_SIZE));
  if (std::optional<int64_t> limit = findMemoryLimit(proc))
    bytes = std::min(bytes, *limit);
  return bytes;
}

} // namespace whale::system
