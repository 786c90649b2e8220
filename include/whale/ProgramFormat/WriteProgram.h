//===- WriteProgram.h - Print a program -------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_WRITEPROGRAM_H
#define WHALE_PROGRAMFORMAT_WRITEPROGRAM_H

#include "whale/ProgramFormat/Program.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace whale::format {

/// Calls a function for each of 0, 1, ... count - 1, in any order and possibly
/// on several threads.
using ForEach = std::function<void(
    size_t count, const std::function<void(size_t)> &function)>;

/// The texts of a program.
struct ProgramText {
  std::string manifest;
  /// Table files by name: the tables that are not in the manifest.
  std::map<std::string, std::string> tables;
};

/// The maximum bytes of all tables in the manifest, and of each table file.
constexpr size_t mostTableBytes = 256 * 1024;

/// Prints a program. A large field gets a line for each of its elements. Shared
/// collectives and lists of cells are written once, shared layouts too on more
/// than 16 ranks. If all tables together exceed `mostBytes`, they go to files
/// of up to that many bytes, or of one element. `plan` and each `config` must
/// be JSON.
ProgramText writeProgram(const Program &program, const ForEach &forEach = {},
                         size_t mostBytes = mostTableBytes);

/// Returns the line of checksums.txt for a file with that hash.
inline std::string checksumLine(std::string_view file, std::string_view hash) {
  return std::string(hash) + "  " + std::string(file) + "\n";
}

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_WRITEPROGRAM_H
