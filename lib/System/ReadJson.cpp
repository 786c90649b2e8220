//===- ReadJson.cpp - JSON with the place of each value -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a text. Out: its values in a tree. The JSON library calls a function for
// each token. It does not say where that is, so its input counts what has been
// taken: a token begins behind the blanks, commas and colons that follow the
// token before. The library's own tree, made with callbacks, looks at all
// elements of a list or object whenever one of them ends.
//
//===----------------------------------------------------------------------===//

#include "whale/System/ReadJson.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace whale::system {

using Json = nlohmann::json;

namespace {
/// A text that counts what is taken of it.
class CountedInput {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  CountedInput(const char *at, size_t &taken) : at(at), taken(&taken) {}

  reference operator*() const { return *at; }
  CountedInput &operator++() {
    ++at;
    ++*taken;
    return *this;
  }
  CountedInput operator++(int) {
    CountedInput before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountedInput &other) const { return at == other.at; }

private:
  const char *at;
  size_t *taken;
};

/// Builds the tree from the library's calls, which return whether to go on.
class Builder : public nlohmann::json_sax<Json> {
public:
  explicit Builder(std::string_view text) : text(text) {}

  void read() {
    if (size_t zero = text.find('\0'); zero != text.npos)
      throw JsonError("a zero byte", zero); // The library would stop there.
    CountedInput begin(text.data(), taken),
        end(text.data() + text.size(), taken);
    Json::sax_parse(begin, end, this);
  }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t &) override {
    return add(value);
  }
  bool string(string_t &value) override { return add(std::move(value)); }
  bool binary(binary_t &) override { return false; } // JSON has none.
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t &name) override {
    Open &object = around.back();
    if (!object.names.insert(name).second)
      throw JsonError("field '" + name + "' is given twice", begin());
    object.value->children.emplace_back().name = std::move(name);
    pass();
    return true;
  }

  bool parse_error(size_t position, const std::string &,
                   const Json::exception &error) override {
    std::string_view what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    bool isNumber = dynamic_cast<const Json::out_of_range *>(&error);
    std::string_view mark = isNumber ? "] " : ": ";
    if (size_t at = what.find(mark); at != what.npos)
      what.remove_prefix(at + mark.size());
    throw JsonError(what, isNumber ? begin() : position - (position > 0));
  }

  JsonValue root;

private:
  /// An object or a list that has not ended.
  struct Open {
    JsonValue *value;
    std::set<std::string> names;
  };

  /// Where the token at hand begins.
  size_t begin() const {
    return std::min(text.find_first_not_of(" \t\r\n,:", before), text.size());
  }
  /// The token at hand has ended. Of a number one character more is taken,
  /// which begins no value.
  void pass() { before = taken; }

  JsonValue &place(Json scalar) {
    JsonValue *value = &root;
    if (!around.empty()) {
      JsonValue &parent = *around.back().value;
      if (parent.scalar.is_array())
        parent.children.emplace_back();
      value = &parent.children.back();
    }
    value->offset = begin();
    value->scalar = std::move(scalar);
    pass();
    return *value;
  }
  bool add(Json scalar) {
    place(std::move(scalar));
    return true;
  }
  bool open(Json scalar) {
    constexpr size_t deepest = 100;
    if (around.size() == deepest)
      throw JsonError("more than " + std::to_string(deepest) +
                          " lists and objects in one another",
                      begin());
    around.push_back({&place(std::move(scalar)), {}});
    return true;
  }
  bool close() {
    around.pop_back();
    pass();
    return true;
  }

  std::string_view text;
  size_t taken = 0, before = 0;
  std::vector<Open> around;
};
} // namespace

const JsonValue *JsonValue::find(std::string_view member) const {
  auto it = std::ranges::find(children, member, &JsonValue::name);
  return it == children.end() ? nullptr : &*it;
}

JsonValue readJson(std::string_view text) {
  Builder builder(text);
  builder.read();
  return std::move(builder.root);
}

} // namespace whale::system
