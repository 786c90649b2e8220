//===- Work.h - How much an operation does ----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `threadsFor` is asked with for an operation of a program, before it
// runs.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_WORK_H
#define WHALE_RUNTIME_DEVICE_CPU_WORK_H

#include "device/cpu/Parallel.h"
#include "program/BoundProgram.h"

namespace whale::runtime {

/// The work of an operation, in bytes that it touches, as a kernel that one
/// thread reads and writes memory with. Of loops, cases and runs 0: they are
/// what is in them.
double workOf(const decltype(Instruction::operation) &operation);
double workOf(const Matmul &matmul);
double workOf(const Convolution &convolution);
double workOf(const Call &call);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CPU_WORK_H
