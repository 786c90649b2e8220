//===- TextTable.h - Tables that people read --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_TEXTTABLE_H
#define WHALE_LIB_PROGRAM_TEXTTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace whale {

/// "0-3, 6": ascending numbers.
std::string describeRanges(llvm::ArrayRef<int64_t> numbers);

/// "1.50 M", "19.2 kB": three digits, with powers of 1000.
std::string describeAmount(double number, llvm::StringRef unit);

/// The same of bytes.
inline std::string describeBytes(int64_t bytes) {
  return describeAmount(static_cast<double>(bytes), "B");
}

/// Rows of cells as text, columns as wide as their widest cell.
std::string alignColumns(llvm::ArrayRef<std::vector<std::string>> rows);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_TEXTTABLE_H
