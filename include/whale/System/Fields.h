//===- Fields.h - Numbers and texts as bytes --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What processes send each other consists of fields. A number is 8 bytes,
// little-endian; a text is its length as a number and its bytes.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_FIELDS_H
#define WHALE_SYSTEM_FIELDS_H

#include <cstdint>
#include <string>
#include <string_view>

namespace whale::system {

/// Appends the low `size` bytes of a number, little-endian.
void appendNumber(std::string &bytes, uint64_t value, int size);
/// The number in the first `size` bytes, which must be there.
uint64_t extractNumber(std::string_view bytes, int size);

/// Writes fields.
class FieldWriter {
public:
  FieldWriter &number(uint64_t value);
  FieldWriter &text(std::string_view value);
  std::string take() { return std::move(bytes); }

private:
  std::string bytes;
};

/// Reads fields; nothing once they are not what was asked for.
class FieldReader {
public:
  explicit FieldReader(std::string_view bytes) : bytes(bytes) {}
  uint64_t number();
  std::string text();
  /// Whether all fields were read, and no others are there.
  bool isComplete() const { return isRight && bytes.empty(); }
  bool isWrong() const { return !isRight; }

private:
  std::string_view bytes;
  bool isRight = true;
};

} // namespace whale::system

#endif // WHALE_SYSTEM_FIELDS_H
