//===- Json.cpp - Bytes as strings of JSON --------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/Json.h"

#include "Utf8.h"

#include <algorithm>

namespace whale::system {

/// The byte that an escape at the beginning of a text stands for, or -1.
static int escapedByte(std::string_view text) {
  if (text.size() < 4 || text[0] != '\\' || text[1] != 'x')
    return -1;
  int byte = 0;
  for (char c : text.substr(2, 2)) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    size_t digit = digits.find(c);
    if (digit == digits.npos)
      return -1;
    byte = byte * 16 + static_cast<int>(digit);
  }
  return byte;
}

std::string utf8FromBytes(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    size_t size = firstCharacter(bytes).bytes;
    std::string_view first = bytes.substr(0, std::max<size_t>(size, 1));
    if (size == 0 || escapedByte(bytes) >= 0)
      appendEscapes(text, first);
    else
      text += first;
    bytes.remove_prefix(first.size());
  }
  return text;
}

std::string bytesFromUtf8(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    int byte = escapedByte(text);
    bytes += byte >= 0 ? static_cast<char>(byte) : text.front();
    text.remove_prefix(byte >= 0 ? 4 : 1);
  }
  return bytes;
}

} // namespace whale::system
