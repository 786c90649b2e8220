//===- JsonText.h - Readable JSON -------------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAMFORMAT_JSONTEXT_H
#define WHALE_LIB_PROGRAMFORMAT_JSONTEXT_H

#include <nlohmann/json.hpp>

#include <string>

namespace whale::format {

/// JSON that keeps the order in which fields are written.
using Json = nlohmann::ordered_json;

/// Returns the text on one line.
std::string printLine(const Json &json);

/// Appends the text to `out`. Lists and objects that are nested and longer than
/// a line get one line for each element, down to `depth`. A negative `indent`
/// stands for lines without indentation.
void printJson(std::string &out, const Json &json, int depth, int indent = 0);

/// Prints a list or object with a line for each element, `indent` as above.
class JsonLines {
public:
  JsonLines(std::string &out, bool isList, int indent)
      : out(out), isList(isList), indent(indent) {
    out += isList ? "[" : "{";
  }

  /// Starts the next element; the caller then appends the element, or the value
  /// of `key`, to `out`.
  void next(const std::string &key = "");
  void end();

private:
  std::string &out;
  bool isList, empty = true;
  int indent;
};

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_JSONTEXT_H
