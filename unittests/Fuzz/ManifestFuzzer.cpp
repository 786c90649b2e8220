//===- ManifestFuzzer.cpp - Fuzz the program reader -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any bytes are a program or an error. What is read is written, and read again
// as the same.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/ProgramFormat/WriteProgram.h"
#include "whale/System/Error.h"

#include <cstdlib>

using namespace whale::format;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Program program;
  try {
    program =
        readProgram({reinterpret_cast<const char *>(data), size}, "manifest");
  } catch (const whale::system::Error &) {
    return 0;
  }
  std::string text = writeProgram(program, {}, SIZE_MAX).manifest;
  if (writeProgram(readProgram(text, "written"), {}, SIZE_MAX).manifest != text)
    std::abort();
  return 0;
}
