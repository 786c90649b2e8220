//===- NoOperations.h - Products without oneDNN -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What Operations.h has, in a runtime without host libraries: a product on the
// CPU is an error that says so.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_NOOPERATIONS_H
#define WHALE_RUNTIME_DEVICE_CPU_NOOPERATIONS_H

#include "device/cpu/Scratch.h"
#include "program/Format.h"

#include <cstdint>

namespace whale::runtime {

struct CpuContext {
  explicit CpuContext(int64_t threads) : threads(threads) {}

  Scratch scratch;
  int64_t threads;
};

class NoOperation {
public:
  explicit NoOperation(const char *what);
  void run(CpuContext &, const void *, const void *, void *) const {}
  const ScratchSizes &getScratch() const { return scratch; }

private:
  ScratchSizes scratch;
};

struct PreparedMatmul : NoOperation {
  PreparedMatmul(const Matmul &, CpuContext &) : NoOperation("a product") {}
};

struct PreparedConvolution : NoOperation {
  PreparedConvolution(const Convolution &, CpuContext &)
      : NoOperation("a convolution") {}
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CPU_NOOPERATIONS_H
