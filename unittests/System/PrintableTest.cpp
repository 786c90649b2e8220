//===- PrintableTest.cpp --------------------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/Printable.h"

#include "gtest/gtest.h"

using namespace whale::system;
using std::string;
using std::string_view;

TEST(Printable, KeepsText) {
  for (const char *text : {"", " ", "a  b ", "'é' → 鲸 🐋", "C:\\x1B", "\"%\""})
    EXPECT_EQ(diagnosticLine(text), text);
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(escaped("a\x1b[31mb"), "a\\x1B[31mb");
  EXPECT_EQ(escaped("a\nb\r\tc"), "a b  c");
  EXPECT_EQ(escaped(string_view("\0\x7f", 2)), "\\x00\\x7F");
  // A control character of two bytes, and one that turns what follows round.
  EXPECT_EQ(escaped("\xc2\x9b"), "\\xC2\\x9B");
  EXPECT_EQ(escaped("\xe2\x80\xae"), "\\xE2\\x80\\xAE");
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(escaped("\xff\xfe"), "\\xFF\\xFE");
  EXPECT_EQ(escaped("\xc3"), "\\xC3");
  EXPECT_EQ(escaped("\xc3("), "\\xC3(");
  EXPECT_EQ(escaped("\xc0\x80"), "\\xC0\\x80");
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xED\\xA0\\x80");
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\xF4\\x90\\x80\\x80");
}

TEST(Printable, ShortensLongWords) {
  string line = diagnosticLine("there is no '" + string(100000, 'n') +
                               "', only '" + string(100000, 'm') + "'");
  EXPECT_LT(line.size(), 1000u);
  EXPECT_EQ(line.find("there is no 'nnn"), 0u);
  EXPECT_NE(line.find("nnn...nnn"), string::npos);
  EXPECT_NE(line.find("nn', only 'mm"), string::npos);
  EXPECT_EQ(line.substr(line.size() - 3), "mm'");
  string most(400, 'n');
  EXPECT_EQ(diagnosticLine(most), most);
}

TEST(Printable, ShortensLongLines) {
  string words;
  for (int i = 0; i < 50000; ++i)
    words += "a ";
  string line = diagnosticLine("begin " + words + "end");
  EXPECT_LT(line.size(), 4000u);
  EXPECT_EQ(line.find("begin"), 0u);
  EXPECT_EQ(line.substr(line.size() - 3), "end");
}

TEST(Printable, CutsBetweenCharacters) {
  string whales;
  for (int i = 0; i < 1000; ++i)
    whales += "🐋";
  for (const char *before : {"", "a", "ab", "abc"}) {
    string line = diagnosticLine(before + whales);
    EXPECT_LT(line.size(), 400u);
    EXPECT_EQ(line.find('\\'), string::npos) << line;
    EXPECT_EQ(diagnosticLine(line), line);
  }
}
