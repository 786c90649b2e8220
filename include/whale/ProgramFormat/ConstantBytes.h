//===- ConstantBytes.h - What a rank's constants take -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_CONSTANTBYTES_H
#define WHALE_PROGRAMFORMAT_CONSTANTBYTES_H

#include "whale/ProgramFormat/Program.h"

namespace whale::format {

/// Returns the bytes of the constants that a rank of a class uses, also in the
/// functions that it runs; those that several buffers share count once. Linear
/// in these buffers, but for a logarithmic factor.
int64_t constantBytes(const Program &program, const RankClass &rankClass);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_CONSTANTBYTES_H
