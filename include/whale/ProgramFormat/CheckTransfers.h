//===- CheckTransfers.h - Check a program's transfers -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of a finished program that must hold however late or early its
// transfers complete. They use the program alone and share no code with the
// passes that plan starts, waits and buffers.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_CHECKTRANSFERS_H
#define WHALE_PROGRAMFORMAT_CHECKTRANSFERS_H

#include "whale/ProgramFormat/Program.h"

namespace whale::format {

/// An error, and the field that has it ("classes[0].instructions[3]").
struct Fault {
  std::string path;
  std::string what;
};

/// Checks a program whose starts and waits match (readProgram):
///   - between a start and its wait no instruction writes the sent buffer, nor
///     reads or writes the received one; a start is such an instruction where
///     the two transfers are in different queues;
///   - the ranks never block one another: their starts follow one order, and no
///     wait precedes a start that its transfer needs. This assumes that a
///     transfer begins only at the head of the queues of all its participants,
///     and that a loop runs twice;
///   - the ranks that take part in a transfer have it in the same loops, with
///     the same numbers of iterations where these are known, and in the same
///     branches.
/// Returns the first fault.
std::optional<Fault> checkTransfers(const Program &program);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_CHECKTRANSFERS_H
