//===- JsonField.cpp - A value of a JSON file, with its place -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cost of each access: linear in the members of an object.
//
//===----------------------------------------------------------------------===//

#include "whale/System/JsonField.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace whale::system {

/// Formats a number the way a file would write it: 1e24, 0.5, 1e-6.
static std::string shortest(double number) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%g", number);
  std::string text = buffer;
  size_t exponent = text.find('e');
  if (exponent == std::string::npos)
    return text;
  // The library writes "1e+24" and "1e-06".
  size_t zeros = text.find_first_not_of('0', exponent + 2);
  text.erase(exponent + 2, zeros - (exponent + 2));
  if (text[exponent + 1] == '+')
    text.erase(exponent + 1, 1);
  return text;
}

TextPlace placeOf(std::string_view text, size_t offset) {
  std::string_view before = text.substr(0, offset);
  return {1 + std::ranges::count(before, '\n'),
          static_cast<int64_t>(before.size() - (before.rfind('\n') + 1)) + 1};
}

void JsonField::fail(const std::string &what) const {
  throw JsonError((path.empty() ? "" : path + ": ") + what, place->offset);
}

const JsonField &
JsonField::object(const std::vector<std::string_view> &known) const {
  if (!value().is_object())
    fail("expected an object, found " + describe());
  for (const JsonValue &member : place->children)
    if (std::ranges::find(known, member.name) == known.end())
      child(member).fail("unknown field, expected one of " + joinNames(known));
  return *this;
}

std::vector<JsonField> JsonField::list() const {
  if (!value().is_array())
    fail("expected a list, found " + describe());
  if (place->children.empty())
    fail("expected at least one element");
  std::vector<JsonField> fields;
  for (const JsonValue &element : place->children)
    fields.emplace_back(element,
                        path + "[" + std::to_string(fields.size()) + "]");
  return fields;
}

std::vector<std::pair<std::string, JsonField>> JsonField::members() const {
  if (!value().is_object())
    fail("expected an object, found " + describe());
  std::vector<std::pair<std::string, JsonField>> fields;
  for (const JsonValue &member : place->children)
    fields.emplace_back(member.name, child(member));
  return fields;
}

std::optional<JsonField> JsonField::get(std::string_view key) const {
  const JsonValue *member = place->find(key);
  return member ? std::optional(child(*member)) : std::nullopt;
}

JsonField JsonField::need(std::string_view key) const {
  if (std::optional<JsonField> field = get(key))
    return *field;
  fail("field '" + std::string(key) + "' is missing");
}

std::string JsonField::string() const {
  if (!value().is_string())
    fail("expected a string, found " + describe());
  auto text = value().get<std::string>();
  if (text.empty())
    fail("the string is empty");
  return text;
}

double JsonField::number() const {
  if (!value().is_number())
    fail("expected a number, found " + describe());
  return value().get<double>();
}

double JsonField::within(double least, double most) const {
  double found = number();
  if (!(found >= least && found <= most))
    fail("expected a number from " + shortest(least) + " to " + shortest(most) +
         ", found " + describe());
  return found;
}

int64_t JsonField::whole(double least, double most) const {
  double found = within(least, most);
  if (found != std::floor(found))
    fail("expected a whole number, found " + describe());
  return value().is_number_float() ? static_cast<int64_t>(found)
                                   : value().get<int64_t>();
}

int64_t JsonField::count(int64_t max) const {
  double found = number();
  if (found != std::floor(found))
    fail("expected a whole number, found " + describe());
  if (found < 1)
    fail("expected at least 1, found " + describe());
  if (found > static_cast<double>(max))
    fail("expected at most " + std::to_string(max) + ", found " + describe());
  return value().is_number_float() ? static_cast<int64_t>(found)
                                   : value().get<int64_t>();
}

std::string JsonField::describe() const {
  if (value().is_number_float() && !std::isfinite(value().get<double>()))
    return "a number that is not finite";
  if (value().is_object())
    return "an object";
  if (value().is_array())
    return "a list";
  std::string text = value().dump();
  return text.size() > 40 ? text.substr(0, 40) + "..." : text;
}

JsonField JsonField::child(const JsonValue &member) const {
  return {member, (path.empty() ? "" : path + ".") + member.name};
}

} // namespace whale::system
