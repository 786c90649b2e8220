//===- Frames.cpp - Messages of the control connection --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "job/Frames.h"

namespace whale::runtime::job {

static void append(std::string &bytes, uint64_t value, int size) {
  for (int i = 0; i < size; ++i)
    bytes.push_back(static_cast<char>(value >> (8 * i)));
}

static uint64_t extract(std::string_view bytes, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i)
    value |= uint64_t(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

FieldWriter &FieldWriter::number(uint64_t value) {
  append(bytes, value, 8);
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
  uint64_t value = extract(bytes, 8);
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

std::string encode(Kind kind, std::string_view fields) {
  std::string bytes;
  append(bytes, fields.size() + 1, 4);
  bytes.push_back(static_cast<char>(kind));
  bytes.append(fields);
  return bytes;
}

std::optional<Frame> decode(std::string &bytes, size_t most, bool &isWrong) {
  isWrong = false;
  if (bytes.size() < 4)
    return std::nullopt;
  uint64_t size = extract(bytes, 4);
  if (size == 0 || size > most) {
    isWrong = true;
    return std::nullopt;
  }
  if (bytes.size() < 4 + size)
    return std::nullopt;
  auto kind = static_cast<uint8_t>(bytes[4]);
  if (kind < uint8_t(Kind::Hello) || kind > uint8_t(Kind::Bye)) {
    isWrong = true;
    return std::nullopt;
  }
  Frame frame{static_cast<Kind>(kind), bytes.substr(5, size - 1)};
  bytes.erase(0, 4 + size);
  return frame;
}

} // namespace whale::runtime::job
