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
#include <vector>

namespace whale::format {

/// Returns the text of another file of the program.
using ReadFile = std::function<std::string(const std::string &name)>;

/// Returns the ranks that are wanted of a program of which target and ranks are
/// known.
using WantedRanks = std::function<std::vector<int64_t>(const Program &)>;

/// Decodes the text of a manifest.json and of the table files that it names,
/// and checks every index, range, type, shape and box in them. Checks that
/// depend on the files of kernels and constants, or on the functions of a
/// runtime, are left to the code that opens these. Without `readFile` the
/// manifest must contain all tables. Throws system::Error with `file` (or the
/// path of the table file) and the path of the invalid field
/// ("classes[0].buffers[3].offset").
///
/// With `wanted` the classes of these ranks alone are read, with the functions
/// and channels that they use, and of the files of tables those that hold any
/// of these. The rest is empty, or is not there; how the parts of several ranks
/// fit together is not checked.
Program readProgram(std::string_view text, const std::string &file,
                    const ReadFile &readFile = {},
                    const WantedRanks &wanted = {});

/// Checks a program in the same way. Returns a JSON object of its tables,
/// "functions", "classes" and "channels", as they would be if all of them were
/// in the manifest, no list was short and each buffer named its type.
std::string readTables(std::string_view text, const std::string &file,
                       const ReadFile &readFile = {});

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_READPROGRAM_H
