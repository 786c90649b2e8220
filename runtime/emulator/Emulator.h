//===- Emulator.h - Blocks of GPU threads on a processor --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EMULATOR_EMULATOR_H
#define WHALE_RUNTIME_EMULATOR_EMULATOR_H

#include "whale/ProgramFormat/Emulator.h"

#include <cstdint>
#include <optional>
#include <string>

namespace whale::runtime {

/// What emulated kernels call. Each thread of a block that waits is a fiber;
/// where they all wait, barriers and shuffles that are complete let them go on.
const format::EmulatorFunctions &emulatorFunctions();

/// In which order the threads of a block run, from now on and on all threads of
/// this process: 0 is by number, any other seed some permutation for each turn.
/// Whoever loads a program sets what WHALE_EMULATOR_SEED says then, or 0.
void setEmulatorSeed(uint64_t seed);

/// Called with each access of kernels of this process that is right, `kind` a
/// sum of AccessKinds; null: nobody is.
using EmulatorObserver = void (*)(const void *address, int32_t bytes,
                                  int32_t kind);
void setEmulatorObserver(EmulatorObserver observer);

/// What a kernel has done that a GPU does not define since this was asked last;
/// nothing if all was well. Found are: a barrier that not all threads of the
/// block reach; a shuffle from a lane that is not there; an access outside of
/// its buffer, or at an address that is no multiple of its size; shared memory
/// read before it is written; two threads that use a byte, one of them writes,
/// and no barrier is between them (of the iterations that one call of a kernel
/// runs).
std::optional<std::string> takeEmulatorFault();

/// Whether there is one: quick to ask.
bool hasEmulatorFault();

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EMULATOR_EMULATOR_H
