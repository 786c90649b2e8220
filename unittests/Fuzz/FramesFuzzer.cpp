//===- FramesFuzzer.cpp - Fuzz the messages of processes --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any bytes are frames or wrong, in whatever pieces they come. What is read of
// a frame's fields is written as the same bytes.
//
//===----------------------------------------------------------------------===//

#include "job/Frames.h"

#include <algorithm>
#include <cstdlib>

using namespace whale::runtime::job;

/// The bytes of all frames as they are read, up to what is wrong.
static std::string readAll(std::string_view given, size_t piece) {
  std::string bytes, all;
  for (size_t at = 0; at < given.size(); at += piece) {
    bytes += given.substr(at, piece);
    bool isWrong = false;
    while (auto frame = decode(bytes, strangersBytes, isWrong))
      all += encode(frame->kind, frame->fields);
    if (isWrong)
      return all;
  }
  return all;
}

static void checkFields(std::string_view fields) {
  // As those of a hello, and of a gather.
  FieldReader reader(fields);
  FieldWriter writer;
  writer.text(reader.text());
  for (int i = 0; i < 2; ++i)
    writer.number(reader.number());
  writer.text(reader.text());
  if (reader.isComplete() && writer.take() != fields)
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view given(reinterpret_cast<const char *>(data), size);
  std::string all = readAll(given, std::max<size_t>(1, size));
  if (!given.starts_with(all) || readAll(given, 3) != all)
    std::abort();
  std::string bytes(given);
  bool isWrong = false;
  while (auto frame = decode(bytes, strangersBytes, isWrong))
    checkFields(frame->fields);
  return 0;
}
