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

#include <functional>
#include <string>
#include <string_view>

namespace whale::format {

/// The text of another file of the program.
using ReadFile = std::function<std::string(const std::string &name)>;

/// Decodes the text of a manifest.json, and of the files of tables that it
/// names, and checks every index, range, type, shape and box in them; what
/// depends on the files of kernels and constants, or on the functions of a
/// runtime, is left to who opens them. Without `readFile` the manifest must
/// hold all tables. Throws Error with `file`, or the file
/// beside it, and the path of the field at fault
/// ("classes[0].buffers[3].offset").
Program readProgram(std::string_view text, const std::string &file,
                    const ReadFile &readFile = {});

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_READPROGRAM_H
