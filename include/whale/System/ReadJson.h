//===- ReadJson.h - JSON with the place of each value -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For texts that people write: what is wrong with a value is told at its line.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_READJSON_H
#define WHALE_SYSTEM_READJSON_H

#include "whale/System/Error.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace whale::system {

/// What is no JSON, or JSON that the library would read as something else.
class JsonError : public Error {
public:
  JsonError(std::string_view what, size_t offset)
      : Error(what), offset(offset) {}

  /// The byte of the text at which it is.
  size_t getOffset() const { return offset; }

private:
  size_t offset;
};

/// A value of a JSON text.
struct JsonValue {
  /// Of a member of an object.
  std::string name;
  /// The byte of the text at which it begins.
  size_t offset = 0;
  /// A number, string, truth value or null; of the others their type alone.
  nlohmann::json scalar;
  /// The elements of a list or the members of an object, in the text's order.
  std::vector<JsonValue> children;

  /// The member with this name, or null. Linear in the members.
  const JsonValue *find(std::string_view member) const;
};

/// Reads a text in time linear in its length, times a logarithm for the members
/// of an object. Throws JsonError for what is no JSON, a number that no double
/// holds, a name that an object has twice, a zero byte, and more than 100
/// values in one another.
JsonValue readJson(std::string_view text);

} // namespace whale::system

#endif // WHALE_SYSTEM_READJSON_H
