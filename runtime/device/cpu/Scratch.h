//===- Scratch.h - Temporary memory of a CPU device -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_SCRATCH_H
#define WHALE_RUNTIME_DEVICE_CPU_SCRATCH_H

#include "whale/Runtime/Array.h"

#include <array>

namespace whale::runtime {

/// A few blocks that grow to the largest size asked of each; what an operation
/// put in one is gone with the next operation.
class Scratch {
public:
  static constexpr size_t slots = 6;

  void *get(size_t slot, int64_t bytes) {
    std::shared_ptr<Buffer> &block = blocks[slot];
    if (!block || block->bytes < bytes) {
      block.reset();
      block = Buffer::allocate(bytes);
    }
    return block->data.get();
  }
  template <typename T>
  T *get(size_t slot, int64_t count) {
    return static_cast<T *>(get(slot, count * int64_t(sizeof(T))));
  }
  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto &block : blocks)
      sum += block ? block->bytes : 0;
    return sum;
  }

private:
  std::array<std::shared_ptr<Buffer>, slots> blocks;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CPU_SCRATCH_H
