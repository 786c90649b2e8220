//===- CheckTransfers.h - Proofs about a program's transfers ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What must be true of a finished program however late or early its transfers
// go on. It is found from the program alone, by code of its own: what plans
// starts, waits and buffers is not asked.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_CHECKTRANSFERS_H
#define WHALE_PROGRAMFORMAT_CHECKTRANSFERS_H

#include "whale/ProgramFormat/Program.h"

namespace whale::format {

/// What is wrong, and with which field ("classes[0].instructions[3]").
struct Fault {
  std::string path;
  std::string what;
};

/// Checks of a program whose starts and waits agree (readProgram) that
///  - between a start and its wait no instruction writes what is sent, nor
///    reads or writes what is received;
///  - the ranks never block one another: their starts follow one order, and no
///    wait is before a start that its transfer needs. A transfer is taken
///    to begin only at the head of the queues of all that take part, and a loop
///    to run once, which is as good as any number of times: its transfers end
///    in it.
/// Returns the first fault.
std::optional<Fault> checkTransfers(const Program &program);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_CHECKTRANSFERS_H
