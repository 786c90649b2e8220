//===- SafetensorsTest.cpp - Files of tensors -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reading and writing files of tensors. Random bytes of every element type, in
// four shapes each, are written and read again: names, shapes, bytes and
// alignment must agree.
//
// Files come from users, so damaged ones must be refused with a message that
// says why: a table has one file for each mistake in a header, and a file that
// is cut off at any length is an error. A write that fails must leave the old
// file, and no other.
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Safetensors.h"

#include "../Growth.h"
#include "ProgramFiles.h"
#include "whale/Runtime/Types.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace whale::runtime;
using namespace whale::runtime::test;

namespace {

std::string withHeader(const std::string &header, size_t data) {
  std::string text(8, '\0');
  for (int i = 0; i < 8; ++i)
    text[i] = static_cast<char>(uint64_t(header.size()) >> (8 * i));
  return text + header + std::string(data, 'x');
}

std::string errorOf(const std::string &bytes) {
  try {
    SafetensorsFile::parse(
        "file", reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(SafetensorsTest, RoundTripsEveryDType) {
  TemporaryDirectory directory;
  auto path = directory.path() / "t.safetensors";
  std::vector<TensorToWrite> tensors;
  std::map<std::string, std::string> expected;
  std::mt19937 random(1);
  for (int i = 0; i <= static_cast<int>(DType::C128); ++i) {
    auto dtype = static_cast<DType>(i);
    for (Shape shape : {Shape{}, Shape{3}, Shape{2, 0, 4}, Shape{5, 3}}) {
      std::string name =
          std::string(whale::runtime::name(dtype)) + toString(shape);
      std::string bytes(elementCount(shape) * byteSize(dtype), '\0');
      for (char &byte : bytes)
        byte = static_cast<char>(random());
      expected[name] = bytes;
      tensors.push_back({name, dtype, shape, [bytes](void *out) {
                           std::memcpy(out, bytes.data(), bytes.size());
                         }});
    }
  }
  writeSafetensors(path, tensors);
  SafetensorsFile file = SafetensorsFile::open(path);
  ASSERT_EQ(file.tensors().size(), expected.size());
  for (const TensorToWrite &tensor : tensors) {
    const auto &read = file.tensors().at(tensor.name);
    EXPECT_EQ(read.dtype, safetensorsName(tensor.dtype));
    EXPECT_EQ(read.shape, safetensorsShape(tensor.dtype, tensor.shape));
    EXPECT_EQ(
        std::string(reinterpret_cast<const char *>(read.data), read.bytes),
        expected[tensor.name]);
    if (read.bytes) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(read.data) %
                    std::min<int64_t>(byteSize(tensor.dtype), 8),
                0u);
    }
  }
}

TEST(SafetensorsTest, WritesComplexPairs) {
  EXPECT_EQ(safetensorsName(DType::C128), "F64");
  EXPECT_EQ(safetensorsShape(DType::C128, {3}), (Shape{3, 2}));
  EXPECT_EQ(safetensorsShape(DType::C64, {3}), Shape{3});
}

TEST(SafetensorsTest, ReadsMetadata) {
  std::string bytes = withHeader(R"({"__metadata__":{"format":"np"}})", 0);
  SafetensorsFile file = SafetensorsFile::parse(
      "file", reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  EXPECT_EQ(file.metadata().at("format"), "np");
  EXPECT_TRUE(file.tensors().empty());
}

TEST(SafetensorsTest, RefusesDamagedFiles) {
  auto entry = [](const char *dtype, const char *shape, const char *offsets) {
    return std::string(R"({"t":{"dtype":")") + dtype + R"(","shape":)" + shape +
           R"(,"data_offsets":)" + offsets + "}}";
  };
  EXPECT_EQ(errorOf(withHeader(entry("F32", "[2]", "[0,8]"), 8)), "");
  EXPECT_EQ(errorOf("abc"), "file: too short to be a safetensors file");
  EXPECT_NE(errorOf(std::string(8, '\xff')).find("does not fit"),
            std::string::npos);
  struct {
    std::string header;
    size_t data;
    const char *message;
  } cases[] = {
      {"{", 0, "not valid JSON"},
      {"[]", 0, "not a JSON object"},
      {R"({"t":3})", 0, "tensor 't': not a JSON object"},
      {entry("F31", "[2]", "[0,8]"), 8, "unknown dtype 'F31'"},
      {entry("F32", "[-2]", "[0,8]"), 8, "non-negative"},
      {entry("F32", "3", "[0,8]"), 8, "shape must be a list"},
      {entry("F32", "[2]", "[8,0]"), 8, "data_offsets must be a range"},
      {entry("F32", "[2]", "[0,16]"), 8, "data_offsets must be a range"},
      {entry("F32", "[3]", "[0,8]"), 8, "hold 8 bytes"},
      {entry("F32", "[4611686018427387904,4]", "[0,0]"), 0, "too large"},
      {entry("F32", "[0,4611686018427387904]", "[0,0]"), 0, "too large"},
      {entry("F32", "[2]", "[4,12]"), 12, "gap"},
      {entry("F32", "[2]", "[0,8]"), 12, "belong to no tensor"},
      {R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
       R"("t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
       0, "twice"},
      {R"({"__metadata__":{"a":1}})", 0, "object of strings"},
  };
  for (const auto &test : cases)
    EXPECT_NE(errorOf(withHeader(test.header, test.data)).find(test.message),
              std::string::npos)
        << test.header << ": " << errorOf(withHeader(test.header, test.data));
}

TEST(SafetensorsTest, EveryTruncationIsAnError) {
  std::string whole = withHeader(
      R"({"a":{"dtype":"I64","shape":[3],"data_offsets":[0,24]}})", 24);
  ASSERT_EQ(errorOf(whole), "");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(errorOf(whole.substr(0, size)), "") << size;
}

TEST(SafetensorsTest, ReadingAndWritingAreLinear) {
  TemporaryDirectory directory;
  auto path = directory.path() / "t.safetensors";
  auto copy = [&](size_t count) {
    std::vector<TensorToWrite> tensors;
    for (size_t i = 0; i < count; ++i)
      tensors.push_back(
          {"layer" + std::to_string(i), DType::UI8, {1}, [](void *byte) {
             *static_cast<char *>(byte) = 7;
           }});
    writeSafetensors(path, tensors);
    EXPECT_EQ(SafetensorsFile::open(path).tensors().size(), count);
  };
  EXPECT_TRUE(whale::test::isNearlyLinear(copy, 300));
}

TEST(SafetensorsTest, FailedWriteLeavesTheOldFile) {
  TemporaryDirectory directory;
  auto path = directory.path() / "t.safetensors";
  writeFile(path, "old");
  TensorToWrite bad = {
      "t", DType::F32, {2}, [](void *) { throw Error("cannot gather"); }};
  EXPECT_THROW(writeSafetensors(path, {bad}), Error);
  EXPECT_EQ(readFile(path), "old");
  size_t files = 0;
  for (const auto &entry :
       std::filesystem::directory_iterator(directory.path()))
    files += entry.is_regular_file();
  EXPECT_EQ(files, 1u);
}

} // namespace
