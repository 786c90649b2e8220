//===- Frames.cpp - Messages of the control connection --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "job/Frames.h"

namespace whale::runtime::job {

std::string encode(Kind kind, std::string_view fields) {
  std::string bytes;
  system::appendNumber(bytes, fields.size() + 1, 4);
  bytes.push_back(static_cast<char>(kind));
  bytes.append(fields);
  return bytes;
}

std::optional<Frame> decode(std::string &bytes, size_t most, bool &isWrong) {
  isWrong = false;
  if (bytes.size() < 4)
    return std::nullopt;
  uint64_t size = system::extractNumber(bytes, 4);
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
