//===- Scratch.h - Temporary memory of products -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a CPU takes besides a program's buffers to compute matrix products and
// convolutions: the compiler counts it before the runtime allocates it.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_SCRATCH_H
#define WHALE_RUNTIME_SCRATCH_H

#include "whale/ProgramFormat/Products.h"

#include <array>
#include <span>
#include <variant>

namespace whale::runtime {

/// Bytes of each of the blocks that a rank keeps: what an operation put in one
/// is gone with the next operation, so each is as large as the largest asked
/// for.
struct ScratchSizes : std::array<int64_t, 4> {
  ScratchSizes() : array{} {}
  ScratchSizes(const array &sizes) : array(sizes) {}

  /// Grows to what another operation needs.
  void include(const ScratchSizes &other);
  /// Of all blocks together.
  int64_t sum() const;
};

using Product = std::variant<format::Matmul, format::Convolution>;

/// What each of the products needs on this machine, with so many threads.
/// Their buffers don't matter.
std::vector<ScratchSizes> findScratch(std::span<const Product> products,
                                      int64_t threads);

/// The version of oneDNN, and the instructions that it computes products with
/// on this machine, as text: others may give other bits.
std::string productInstructions();

/// The threads of each rank where nothing is said about them.
int64_t threadsOfRanks(int64_t ranks);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_SCRATCH_H
