//===- Field.cpp - Checked access to JSON -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Field, a value of a JSON document that is checked as it is
// decoded. The path of a value is not stored; it is found by searching the
// document when an error is reported. Cost: constant for numbers, texts and
// elements of lists; logarithmic in its fields for a field of an object; linear
// in the list for lists of integers and in the text for types of tensors;
// linear in the document for the one error.
//
//===----------------------------------------------------------------------===//

#include "Field.h"

#include "whale/ProgramFormat/Limits.h"
#include "whale/System/Error.h"

#include <charconv>
#include <cmath>

namespace whale::format {

/// Appends the path from `from` to `to`, if `to` is in `from`. Values don't
/// store their paths: this search runs only when an error is reported.
static bool findPath(const nlohmann::json &from, const nlohmann::json *to,
                     std::string &path) {
  if (&from == to)
    return true;
  size_t length = path.size();
  size_t index = 0;
  if (from.is_structured())
    for (auto it = from.begin(); it != from.end(); ++it, ++index) {
      if (from.is_array())
        path += "[" + std::to_string(index) + "]";
      else
        path += (path.empty() ? "" : ".") + it.key();
      if (findPath(*it, to, path))
        return true;
      path.resize(length);
    }
  return false;
}

void Field::fail(const std::string &what) const {
  std::string path;
  findPath(document->root, value, path);
  throw system::Error(document->file + ": " + path +
                      (path.empty() ? "" : ": ") + what);
}

Field Field::at(const std::string &key) const {
  if (!value->is_object())
    fail("must be an object");
  auto it = value->find(key);
  if (it == value->end())
    fail("has no field '" + key + "'");
  return Field(*document, *it);
}

std::optional<Field> Field::find(const std::string &key) const {
  if (!value->is_object())
    fail("must be an object");
  auto it = value->find(key);
  if (it == value->end() || it->is_null())
    return std::nullopt;
  return Field(*document, *it);
}

size_t Field::size() const {
  if (!value->is_array())
    fail("must be a list");
  return value->size();
}

Field Field::operator[](size_t index) const {
  if (index >= size())
    fail("must have more than " + std::to_string(index) + " elements");
  return Field(*document, (*value)[index]);
}

std::vector<std::pair<std::string, Field>> Field::members() const {
  if (!value->is_object())
    fail("must be an object");
  std::vector<std::pair<std::string, Field>> result;
  result.reserve(value->size());
  for (auto it = value->begin(); it != value->end(); ++it)
    result.emplace_back(it.key(), Field(*document, *it));
  return result;
}

/// Returns the integer in `value`, if it is one and fits.
static std::optional<int64_t> asInteger(const nlohmann::json &value) {
  if (value.is_number_unsigned()) {
    uint64_t number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(Field::maximum))
      return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer())
    return value.get<int64_t>();
  return std::nullopt;
}

int64_t Field::integer(int64_t low, int64_t high) const {
  std::optional<int64_t> number = asInteger(*value);
  if (!number || *number < low || *number > high)
    fail("must be an integer " +
         (high == maximum
              ? "of at least " + std::to_string(low)
              : "from " + std::to_string(low) + " to " + std::to_string(high)));
  return *number;
}

double Field::number() const {
  if (!value->is_number())
    fail("must be a number");
  return value->get<double>();
}

int64_t Field::rounded() const {
  if (std::optional<int64_t> integer = asInteger(*value))
    return *integer;
  double real = number();
  if (std::fabs(real) < 0x1p63)
    return std::llround(real);
  return real < 0 ? std::numeric_limits<int64_t>::min() : maximum;
}

bool Field::boolean() const {
  if (!value->is_boolean())
    fail("must be true or false");
  return value->get<bool>();
}

const std::string &Field::text() const {
  if (!value->is_string())
    fail("must be a string");
  return value->get_ref<const std::string &>();
}

std::vector<int64_t> Field::integers(int64_t low, int64_t high) const {
  std::vector<int64_t> result;
  size_t count = size();
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    std::optional<int64_t> number = asInteger((*value)[i]);
    if (!number || *number < low || *number > high)
      (*this)[i].integer(low, high);
    result.push_back(*number);
  }
  return result;
}

void Field::checkShape(const Shape &shape) const {
  if (std::ssize(shape) > mostDimensions)
    fail("has more than " + std::to_string(mostDimensions) + " dimensions");
  int64_t product = 1;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(product, extent ? extent : 1, &product) ||
        product >= (int64_t(1) << 56))
      fail("is too large");
}

Shape Field::shape() const {
  Shape shape = integers(0);
  checkShape(shape);
  return shape;
}

std::pair<DType, Shape> Field::tensorType() const {
  std::string_view rest = text();
  size_t open = rest.find('[');
  std::optional<DType> dtype =
      parseDType(std::string(rest.substr(0, std::min(open, rest.size()))));
  auto isType = [&] {
    return dtype && open != rest.npos && rest.back() == ']';
  };
  Shape shape;
  if (isType()) {
    rest = rest.substr(open + 1, rest.size() - open - 2);
    while (!rest.empty() && dtype) {
      std::string_view extent = rest.substr(0, rest.find(','));
      std::optional<int64_t> number = parseDecimal(std::string(extent));
      bool isLast = extent.size() == rest.size();
      rest.remove_prefix(isLast ? rest.size() : extent.size() + 1);
      // An element or "]" must follow a comma.
      if (!number || (!isLast && rest.empty()))
        dtype.reset();
      else
        shape.push_back(*number);
    }
  } else {
    dtype.reset();
  }
  if (!dtype)
    fail("'" + text() + "' is no type like f32[2,3]");
  checkShape(shape);
  return {*dtype, shape};
}

DType Field::dtype() const {
  std::optional<DType> dtype = parseDType(text());
  if (!dtype)
    fail("unknown element type '" + text() + "'");
  return *dtype;
}

std::optional<int64_t> parseDecimal(const std::string &text) {
  int64_t number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  // Accept only one spelling of each number, so that no two keys are equal.
  if (error != std::errc() || number < 0 || std::to_string(number) != text)
    return std::nullopt;
  return number;
}

} // namespace whale::format
