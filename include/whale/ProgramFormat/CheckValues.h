//===- CheckValues.h - Is what is read what was written there? --*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is true of every program that the compiler writes. It is found from the
// program alone, by code of its own: what plans buffers is not asked. The
// loader doesn't check it: each run of a function is looked into, which can
// take as long as reading the program.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_CHECKVALUES_H
#define WHALE_PROGRAMFORMAT_CHECKVALUES_H

#include "whale/ProgramFormat/CheckTransfers.h"

namespace whale::format {

/// Checks of a program that passes `checkTransfers` that
///  - what an instruction reads was given to the program, or was last written
///    as a whole: through the same buffer, or one of another type that is at
///    the same bytes. A function's local was written in the same run;
///  - what an instruction writes is apart from what it reads, or at the same
///    bytes.
/// So values whose lives overlap aren't in the same bytes. A loop is taken
/// to run twice. Returns the first fault.
std::optional<Fault> checkValues(const Program &program);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_CHECKVALUES_H
