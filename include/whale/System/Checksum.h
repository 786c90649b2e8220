//===- Checksum.h - Detect damaged files ------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The hash of a program's files (docs/program-format.md). Header-only.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_CHECKSUM_H
#define WHALE_SYSTEM_CHECKSUM_H

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace whale::system {

/// Incremental 64-bit FNV-1a. Detects accidental damage, not forgeries.
class Checksum {
public:
  void add(std::string_view bytes) {
    for (unsigned char byte : bytes)
      hash = (hash ^ byte) * 0x100000001b3;
  }
  /// Returns the hash as 16 hexadecimal digits.
  std::string hex() const {
    char text[17];
    std::snprintf(text, sizeof(text), "%016llx",
                  static_cast<unsigned long long>(hash));
    return text;
  }
  static std::string of(std::string_view bytes) {
    Checksum checksum;
    checksum.add(bytes);
    return checksum.hex();
  }

private:
  uint64_t hash = 0xcbf29ce484222325;
};

} // namespace whale::system

#endif // WHALE_SYSTEM_CHECKSUM_H
