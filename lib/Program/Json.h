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
  std::string pad(indent + 1, ' ');
  out += json.is_array() ? "[" : "{";
  bool first = true;
  for (const auto &[key, value] : json.items()) {
    out += first ? "\n" : ",\n";
    first = false;
    out += pad;
    if (json.is_object())
      out +=
          Json(key).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
    printJson(out, value, depth - 1, indent + 1);
  }
  out += "\n" + std::string(indent, ' ') + (json.is_array() ? "]" : "}");
}

} // namespace whale

#endif // WHALE_LIB_PROGRAM_JSON_H
