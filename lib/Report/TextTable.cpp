//===- TextTable.cpp - Numbers and tables that people read ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Report/TextTable.h"

#include "whale/System/Printable.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace whale {

std::string describeRanges(const std::vector<int64_t> &numbers) {
  std::string text;
  for (size_t begin = 0, end; begin < numbers.size(); begin = end) {
    for (end = begin + 1;
         end < numbers.size() && numbers[end] == numbers[end - 1] + 1; ++end)
      ;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[begin]);
    if (end > begin + 1)
      text += "-" + std::to_string(numbers[end - 1]);
  }
  return text;
}

std::string describeDevices(const std::vector<int64_t> &numbers) {
  return (numbers.size() == 1 ? "device " : "devices ") +
         describeRanges(numbers);
}

/// Three digits of a number below 999.5, all of a larger one that has no more
/// than a dozen.
static std::string threeDigits(double number, bool isWhole) {
  std::array<char, 32> text;
  const char *format = number >= 1e12    ? "%.3g"
                       : isWhole         ? "%.0f"
                       : number >= 99.95 ? "%.0f"
                       : number >= 9.995 ? "%.1f"
                                         : "%.2f";
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

std::string withPrefix(double number, std::string_view unit) {
  static constexpr std::array prefixes = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  for (; number >= 999.5 && prefix + 1 < prefixes.size(); ++prefix)
    number /= 1000;
  // What has no prefix is counted, and whole.
  std::string digits = threeDigits(number, prefix == 0);
  std::string suffix = prefixes[prefix] + std::string(unit);
  return suffix.empty() ? digits : digits + " " + suffix;
}

std::string describeBytes(double bytes) { return withPrefix(bytes, "B"); }

std::string describeSeconds(double seconds) {
  if (seconds == 0)
    return "0 s";
  static constexpr std::array units = {"s", "ms", "us", "ns"};
  size_t unit = 0;
  for (; seconds < 0.9995 && unit + 1 < units.size(); ++unit)
    seconds *= 1000;
  return threeDigits(seconds, false) + " " + units[unit];
}

std::string alignColumns(std::vector<std::vector<std::string>> rows) {
  std::vector<size_t> widths;
  for (auto &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = system::escaped(row[i]);
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

} // namespace whale
