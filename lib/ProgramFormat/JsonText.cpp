//===- JsonText.cpp - Readable JSON -----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JsonText.h"

#include "whale/System/Json.h"

#include <algorithm>

namespace whale::format {

std::string printLine(const Json &json) { return system::printJson(json); }

/// Whether `json` contains more than `budget` values, too many for one line.
static bool exceeds(const Json &json, int &budget) {
  return --budget < 0 ||
         (json.is_structured() &&
          std::any_of(
              json.begin(), json.end(),
              [&](const Json &element) { return exceeds(element, budget); }));
}

void JsonLines::next(const std::string &key) {
  out += empty ? "\n" : ",\n";
  empty = false;
  if (indent >= 0)
    out.append(indent + 1, ' ');
  if (!isList)
    out += printLine(key) + ": ";
}

void JsonLines::end() {
  if (!empty)
    out.append("\n").append(std::max(indent, 0), ' ');
  out += isList ? "]" : "}";
}

void printJson(std::string &out, const Json &json, int depth, int indent) {
  bool nested = json.is_structured() && depth > 0 &&
                std::any_of(json.begin(), json.end(), [](const Json &element) {
                  return element.is_structured();
                });
  // A value takes at least two characters of a line of 120.
  int budget = 60;
  if (!nested || !exceeds(json, budget)) {
    std::string line = printLine(json);
    if (!nested || int64_t(line.size()) + std::max(indent, 0) <= 120) {
      out += line;
      return;
    }
  }
  JsonLines lines(out, json.is_array(), indent);
  for (const auto &[key, value] : json.items()) {
    lines.next(key);
    printJson(out, value, depth - 1, indent < 0 ? indent : indent + 1);
  }
  lines.end();
}

} // namespace whale::format
