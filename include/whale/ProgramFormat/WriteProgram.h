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

namespace whale::format {

/// Calls a function for each of 0, 1, ... count - 1, in any order and perhaps
/// on several threads.
using ForEach = std::function<void(
    size_t count, const std::function<void(size_t)> &function)>;

/// The texts of a program.
struct ProgramText {
  std::string manifest;
  /// By name, the files of the tables that are not in the manifest.
  std::map<std::string, std::string> tables;
};

/// How many bytes of tables are in the manifest, and in a file of their own.
constexpr size_t mostTableBytes = 256 * 1024;

/// A field that holds much gets a line for each of its elements; collectives,
/// lists of cells and layouts that are shared are written once, layouts on more
/// than 16 ranks. Tables of more than `mostBytes` in all go to files of up to
/// that many bytes, or of one element. `plan` and each `config` must be JSON.
ProgramText writeProgram(const Program &program, const ForEach &forEach = {},
                         size_t mostBytes = mostTableBytes);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_WRITEPROGRAM_H
