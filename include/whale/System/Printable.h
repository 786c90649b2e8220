//===- Printable.h - Quoted texts in diagnostics ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The messages of tools quote their input: names in a file, options, paths.
// These may contain any bytes, but a message must be one line that a terminal
// displays without side effects.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_PRINTABLE_H
#define WHALE_SYSTEM_PRINTABLE_H

#include <string>
#include <string_view>

namespace whale::system {

/// Returns the text as one line of UTF-8: line ends and tabs become spaces;
/// bytes of other control characters, of characters that change the direction
/// of writing, and invalid UTF-8 become escapes such as `\x1B`.
std::string escaped(std::string_view text);

/// The same for an error: long words (names, file names) and long lines keep
/// their beginning and end, with "..." between them. Idempotent.
std::string diagnosticLine(std::string_view text);

} // namespace whale::system

#endif // WHALE_SYSTEM_PRINTABLE_H
