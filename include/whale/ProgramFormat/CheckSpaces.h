//===- CheckSpaces.h - Check which memory is used for what ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_CHECKSPACES_H
#define WHALE_PROGRAMFORMAT_CHECKSPACES_H

#include "whale/ProgramFormat/CheckTransfers.h"

namespace whale::format {

/// Whether a buffer of a class is in the memory of its rank's host: those of
/// arguments and results that are there.
bool isInHost(const Program &program, const BufferInfo &buffer);

/// Checks that what is in the memory of the host is used by copies between host
/// and device alone, each of which goes from the one to the other as its kind
/// says. Returns the first fault.
std::optional<Fault> checkSpaces(const Program &program);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_CHECKSPACES_H
