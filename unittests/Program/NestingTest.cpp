//===- NestingTest.cpp - Tests of the depth of texts ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Program/Nesting.h"

#include "gtest/gtest.h"

using namespace whale;

namespace {

std::string repeat(llvm::StringRef text, unsigned count) {
  std::string result;
  for (unsigned i = 0; i < count; ++i)
    result += text;
  return result;
}

TEST(Nesting, CountsEachKindOfBracket) {
  for (llvm::StringRef bracket : {"(", "[", "{", "<", "-"}) {
    EXPECT_FALSE(findDeepNesting(repeat(bracket, mostBrackets)));
    EXPECT_TRUE(findDeepNesting(repeat(bracket, mostBrackets + 1)));
  }
  EXPECT_FALSE(findDeepNesting(repeat("([{<>}])", 1000)));
}

TEST(Nesting, SaysWhere) {
  auto error = findDeepNesting("\n\n  " + repeat("[", mostBrackets + 1));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->line, 3u);
  EXPECT_EQ(error->column, 3 + mostBrackets);
  EXPECT_EQ(error->message, "the text is nested more than 512 deep");
}

TEST(Nesting, KnowsStringsAndComments) {
  std::string deep = repeat("(", mostBrackets + 1);
  EXPECT_FALSE(findDeepNesting("\"" + deep + "\""));
  EXPECT_FALSE(findDeepNesting("\"\\\"" + deep + "\""));
  EXPECT_FALSE(findDeepNesting("// \"" + deep + "\n\"a\""));
  // A string ends with its line, so that nothing hides behind an open one.
  EXPECT_TRUE(findDeepNesting("\"\n" + deep));
  EXPECT_TRUE(findDeepNesting("\"a\\\\\"" + deep));
}

TEST(Nesting, ComparisonsAndArrowsCloseNothing) {
  EXPECT_FALSE(findDeepNesting(repeat("() -> () ", 1000)));
  EXPECT_TRUE(findDeepNesting(repeat("{ -> ", mostBrackets + 1)));
  EXPECT_TRUE(findDeepNesting(repeat("< >= ", mostBrackets + 1)));
  EXPECT_TRUE(findDeepNesting(repeat("{ > ", mostBrackets + 1)));
  // One alone is closed with what is around it.
  EXPECT_FALSE(findDeepNesting(repeat("( < )", 1000)));
}

TEST(Nesting, CountsTheOperatorsOfAnExpression) {
  for (llvm::StringRef sign : {"+", "*", "-", "floordiv", "ceildiv", "mod"}) {
    std::string term = " " + sign.str() + " d0";
    std::string most = repeat(term, mostAffineOperators);
    EXPECT_FALSE(findDeepNesting("affine_map<(d0) -> (d0" + most + ")>"));
    auto error = findDeepNesting("[%i\n" + most + term + "]");
    ASSERT_TRUE(error);
    EXPECT_EQ(error->line, 2u);
    EXPECT_EQ(error->message,
              "the text has an expression of more than 4096 operators");
    // However it is bracketed.
    EXPECT_TRUE(findDeepNesting(repeat("(d0" + term + ")" + term, 3000)));
    // In several expressions.
    EXPECT_FALSE(findDeepNesting("(d0" + most + ", d0" + most + ")"));
  }
  EXPECT_FALSE(
      findDeepNesting(repeat("%mod = %a.mod -> \"+\" modulo\n", 9000)));
  EXPECT_FALSE(findDeepNesting(repeat("-1.0e+5, ", 9000)));
}

/// Aliases that each name the one before.
std::string chain(llvm::StringRef before, llvm::StringRef after,
                  unsigned count) {
  std::string text = "#a0 = 1\n";
  for (unsigned i = 1; i < count; ++i)
    text += "#a" + std::to_string(i) + " =" + before.str() + "#a" +
            std::to_string(i - 1) + after.str() + "\n";
  return text;
}

TEST(Nesting, FollowsAliases) {
  EXPECT_FALSE(findDeepNesting(chain("[", "]", mostAliasBrackets)));
  auto error = findDeepNesting(chain("[", "]", mostAliasBrackets + 10));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "the text is nested more than 4096 deep, with the "
                            "aliases that it names");
  // On several lines, and all on one.
  EXPECT_TRUE(findDeepNesting(chain("\n[", "\n]", 5000)));
  EXPECT_TRUE(findDeepNesting(chain(" () -> // here\n (", ")", 5000)));
  // Used inside others.
  EXPECT_TRUE(findDeepNesting(chain("[", "]", mostAliasBrackets) + "[[#a" +
                              std::to_string(mostAliasBrackets - 1) + "]]"));
}

TEST(Nesting, WritesAliasesOut) {
  auto error = findDeepNesting("#a0 = [1]\n#a1 = [#a0, #a0]\n#a2 = [#a1, #a1]");
  EXPECT_FALSE(error);
  std::string text = "#a0 = [1]\n";
  for (unsigned i = 1; i < 60; ++i) {
    std::string one = "#a" + std::to_string(i - 1);
    text += "#a" + std::to_string(i) + " = [" + one + ", " + one + "]\n";
  }
  error = findDeepNesting(text);
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("alias whose value has more than"),
            std::string::npos);
}

TEST(Nesting, DefinitionsEndBeforeTheModule) {
  std::string deep = repeat("[", 300) + repeat("]", 300);
  std::string text = "#a = [1]\nmodule {\n" + deep + "\n}\n";
  // `#a` is not as deep as what follows it.
  text += "#b = [#a]\n";
  for (int i = 0; i < 20; ++i)
    text += "#b" + std::to_string(i) + " = " + repeat("[", 250) + "#a" +
            repeat("]", 250) + "\n";
  EXPECT_FALSE(findDeepNesting(text));
}

} // namespace
