//===- WriteProgram.h - Print a program -------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_WRITEPROGRAM_H
#define WHALE_PROGRAMFORMAT_WRITEPROGRAM_H

#include "whale/ProgramFormat/Program.h"

#include <functional>

namespace whale::format {

/// Calls a function for each of 0, 1, ... count - 1, in any order and perhaps
/// on several threads.
using ForEach = std::function<void(
    size_t count, const std::function<void(size_t)> &function)>;

/// The text of a manifest.json. A field that holds much gets a line for each of
/// its elements; collectives, lists of cells and layouts that are shared are
/// written once, layouts on more than 16 ranks. `plan` and each `config` must
/// be JSON.
std::string writeProgram(const Program &program, const ForEach &forEach = {});

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_WRITEPROGRAM_H
