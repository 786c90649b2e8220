//===- TestPrograms.h - Programs on GPUs that are not there -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_TEST_TESTPROGRAMS_H
#define WHALE_RUNTIME_CUDA_TEST_TESTPROGRAMS_H

#include "cuda/Libraries.h"
#include "program/Kernels.h"

namespace whale::runtime::cuda::test {

/// The tables of the process's test machine, if WHALE_TEST_CUDA asks for it,
/// else null. It is made of the variable's first value: the seed of its order.
/// NCCL's ranks of several processes meet in WHALE_TEST_CUDA_DIRECTORY. Throws
/// Error for what is no whole number.
const Libraries *findTestLibraries();

/// Lets the machine run a program for 'cuda-test', with its emulated kernels.
/// Both are kept for the life of the process.
void addTestProgram(const BoundProgram &program,
                    const std::shared_ptr<KernelLibrary> &kernels);

} // namespace whale::runtime::cuda::test

#endif // WHALE_RUNTIME_CUDA_TEST_TESTPROGRAMS_H
