//===- FieldsTest.cpp -----------------------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/Fields.h"

#include "gtest/gtest.h"

using namespace whale::system;

TEST(Fields, ComeBack) {
  std::string binary("\0\n\xff", 3);
  std::string fields =
      FieldWriter().number(~uint64_t(0)).text(binary).text("").take();
  FieldReader reader(fields);
  EXPECT_EQ(reader.number(), ~uint64_t(0));
  EXPECT_EQ(reader.text(), binary);
  EXPECT_EQ(reader.text(), "");
  EXPECT_TRUE(reader.isComplete());
  EXPECT_EQ(reader.text(), "");
  EXPECT_TRUE(reader.isWrong());
}
