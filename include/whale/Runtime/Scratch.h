//===- Scratch.h - Temporary memory of products -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory that a CPU uses for matrix products and convolutions in addition
// to a program's buffers. The compiler counts it, and the runtime allocates as
// much.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_SCRATCH_H
#define WHALE_RUNTIME_SCRATCH_H

#include "whale/ProgramFormat/Products.h"

#include <array>
#include <span>
#include <variant>

namespace whale::runtime {

/// Bytes of each of a rank's scratch blocks. The contents of a block are valid
/// during one operation only, so each block has the size of the largest
/// request.
struct ScratchSizes : std::array<int64_t, 4> {
  ScratchSizes() : array{} {}
  ScratchSizes(const array &sizes) : array(sizes) {}

  /// Enlarges the blocks to the sizes that another operation needs.
  void include(const ScratchSizes &other);
  /// Returns the bytes of all blocks together.
  int64_t sum() const;
};

using Product = std::variant<format::Matmul, format::Convolution>;

/// Returns the scratch memory of each product on this machine with `threads`
/// threads. The products' buffer indices are ignored.
std::vector<ScratchSizes> findScratch(std::span<const Product> products,
                                      int64_t threads);

/// Returns the default number of threads of each rank.
int64_t threadsOfRanks(int64_t ranks);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_SCRATCH_H
