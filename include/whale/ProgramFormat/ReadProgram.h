//===- ReadProgram.h - Decode and check a program ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_READPROGRAM_H
#define WHALE_PROGRAMFORMAT_READPROGRAM_H

#include "whale/ProgramFormat/Program.h"

namespace whale::format {

/// Decodes the text of a manifest.json and checks every index, range, type,
/// shape and box in it; what depends on the files of kernels and constants, or
/// on the functions of a runtime, is left to who opens them. Throws Error with
/// `file` and the path of the field at fault ("classes[0].buffers[3].offset").
Program readProgram(std::string_view text, const std::string &file);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_READPROGRAM_H
