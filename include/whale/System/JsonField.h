//===- JsonField.h - A value of a JSON file, with its place -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What reads a file that people write checks each value as it takes it: a
// JsonField throws an error that names the value by its path from the top of
// the file. Where that is in the text, `placeOf` says.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_JSONFIELD_H
#define WHALE_SYSTEM_JSONFIELD_H

#include "whale/System/ReadJson.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace whale::system {

/// Joins names with commas.
template <typename Names>
std::string joinNames(const Names &names) {
  std::string text;
  for (std::string_view name : names)
    text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

/// Lines and columns count from 1.
struct TextPlace {
  int64_t line = 0, column = 0;
};
TextPlace placeOf(std::string_view text, size_t offset);

/// A JSON value with its path from the top of the file. All that returns a
/// value throws JsonError where it is none of the kind.
class JsonField {
public:
  JsonField(const JsonValue &place, std::string path)
      : place(&place), path(std::move(path)) {}

  [[noreturn]] void fail(const std::string &what) const;

  const nlohmann::json &value() const { return place->scalar; }
  /// The byte of the text at which it begins.
  size_t offset() const { return place->offset; }

  /// Checks that the value is an object with no fields but these.
  const JsonField &object(const std::vector<std::string_view> &known) const;
  /// Returns the elements of a list, which must not be empty.
  std::vector<JsonField> list() const;
  /// Returns the members of an object with their names.
  std::vector<std::pair<std::string, JsonField>> members() const;
  std::optional<JsonField> get(std::string_view key) const;
  JsonField need(std::string_view key) const;

  /// Returns a string that is not empty.
  std::string string() const;
  double number() const;
  double within(double least, double most) const;
  /// Returns a whole number; forms such as 16e9 are accepted.
  int64_t whole(double least, double most) const;
  /// Returns a whole number from 1 to `max`.
  int64_t count(int64_t max) const;

  /// Describes the value for an error message.
  std::string describe() const;

private:
  JsonField child(const JsonValue &member) const;

  const JsonValue *place;
  std::string path;
};

} // namespace whale::system

#endif // WHALE_SYSTEM_JSONFIELD_H
