//===- CheckValues.h - Check reads against writes ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks that hold for every program that the compiler writes. They use the
// program alone and share no code with the passes that plan buffers. The loader
// doesn't run them: they execute each run of a function on symbols, which can
// take as long as reading the program.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_CHECKVALUES_H
#define WHALE_PROGRAMFORMAT_CHECKVALUES_H

#include "whale/ProgramFormat/CheckTransfers.h"

namespace whale::format {

/// Checks a program that passes `checkTransfers`:
///  - each buffer that an instruction reads was an input of the program, or was
///    last written as a whole: through the same buffer, or through one of
///    another type at the same bytes. A function's local was written in the
///    same run;
///  - each buffer that an instruction writes doesn't overlap those that it
///    reads, or has exactly the same bytes.
/// So values with overlapping live ranges don't share bytes. A loop is assumed
/// to run twice. Returns the first fault.
std::optional<Fault> checkValues(const Program &program);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_CHECKVALUES_H
