//===- Libraries.h - What computes a program, for the compiler --*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler asks the libraries that will compute a program which calls there
// are and how much memory they take, before the runtime allocates it. Who calls
// the compiler passes them: those of the runtime are whale/Runtime/Libraries.h.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_LIBRARIES_H
#define WHALE_PROGRAMFORMAT_LIBRARIES_H

#include "whale/ProgramFormat/Products.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace whale::format {

/// What a library function computes with, or gives.
struct LibraryTensor {
  DType dtype;
  Shape shape;
};

/// Bytes of each of the blocks that a rank on a CPU keeps for its products:
/// what one put there is gone with the next one, so each block is as large as
/// the largest asked for.
struct ScratchSizes : std::array<int64_t, 4> {
  ScratchSizes() : array{} {}
  ScratchSizes(const array &sizes) : array(sizes) {}

  /// Grows to what another product needs.
  void include(const ScratchSizes &other) {
    for (size_t slot = 0; slot < size(); ++slot)
      at(slot) = std::max(at(slot), other[slot]);
  }
  /// Of all blocks together.
  int64_t sum() const { return std::accumulate(begin(), end(), int64_t(0)); }
};

using Product = std::variant<Matmul, Convolution>;

/// Several threads may ask at once.
class Libraries {
public:
  virtual ~Libraries() = default;

  /// Throws system::Error, as loading a program with such a call does, where
  /// there is no such function, or it can't take these tensors or this
  /// configuration, a text of JSON. Kernels that it names may be anything.
  virtual void checkCall(const std::string &function,
                         std::vector<LibraryTensor> inputs,
                         std::vector<LibraryTensor> outputs,
                         const std::string &config) const = 0;

  /// The most bytes that a GPU's library may use for a call, of those that
  /// `checkCall` takes, besides its tensors: no algorithm that needs more is
  /// chosen. 0 for attention, which the compiler itself gives its workspace.
  /// Nothing where the processor computes the call, and its operands are copied
  /// there.
  virtual std::optional<int64_t>
  gpuWorkspace(const std::string &function,
               const std::vector<LibraryTensor> &inputs,
               const std::vector<LibraryTensor> &outputs) const = 0;

  /// The same for a convolution; its buffers don't matter.
  virtual std::optional<int64_t>
  gpuWorkspace(const Convolution &convolution) const = 0;

  /// The bytes that a rank on a GPU of this compute capability (90 for sm_90)
  /// takes for all its matrix products besides their buffers.
  virtual int64_t gpuProductWorkspace(int capability) const = 0;

  /// What each of the products takes besides its buffers, which don't matter,
  /// on a machine like this one, where so many ranks share its processor.
  virtual std::vector<ScratchSizes>
  findScratch(std::span<const Product> products, int64_t ranks) const = 0;
};

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_LIBRARIES_H
