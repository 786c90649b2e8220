//===- TextTable.h - Numbers and tables that people read --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_REPORT_TEXTTABLE_H
#define WHALE_REPORT_TEXTTABLE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace whale {

/// "0-3, 6": ascending numbers.
std::string describeRanges(const std::vector<int64_t> &numbers);

/// "device 3" or "devices 0-3, 6".
std::string describeDevices(const std::vector<int64_t> &numbers);

/// "1.50 GB" of 1.5e9 and "B": three digits, with a prefix of SI. An empty unit
/// leaves the prefix alone.
std::string withPrefix(double number, std::string_view unit);

/// "1.50 GB": `withPrefix` of a number of bytes.
std::string describeBytes(double bytes);

/// "1.50 ms": three digits, from nanoseconds to seconds.
std::string describeSeconds(double seconds);

/// Rows of cells as text, columns as wide as their widest cell. What is not
/// printable in a cell is escaped.
std::string alignColumns(std::vector<std::vector<std::string>> rows);

} // namespace whale

#endif // WHALE_REPORT_TEXTTABLE_H
