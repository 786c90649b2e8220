//===- JsonTest.cpp -------------------------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/Json.h"

#include "gtest/gtest.h"

using namespace whale::system;
using Json = nlohmann::ordered_json;
using std::string;

TEST(Json, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(utf8FromBytes("a\xff\xfe"), "a\\xFF\\xFE");
  EXPECT_EQ(utf8FromBytes("\xc3"), "\\xC3");
  EXPECT_EQ(utf8FromBytes("'é' 鲸 \\ \\x \\xf0 C:\\new"),
            "'é' 鲸 \\ \\x \\xf0 C:\\new");
  // What looks like an escape is none.
  EXPECT_EQ(utf8FromBytes("\\xFF"), "\\x5CxFF");
}

TEST(Json, GivesBytesBack) {
  // All texts of up to five of these characters.
  const string alphabet = "\\x5CF\xff";
  size_t tested = 0;
  for (size_t length = 0; length <= 5; ++length) {
    size_t count = 1;
    for (size_t i = 0; i < length; ++i)
      count *= alphabet.size();
    for (size_t number = 0; number < count; ++number) {
      string bytes;
      for (size_t rest = number; bytes.size() < length; rest /= alphabet.size())
        bytes += alphabet[rest % alphabet.size()];
      ASSERT_EQ(bytesFromUtf8(utf8FromBytes(bytes)), bytes);
      ++tested;
    }
  }
  EXPECT_EQ(tested, 9331u);
}

TEST(Json, PrintsAndReadsNestedStrings) {
  Json json = {{"a\xff", {1, "\xfe", {{"k", "\\x41"}}}}, {"b", nullptr}};
  EXPECT_EQ(printJson(json),
            R"({"a\\xFF":[1,"\\xFE",{"k":"\\x5Cx41"}],"b":null})");
  EXPECT_EQ(parseJson<Json>(printJson(json)), json);
  EXPECT_EQ(parseJson<Json>(printJson(json, 2)), json);
  EXPECT_THROW(parseJson<Json>("{"), Json::parse_error);
}

TEST(Json, LeavesOtherTextsAsTheyAre) {
  Json json = {{"path", "C:\\new"}, {"name", "é"}, {"line", "a\nb"}};
  EXPECT_EQ(printJson(json), json.dump());
  EXPECT_EQ(parseJson<Json>(json.dump()), json);
}
