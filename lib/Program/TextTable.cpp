//===- TextTable.cpp - Tables that people read ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TextTable.h"

#include "whale/System/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;

namespace whale {

std::string describeRanges(ArrayRef<int64_t> numbers) {
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

std::string describeAmount(double number, StringRef unit) {
  static constexpr const char *prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  for (; number >= 999.5 && prefix + 1 < std::size(prefixes); ++prefix)
    number /= 1000;
  int decimals = prefix == 0 || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  std::string digits(32, '\0');
  digits.resize(
      std::snprintf(digits.data(), digits.size(), "%.*f", decimals, number));
  std::string suffix = prefixes[prefix] + unit.str();
  return suffix.empty() ? digits : digits + " " + suffix;
}

std::string alignColumns(ArrayRef<std::vector<std::string>> given) {
  std::vector<std::vector<std::string>> rows(given);
  std::vector<size_t> widths;
  for (auto &row : rows) {
    for (std::string &cell : row)
      cell = system::escaped(cell);
    widths.resize(std::max(widths.size(), row.size()));
    for (auto [width, cell] : zip(widths, row))
      width = std::max(width, cell.size());
  }
  std::string text;
  for (const auto &row : rows) {
    std::string line;
    for (auto [width, cell] : zip(widths, row))
      line += cell + std::string(width - cell.size() + 2, ' ');
    text += StringRef(line).rtrim().str() + "\n";
  }
  return text;
}

} // namespace whale
