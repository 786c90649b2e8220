//===- Utf8.cpp - Characters of a text ------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utf8.h"

namespace whale::system {

Character firstCharacter(std::string_view text) {
  auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80)
    return {lead, 1};
  size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes > text.size())
    return {};
  uint32_t point = lead & (0xFF >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if (!isContinuation(text[i]))
      return {};
    point = point << 6 | (text[i] & 0x3F);
  }
  // An overlong encoding, a surrogate, or too large.
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < least[bytes] || (point >= 0xD800 && point < 0xE000) ||
      point > 0x10FFFF)
    return {};
  return {point, bytes};
}

void appendEscapes(std::string &to, std::string_view bytes) {
  constexpr char digits[] = "0123456789ABCDEF";
  for (char c : bytes) {
    auto byte = static_cast<uint8_t>(c);
    to += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
  }
}

} // namespace whale::system
