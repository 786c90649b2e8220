//===- MatchLoops.h - Loops in which ranks exchange data --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAMFORMAT_MATCHLOOPS_H
#define WHALE_LIB_PROGRAMFORMAT_MATCHLOOPS_H

#include "whale/ProgramFormat/CheckTransfers.h"

namespace whale::format {

/// Checks that the starts of a transfer stand, in all classes that take part in
/// it, in the same loops and branches. Returns the first start that doesn't.
std::optional<Fault> matchLoops(const Program &program);

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_MATCHLOOPS_H
