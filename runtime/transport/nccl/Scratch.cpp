//===- Scratch.cpp - Memory that transfers stage in -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/nccl/Scratch.h"

namespace whale::runtime::nccl {

/// Without the lock while it allocates: its own lender may be asked.
void Scratch::reserve(int64_t bytes) {
  if (bytes <= size)
    return;
  giveBack();
  gpu.attach();
  auto *taken = reinterpret_cast<char *>(gpu.allocate(bytes));
  std::lock_guard lock(mutex);
  memory = taken;
  size = bytes;
}

bool Scratch::giveBack() {
  std::lock_guard lock(mutex);
  char *given = std::exchange(memory, nullptr);
  size = 0;
  if (!given || !gpu.tryAttach())
    return false;
  // What has failed may be on the stream yet.
  gpu.driver.streamSynchronize.function(gpu.communication);
  gpu.driver.memFree.function(cuda::addressOf(given));
  return true;
}

} // namespace whale::runtime::nccl
