//===- Field.h - Checked access to JSON -------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value of a JSON document. Errors are reported with its path:
// "manifest.json: classes[0].buffers[3].offset: must be ...".
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAMFORMAT_FIELD_H
#define WHALE_LIB_PROGRAMFORMAT_FIELD_H

#include "whale/ProgramFormat/DType.h"
#include "whale/ProgramFormat/Layout.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace whale::format {

struct Document {
  /// Path of the file, for errors.
  std::string file;
  nlohmann::json root;
};

/// A reference into the document, which must outlive it.
class Field {
public:
  static constexpr int64_t maximum = std::numeric_limits<int64_t>::max();

  explicit Field(const Document &document) : Field(document, document.root) {}
  /// `value` is in the document, for errors to find its path.
  Field(const Document &document, const nlohmann::json &value)
      : document(&document), value(&value) {}

  /// Throws system::Error with this field's path.
  [[noreturn]] void fail(const std::string &what) const;

  const nlohmann::json &json() const { return *value; }

  /// Returns the member `key` of this object; fails if it is missing.
  Field at(const std::string &key) const;
  /// The same, but nullopt if it is missing or null.
  std::optional<Field> find(const std::string &key) const;
  /// Returns the number of elements of this list.
  size_t size() const;
  Field operator[](size_t index) const;
  /// Returns the members of this object.
  std::vector<std::pair<std::string, Field>> members() const;

  /// Returns an integer in [low, high].
  int64_t integer(int64_t low = 0, int64_t high = maximum) const;
  double number() const;
  /// Returns a number rounded to an integer, saturated.
  int64_t rounded() const;
  bool boolean() const;
  const std::string &text() const;
  std::vector<int64_t> integers(int64_t low = 0, int64_t high = maximum) const;
  /// Returns a shape of at most 32 dimensions; the product of its extents other
  /// than 0 is below 2^56.
  Shape shape() const;
  DType dtype() const;
  /// Returns the type and shape in a text such as tensorType prints.
  std::pair<DType, Shape> tensorType() const;

private:
  void checkShape(const Shape &shape) const;
  const Document *document;
  const nlohmann::json *value;
};

/// Returns the rank or channel that a decimal key denotes, or nullopt.
std::optional<int64_t> parseDecimal(const std::string &text);

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_FIELD_H
