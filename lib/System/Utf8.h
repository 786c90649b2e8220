//===- Utf8.h - Characters of a text ----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_SYSTEM_UTF8_H
#define WHALE_LIB_SYSTEM_UTF8_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace whale::system {

inline bool isContinuation(char c) { return (c & 0xC0) == 0x80; }

/// A character of UTF-8.
struct Character {
  uint32_t point = 0;
  /// How many bytes it has; 0 stands for no valid character.
  size_t bytes = 0;
};

/// Returns the first character of a text that is not empty.
Character firstCharacter(std::string_view text);

/// Appends each byte as an escape such as `\x1B`.
void appendEscapes(std::string &to, std::string_view bytes);

} // namespace whale::system

#endif // WHALE_LIB_SYSTEM_UTF8_H
