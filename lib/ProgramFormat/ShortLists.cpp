//===- ShortLists.cpp - Lists as differences of elements --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a JSON value with lists of elements that are alike. Out: the same with
// short lists: the first element of each form, and for each element its form
// and the differences of its integers to those of the last one of this form.
// ListExpander reads them back.
//
// Two elements have the same form if they differ in the values of integers
// alone. The integers of an element are numbered in the order of its text, with
// the fields of objects in the order of their names: readers needn't keep
// another order. Writing is linear in the text for each level of lists in
// lists; reading is linear in the list that it makes, which is limited because
// a short list may stand for a very long one.
//
//===----------------------------------------------------------------------===//

#include "ShortLists.h"

#include <algorithm>
#include <unordered_map>

namespace whale::format {

namespace {
/// A value as text with a mark for each integer, and the integers.
struct Form {
  std::string text;
  std::vector<int64_t> integers;
  /// Of the value as text.
  size_t length = 0;
  /// Whether differences of the integers fit in 64 bits.
  bool isSmall = true;

  /// Becomes the form of this value.
  void set(const Json &json) {
    text.clear();
    integers.clear();
    length = 0;
    add(json);
  }

private:
  void add(const Json &json);
  void addText(std::string_view piece) {
    text += piece;
    length += piece.size();
  }
  void addString(std::string_view string);
  void addInteger(const Json &json);
};

struct StringHash : std::hash<std::string_view> {
  using is_transparent = void;
};
} // namespace

static size_t lengthOf(int64_t number) {
  size_t length = number < 0 ? 2 : 1;
  while (number /= 10)
    ++length;
  return length;
}

/// Strings are not escaped: their sizes tell them from what comes next.
void Form::addString(std::string_view string) {
  text += std::to_string(string.size());
  addText(":");
  addText(string);
  length += 1;
}

void Form::addInteger(const Json &json) {
  constexpr int64_t most = int64_t(1) << 62;
  auto number = json.get<int64_t>();
  isSmall &= number > -most && number < most;
  integers.push_back(number);
  text += '#';
  length += lengthOf(number);
}

void Form::add(const Json &json) {
  // Vectors are walked, as elsewhere here: iterators of Json look at its type
  // again at each step, and lists have hundreds of thousands of elements.
  if (const auto *list = json.get_ptr<const Json::array_t *>()) {
    addText("[");
    for (const Json &element : *list) {
      add(element);
      addText(",");
    }
    addText("]");
  } else if (const auto *object = json.get_ptr<const Json::object_t *>()) {
    std::vector<const Json::object_t::value_type *> members;
    members.reserve(object->size());
    for (const auto &member : *object)
      members.push_back(&member);
    std::ranges::sort(members, {}, [](auto *member) -> const std::string & {
      return member->first;
    });
    addText("{");
    for (const auto *member : members) {
      addString(member->first);
      addText(":");
      add(member->second);
      addText(",");
    }
    addText("}");
  } else if (json.is_number_integer()) {
    addInteger(json);
  } else if (json.is_string()) {
    addString(json.get_ref<const std::string &>());
  } else {
    addText(printLine(json));
  }
}

/// The integers of a row with those at the end left out that are 0.
static void makeRow(int64_t form, const std::vector<int64_t> &integers,
                    const std::vector<int64_t> &before,
                    std::vector<int64_t> &row) {
  row.assign(1, form);
  for (size_t i = 0; i < integers.size(); ++i)
    row.push_back(integers[i] - before[i]);
  while (row.size() > 1 && row.back() == 0)
    row.pop_back();
}

/// Makes the list a short one, if that saves characters. Returns how many.
static size_t makeShort(Json &json) {
  auto &list = json.get_ref<Json::array_t &>();
  // A short list of fewer elements saves little, and is harder to read.
  constexpr size_t fewest = 8;
  if (list.size() < fewest)
    return 0;
  struct Row {
    std::vector<int64_t> integers;
    int64_t times;
  };
  std::unordered_map<std::string, int64_t, StringHash, std::equal_to<>> numbers;
  std::vector<std::vector<int64_t>> last;
  std::vector<Json *> elements;
  std::vector<Row> rows;
  size_t length = 0, shortLength = 26; // {"elements":[],"rows":[]}
  Form form;
  std::vector<int64_t> row;
  for (Json &element : list) {
    form.set(element);
    if (!form.isSmall)
      return 0;
    length += form.length + 1;
    auto it = numbers.find(form.text);
    if (it == numbers.end()) {
      it = numbers.emplace(form.text, last.size()).first;
      elements.push_back(&element);
      last.push_back(form.integers);
      shortLength += form.length + 1;
    }
    makeRow(it->second, form.integers, last[it->second], row);
    std::swap(last[it->second], form.integers);
    if (rows.empty() || rows.back().integers != row)
      rows.push_back({row, 0});
    ++rows.back().times;
  }
  for (const auto &[integers, times] : rows) {
    for (int64_t number : integers)
      shortLength += lengthOf(number) + 1;
    shortLength += 2;
    if (times > 1)
      shortLength += 3 + lengthOf(times);
  }
  if (shortLength >= length)
    return 0;
  Json forms = Json::array(), differences = Json::array();
  for (Json *element : elements)
    forms.push_back(std::move(*element));
  for (const auto &[integers, times] : rows)
    differences.push_back(times > 1 ? Json::array({times, integers})
                                    : Json(integers));
  json = {{"elements", std::move(forms)}, {"rows", std::move(differences)}};
  return length - shortLength;
}

size_t shortenLists(Json &json) {
  size_t saved = 0;
  if (auto *object = json.get_ptr<Json::object_t *>()) {
    for (auto &member : *object)
      saved += shortenLists(member.second);
  } else if (auto *list = json.get_ptr<Json::array_t *>()) {
    for (Json &element : *list)
      saved += shortenLists(element);
    saved += makeShort(json);
  }
  return saved;
}

/// Appends the integers of an element. Returns the number of its values.
static int64_t findIntegers(nlohmann::json &json,
                            std::vector<nlohmann::json *> &integers) {
  int64_t values = 1;
  if (json.is_number_integer())
    integers.push_back(&json);
  else if (json.is_structured())
    for (nlohmann::json &element : json)
      values += findIntegers(element, integers);
  return values;
}

void ListExpander::expandOne(const Document &document, nlohmann::json &json) {
  Field field(document, json), elements = field.at("elements"),
                               rows = field.at("rows");
  struct Element {
    nlohmann::json json;
    int64_t values = 0;
    std::vector<nlohmann::json *> integers = {};
  };
  std::vector<Element> forms(elements.size());
  for (size_t i = 0; i < forms.size(); ++i) {
    forms[i].json = elements[i].json();
    forms[i].values = findIntegers(forms[i].json, forms[i].integers);
  }
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < rows.size(); ++i) {
    Field row = rows[i];
    int64_t times = 1;
    if (row.size() == 2 && row[1].json().is_array()) {
      times = row[0].integer(1);
      row = row[1];
    }
    std::vector<int64_t> numbers = row.integers(-Field::maximum);
    if (numbers.empty())
      row.fail("must begin with the number of an element");
    Element &form = forms[row[0].integer(0, std::ssize(forms) - 1)];
    if (numbers.size() > form.integers.size() + 1)
      row.fail("has more than the " + std::to_string(form.integers.size()) +
               " integers of element " + std::to_string(numbers[0]));
    if (times > budget / form.values)
      row.fail("the short lists stand for more than " +
               std::to_string(mostShortened) + " values");
    budget -= times * form.values;
    for (; times > 0; --times) {
      for (size_t k = 1; k < numbers.size(); ++k) {
        auto value = Field(document, *form.integers[k - 1]).integer(INT64_MIN);
        if (__builtin_add_overflow(value, numbers[k], &value))
          row[k].fail("leads to an integer that does not fit in 64 bits");
        *form.integers[k - 1] = value;
      }
      list.push_back(form.json);
    }
  }
  json = std::move(list);
}

void ListExpander::expand(const Document &document, nlohmann::json &json) {
  if (json.is_object() && json.size() == 2 && json.contains("elements") &&
      json.contains("rows"))
    expandOne(document, json);
  if (json.is_structured())
    for (nlohmann::json &element : json)
      expand(document, element);
}

} // namespace whale::format
