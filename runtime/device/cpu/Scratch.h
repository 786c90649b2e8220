//===- Scratch.h - Temporary memory of a CPU device -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_SCRATCH_H
#define WHALE_RUNTIME_DEVICE_CPU_SCRATCH_H

#include "program/Format.h"
#include "whale/Runtime/Array.h"

#include <span>

namespace whale::runtime {

/// The blocks of a rank. They only grow.
class Scratch {
public:
  void reserve(const ScratchSizes &sizes) {
    for (size_t slot = 0; slot < sizes.size(); ++slot) {
      std::shared_ptr<Buffer> &block = blocks[slot];
      if (block && block->bytes >= sizes[slot])
        continue;
      block.reset();
      block = Buffer::allocate(sizes[slot]);
    }
  }
  void *get(size_t slot) const { return blocks[slot]->data.get(); }
  template <typename T>
  T *get(size_t slot) const {
    return static_cast<T *>(get(slot));
  }
  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto &block : blocks)
      sum += block ? block->bytes : 0;
    return sum;
  }

private:
  std::array<std::shared_ptr<Buffer>, std::tuple_size_v<ScratchSizes::array>>
      blocks;
};

/// What each of the products needs on this machine, with so many threads.
/// Their buffers don't matter.
std::vector<ScratchSizes> findScratch(std::span<const format::Product> products,
                                      int64_t threads);

/// The version of oneDNN, and the instructions that it computes products with
/// on this machine, as text: others may give other bits.
std::string productInstructions();

/// The threads of each rank where nothing is said about them.
int64_t threadsOfRanks(int64_t ranks);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CPU_SCRATCH_H
