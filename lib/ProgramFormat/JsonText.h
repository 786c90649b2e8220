//===- JsonText.h - JSON as people like to read it --------------*- C++ -*-===//
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

/// Keeps the order in which fields are written.
using Json = nlohmann::ordered_json;

/// Text of one line.
std::string printLine(const Json &json);

/// Lists and objects that hold others and would be longer than a line get one
/// line for each element, down to `depth`.
void printJson(std::string &out, const Json &json, int depth, int indent = 0);

/// Prints a list or object with a line for each element.
class JsonLines {
public:
  JsonLines(std::string &out, bool isList, int indent)
      : out(out), isList(isList), indent(indent) {
    out += isList ? "[" : "{";
  }

  /// What is appended to `out` next is an element of the list, or the value of
  /// this key.
  void next(const std::string &key = "");
  void end();

private:
  std::string &out;
  bool isList, empty = true;
  int indent;
};

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_JSONTEXT_H
