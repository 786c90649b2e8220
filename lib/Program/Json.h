//===- Json.h - JSON as people like to read it ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_JSON_H
#define WHALE_LIB_PROGRAM_JSON_H

#include "nlohmann/json.hpp"
#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace whale {

/// Keeps the order in which fields are written.
using Json = nlohmann::ordered_json;

inline Json toJson(llvm::ArrayRef<int64_t> list) {
  Json json = Json::array();
  for (int64_t element : list)
    json.push_back(element);
  return json;
}

/// Whether there are more values in it than in a line that is read at a glance,
/// `room` of them.
inline bool exceeds(const Json &json, int &room) {
  return --room < 0 ||
         (json.is_structured() &&
          std::any_of(
              json.begin(), json.end(),
              [&](const Json &element) { return exceeds(element, room); }));
}

/// Prints a list or object with a line for each element.
class JsonLines {
public:
  JsonLines(std::string &out, bool isList, int indent)
      : out(out), isList(isList), indent(indent) {
    out += isList ? "[" : "{";
  }

  /// What is appended to `out` next is an element of the list, or the value of
  /// this key.
  void next(const std::string &key = "") {
    out += empty ? "\n" : ",\n";
    empty = false;
    out.append(indent + 1, ' ');
    if (!isList)
      out +=
          Json(key).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
  }

  void end() {
    if (!empty)
      out.append("\n").append(indent, ' ');
    out += isList ? "]" : "}";
  }

private:
  std::string &out;
  bool isList, empty = true;
  int indent;
};

/// Lists and objects that hold others and would be longer than a line get one
/// line for each element, down to `depth`.
inline void printJson(std::string &out, const Json &json, int depth,
                      int indent = 0) {
  bool nested = json.is_structured() && depth > 0 &&
                std::any_of(json.begin(), json.end(), [](const Json &element) {
                  return element.is_structured();
                });
  // Each value takes two characters of a line of 120.
  int room = 60;
  if (!nested || !exceeds(json, room)) {
    std::string line =
        json.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (!nested || line.size() + indent <= 120) {
      out += line;
      return;
    }
  }
  JsonLines lines(out, json.is_array(), indent);
  for (const auto &[key, value] : json.items()) {
    lines.next(key);
    printJson(out, value, depth - 1, indent + 1);
  }
  lines.end();
}

/// The manifest is printed in parts: a whole one of a large program has
/// millions of values. This is a field of it.
inline void printField(std::string &out, const Json &json) {
  printJson(out, json, /*depth=*/7, /*indent=*/1);
}

/// An element of a list or object that is a field of the manifest.
inline std::string printElement(const Json &json) {
  std::string out;
  printJson(out, json, /*depth=*/6, /*indent=*/2);
  return out;
}

} // namespace whale

#endif // WHALE_LIB_PROGRAM_JSON_H
