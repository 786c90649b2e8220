//===- Json.h - JSON of strings that may be any bytes -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names of scopes, arguments and files are bytes, strings of JSON are UTF-8.
// What one of our tools writes, and reads again, goes through these two
// functions, which give each string back as it was; for anything but these
// names they print and read plain JSON. Cost: one more search of the text, and
// where it has a name with such bytes, a copy of the value.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_JSON_H
#define WHALE_SYSTEM_JSON_H

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace whale::system {

/// Returns bytes as UTF-8: what is none becomes escapes such as `\xFF`, and a
/// backslash before something that looks like the rest of one, `\x5C`.
std::string utf8FromBytes(std::string_view bytes);
/// Returns the bytes that utf8FromBytes has made a text of.
std::string bytesFromUtf8(std::string_view text);

/// Returns the value with each string, keys too, converted.
template <typename Json>
Json mapStrings(const Json &json, std::string (*convert)(std::string_view)) {
  if (json.is_string())
    return convert(json.template get_ref<const std::string &>());
  if (!json.is_structured())
    return json;
  Json result = json.is_array() ? Json::array() : Json::object();
  for (const auto &[key, value] : json.items())
    if (json.is_array())
      result.push_back(mapStrings(value, convert));
    else
      result[convert(key)] = mapStrings(value, convert);
  return result;
}

/// Returns the text of a value, on one line if `indent` is negative. Its
/// strings, which may be any bytes, are written as utf8FromBytes has them.
template <typename Json>
std::string printJson(const Json &json, int indent = -1) {
  try {
    std::string text = json.dump(indent);
    if (text.find(R"(\\x)") == text.npos)
      return text;
  } catch (const typename Json::type_error &) {
    // A string is not UTF-8.
  }
  return mapStrings(json, utf8FromBytes).dump(indent);
}

/// Reads what printJson has written. Throws what the library throws where the
/// text is no JSON.
template <typename Json>
Json parseJson(std::string_view text) {
  Json json = Json::parse(text.begin(), text.end());
  return text.find('\\') == text.npos ? json : mapStrings(json, bytesFromUtf8);
}

} // namespace whale::system

#endif // WHALE_SYSTEM_JSON_H
