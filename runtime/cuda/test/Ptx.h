//===- Ptx.h - Runs a kernel from its text ----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_TEST_PTX_H
#define WHALE_RUNTIME_CUDA_TEST_PTX_H

#include "cuda/test/Order.h"

#include <functional>
#include <span>

namespace whale::runtime::cuda::test {

/// A kernel with one parameter, whose threads do not speak with one another, of
/// the instructions that the runtime's own kernels have.
class PtxKernel {
public:
  /// Throws Error for a text of anything else.
  explicit PtxKernel(const std::string &text);

  const std::string &name() const { return entry; }
  int64_t threads() const { return threadsOfBlock; }
  size_t parameterBytes() const { return bytes; }

  void run(int64_t blocks, std::span<const char> parameter) const;
  /// The memory that a run would use; nothing is read or written. No address
  /// may depend on what is in memory.
  std::vector<Access> accesses(int64_t blocks,
                               std::span<const char> parameter) const;

private:
  struct Operand {
    bool isRegister = false;
    uint64_t value = 0;
  };
  struct Thread;
  using Function = std::function<void(Thread &)>;
  struct Instruction {
    std::optional<Operand> guard;
    /// Empty for a branch, whose target is the number of an instruction.
    Function function;
    size_t target = 0;
  };
  class Reader;
  template <typename T>
  static T get(const Thread &thread, const Operand &operand);
  template <typename T>
  static void set(Thread &thread, const Operand &operand, T value);
  void run(Thread &thread, int64_t blocks) const;

  std::string entry;
  int64_t threadsOfBlock = 0;
  size_t bytes = 0, registers = 0;
  std::vector<Instruction> instructions;
};

} // namespace whale::runtime::cuda::test

#endif // WHALE_RUNTIME_CUDA_TEST_PTX_H
