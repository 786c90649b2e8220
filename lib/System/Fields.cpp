//===- Fields.cpp - Numbers and texts as bytes ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/Fields.h"

namespace whale::system {

void appendNumber(std::string &bytes, uint64_t value, int size) {
  for (int i = 0; i < size; ++i)
    bytes.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t extractNumber(std::string_view bytes, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i)
    value |= uint64_t(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

FieldWriter &FieldWriter::number(uint64_t value) {
  appendNumber(bytes, value, 8);
  return *this;
}

FieldWriter &FieldWriter::text(std::string_view value) {
  number(value.size());
  bytes.append(value);
  return *this;
}

uint64_t FieldReader::number() {
  if (bytes.size() < 8 || !isRight) {
    isRight = false;
    return 0;
  }
  uint64_t value = extractNumber(bytes, 8);
  bytes.remove_prefix(8);
  return value;
}

std::string FieldReader::text() {
  uint64_t size = number();
  if (!isRight || size > bytes.size()) {
    isRight = false;
    return "";
  }
  std::string value(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return value;
}

} // namespace whale::system
