//===- Scratch.h - Memory that transfers stage in ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_NCCL_SCRATCH_H
#define WHALE_RUNTIME_TRANSPORT_NCCL_SCRATCH_H

#include "cuda/Gpu.h"

#include <atomic>

namespace whale::runtime::nccl {

/// Memory of a rank's GPU that its transfers use one after the other, on its
/// communication stream. No recorded graph names it: transfers are in none.
/// Both `reserve` and `giveBack` are called while the rank is at no transfer.
class Scratch {
public:
  explicit Scratch(const cuda::Gpu &gpu) : gpu(gpu) {}
  ~Scratch() { giveBack(); }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  /// At least so much. What was there is nobody's then. Throws Error.
  void reserve(int64_t bytes);
  /// Frees it, on any thread, whose context it makes that of the GPU. False
  /// where there is none.
  bool giveBack();

  char *data() const { return memory; }
  int64_t bytes() const { return size; }

private:
  const cuda::Gpu &gpu;
  /// Guards who takes it away.
  std::mutex mutex;
  char *memory = nullptr;
  std::atomic<int64_t> size = 0;
};

} // namespace whale::runtime::nccl

#endif // WHALE_RUNTIME_TRANSPORT_NCCL_SCRATCH_H
