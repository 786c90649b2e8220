//===- Uses.h - Buffers that instructions read and write --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAMFORMAT_USES_H
#define WHALE_LIB_PROGRAMFORMAT_USES_H

#include "Memory.h"

namespace whale::format {

/// Calls `use` with each buffer of an instruction, and whether the instruction
/// may write it. Excludes instructions inside loops and cases, and operands and
/// results of runs. The reads and writes of a transfer are reported for its
/// start.
template <typename Use>
void forEachUse(const Program &program, const Instruction &instruction,
                Use use) {
  auto reads = [&](BufferIndex index) { use(index, false); };
  auto writes = [&](BufferIndex index) { use(index, true); };
  if (const auto *kernel = std::get_if<Kernel>(&instruction.operation)) {
    size_t inputs = 0;
    if (program.kernelSignatures)
      inputs = program.kernelSignatures->at(kernel->symbol).inputs;
    for (size_t i = 0; i < kernel->buffers.size(); ++i)
      use(kernel->buffers[i], i >= inputs);
  } else if (const auto *copy = std::get_if<Copy>(&instruction.operation)) {
    reads(copy->src);
    writes(copy->dst);
  } else if (const auto *matmul = std::get_if<Matmul>(&instruction.operation)) {
    reads(matmul->lhs);
    reads(matmul->rhs);
    if (matmul->accumulate)
      reads(matmul->out);
    if (readsBias(matmul->epilogue))
      reads(matmul->bias);
    if (readsAux(matmul->epilogue))
      reads(matmul->aux);
    writes(matmul->out);
    if (writesBias(matmul->epilogue))
      writes(matmul->bias);
    if (writesAux(matmul->epilogue))
      writes(matmul->aux);
  } else if (const auto *convolution =
                 std::get_if<Convolution>(&instruction.operation)) {
    reads(convolution->lhs);
    reads(convolution->rhs);
    writes(convolution->out);
  } else if (const auto *call = std::get_if<Call>(&instruction.operation)) {
    for (BufferIndex index : call->inputs)
      reads(index);
    for (BufferIndex index : call->outputs)
      writes(index);
  } else if (const auto *start = std::get_if<Start>(&instruction.operation)) {
    for (const Start::Ends &part : start->parts) {
      if (part.src)
        reads(*part.src);
      if (part.dst)
        writes(*part.dst);
    }
  } else if (const auto *loop = std::get_if<While>(&instruction.operation)) {
    reads(loop->predicate);
  } else if (const auto *choice = std::get_if<Case>(&instruction.operation)) {
    reads(choice->index);
  }
}

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_USES_H
