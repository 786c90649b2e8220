//===- LiveBytes.h - What an arena holds at once ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A measure of how well buffers were planned, for tests, and of what memory is
// used for when, for traces. It uses the program alone and shares no code with
// the passes that plan buffers.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_LIVEBYTES_H
#define WHALE_PROGRAMFORMAT_LIVEBYTES_H

#include "whale/ProgramFormat/Program.h"

namespace whale::format {

/// Returns the most bytes of a class's arena that are in use at one time: those
/// that an instruction writes, and those that were written and will be read. No
/// arena for these instructions in this order is smaller. A loop is assumed to
/// run twice, and the branches of a case one after the other.
int64_t findLiveBytes(const Program &program, const RankClass &rankClass);

/// Returns the same for each instruction of the class's list by itself, with
/// all that it runs.
std::vector<int64_t> findLiveBytesOfEach(const Program &program,
                                         const RankClass &rankClass);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_LIVEBYTES_H
