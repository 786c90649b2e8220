//===- Printable.cpp - Quoted texts in diagnostics ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/Printable.h"

#include "Utf8.h"

#include <algorithm>
#include <cstdint>

namespace whale::system {

/// A word longer than `limit` bytes is cut to `head` bytes at its beginning and
/// `tail` at its end; likewise a whole line. The limits keep file names of a
/// few directories, and the sentence around a name, whole.
struct Lengths {
  size_t limit, head, tail;
};
static constexpr Lengths wordLengths = {400, 200, 100};
static constexpr Lengths lineLengths = {4000, 2000, 1000};

/// Whether a terminal would interpret the character instead of displaying it.
static bool isControl(uint32_t point) {
  return point < 0x20 || (point >= 0x7F && point < 0xA0) ||
         (point >= 0x200B && point <= 0x200F) ||
         (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2060 && point <= 0x206F) || point == 0xFEFF;
}

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    auto [point, bytes] = firstCharacter(text.substr(i));
    if (point == '\n' || point == '\r' || point == '\t') {
      result += ' ';
    } else if (bytes && !isControl(point)) {
      result += text.substr(i, bytes);
    } else {
      appendEscapes(result, text.substr(i, std::max<size_t>(bytes, 1)));
    }
    i += std::max<size_t>(bytes, 1);
  }
  return result;
}

/// Shortens a text, cutting between UTF-8 characters.
static std::string shortened(std::string_view text, const Lengths &lengths) {
  if (text.size() <= lengths.limit)
    return std::string(text);
  size_t head = lengths.head, tail = text.size() - lengths.tail;
  while (head > 0 && isContinuation(text[head]))
    --head;
  while (tail < text.size() && isContinuation(text[tail]))
    ++tail;
  return std::string(text.substr(0, head)) + "..." +
         std::string(text.substr(tail));
}

std::string diagnosticLine(std::string_view text) {
  std::string line = escaped(text), result;
  for (std::string_view rest = line; !rest.empty();) {
    size_t end = std::min(rest.find(' '), rest.size());
    result += shortened(rest.substr(0, end), wordLengths);
    size_t next = std::min(rest.find_first_not_of(' ', end), rest.size());
    result += rest.substr(end, next - end);
    rest.remove_prefix(next);
  }
  return shortened(result, lineLengths);
}

} // namespace whale::system
