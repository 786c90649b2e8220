//===- ReadJsonTest.cpp - JSON with the place of each value ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/ReadJson.h"

#include "../Growth.h"

#include <gtest/gtest.h>

using namespace whale::system;

namespace {
/// The message and the offset of what is wrong with a text.
std::string errorOf(std::string_view text) {
  try {
    readJson(text);
    return "";
  } catch (const JsonError &error) {
    return std::string(error.what()) + " @" + std::to_string(error.getOffset());
  }
}

TEST(ReadJson, ValuesAndTheirPlaces) {
  std::string text =
      "{\"a\": [1, -2 ,3e4,\"x\\u0000y\"],\n \"b\":{},\"c\":null}";
  JsonValue value = readJson(text);
  ASSERT_EQ(value.children.size(), 3u);
  EXPECT_TRUE(value.scalar.is_object());
  const JsonValue *list = value.find("a");
  ASSERT_TRUE(list);
  EXPECT_TRUE(list->scalar.is_array());
  ASSERT_EQ(list->children.size(), 4u);
  EXPECT_EQ(list->children[0].scalar.get<int>(), 1);
  EXPECT_EQ(list->children[1].scalar.get<int>(), -2);
  EXPECT_EQ(list->children[2].scalar.get<double>(), 3e4);
  EXPECT_EQ(list->children[3].scalar.get<std::string>(),
            std::string("x\0y", 3));
  EXPECT_EQ(value.children[1].name, "b");
  EXPECT_TRUE(value.find("c")->scalar.is_null());
  EXPECT_FALSE(value.find("d"));
  EXPECT_EQ(text[value.offset], '{');
  EXPECT_EQ(text[list->offset], '[');
  const char *begins[] = {"1", "-", "3", "\""};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(text.substr(list->children[i].offset, 1), begins[i]);
  EXPECT_EQ(text.substr(value.find("b")->offset, 2), "{}");
  EXPECT_EQ(text.substr(value.find("c")->offset), "null}");
}

TEST(ReadJson, Errors) {
  EXPECT_EQ(errorOf("{\"a\": 1,\n \"a\": 2}"), "field 'a' is given twice @10");
  EXPECT_EQ(errorOf("{\"a\": {\"b\": 1}, \"b\": 2}"), "");
  EXPECT_EQ(errorOf("[1, 3e400]"), "number overflow parsing '3e400' @4");
  EXPECT_EQ(errorOf(std::string_view("[\0]", 3)), "a zero byte @1");
  EXPECT_EQ(
      errorOf("[1]]"),
      "syntax error while parsing value - unexpected ']'; expected end of "
      "input @3");
  EXPECT_EQ(errorOf(std::string(100, '[') + std::string(100, ']')), "");
  EXPECT_EQ(errorOf(std::string(1 << 20, '[')),
            "more than 100 lists and objects in one another @100");
}

TEST(ReadJson, IsLinear) {
  auto read = [](size_t count) {
    std::string text = "{\"list\": [[]";
    for (size_t i = 0; i < count; ++i)
      text += ",{\"a\": [1]}";
    text += "]";
    for (size_t i = 0; i < count; ++i)
      text += ", \"member" + std::to_string(i) + "\": {}";
    text += "}";
    EXPECT_EQ(readJson(text).children.size(), count + 1);
  };
  EXPECT_TRUE(whale::test::isNearlyLinear(read, 500));
}
} // namespace
