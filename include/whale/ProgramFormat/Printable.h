//===- Printable.h - Texts of others in diagnostics -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a tool prints quotes its input: names in a file, options, paths. They
// may hold anything, and what is printed is a line that a terminal shows as it
// is.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_PRINTABLE_H
#define WHALE_PROGRAMFORMAT_PRINTABLE_H

#include <string>
#include <string_view>

namespace whale::format {

/// The text as one line of UTF-8: ends of lines and tabs become spaces; bytes
/// of other control characters, of marks that turn the direction of writing,
/// and of what is no UTF-8 become `\x1B` and the like.
std::string escaped(std::string_view text);

/// The same for an error: long words (names, file names) and long lines keep
/// their beginning and their end, with "..." between them. Doing it again
/// changes nothing.
std::string diagnosticLine(std::string_view text);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_PRINTABLE_H
