//===- Emulator.h - What emulated GPU kernels call --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program for 'cuda-emulated' has the kernels of a GPU, compiled for the
// processor. Its shared object has a variable `whale_emulator`, which the
// runtime sets to the functions below before it calls a kernel. lib/Target/CUDA
// writes these types as LLVM IR: they change together.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_EMULATOR_H
#define WHALE_PROGRAMFORMAT_EMULATOR_H

#include <cstdint>

namespace whale::format {

struct EmulatorFunctions;

/// What a thread of a block knows of itself.
struct EmulatedThread {
  const EmulatorFunctions *functions;
  void *sharedMemory;
  int32_t thread;
  int32_t block;
};

/// How a kernel is run.
struct EmulatedKernel {
  const char *name;
  /// Runs one thread.
  void (*body)(EmulatedThread *thread, void **buffers);
  int32_t threads;
  int32_t sharedBytes;
  /// What a block of the GPU that it is compiled for has at most.
  int32_t mostSharedBytes;
  /// 1 if an iteration is a block, whose threads may wait for one another, 0 if
  /// it is a thread.
  int32_t isByBlock;
  int32_t numBuffers;
  const int64_t *bufferBytes;
};

/// What a kernel reads or writes, other than a thread's own variables.
enum AccessKind : int32_t { kReads = 0, kWrites = 1, kOfSharedMemory = 2 };

/// Which lane's value a shuffle takes.
enum class ShuffleMode : int32_t { Up, Down, Xor, Index };

struct EmulatorFunctions {
  /// Runs iterations `begin` to `end` of a kernel's extent.
  void (*run)(const EmulatedKernel *kernel, void **buffers, int64_t begin,
              int64_t end);
  /// Returns when all threads of the block have called it.
  void (*barrier)(EmulatedThread *thread);
  /// shfl.sync: `value` of the lane that `mode` and `operand` say, once all
  /// lanes of `mask` have called it; `clamp` holds segments as PTX does. Bit 32
  /// of the result says that the lane is inside its segment.
  uint64_t (*shuffle)(EmulatedThread *thread, int32_t mode, uint32_t mask,
                      uint32_t value, uint32_t operand, uint32_t clamp);
  /// Called before `bytes` are read or written at `address`, in the array of
  /// `arrayBytes` at `array`, or for null in any buffer of the kernel; `kind`
  /// is a sum of AccessKinds. Returns where to access instead: `address`, or if
  /// that is wrong a few bytes that nobody else uses.
  void *(*access)(EmulatedThread *thread, void *array, int64_t arrayBytes,
                  void *address, int32_t bytes, int32_t alignment,
                  int32_t kind);
};

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_EMULATOR_H
