//===- SafetensorsFuzzer.cpp - Fuzz the reader of tensor files --*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any bytes are a file or an error, and every byte of each tensor can be read.
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Safetensors.h"
#include "whale/Runtime/Types.h"

using namespace whale::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    SafetensorsFile file = SafetensorsFile::parse("file", data, size);
    unsigned sum = 0;
    for (const auto &[name, tensor] : file.tensors())
      for (int64_t i = 0; i < tensor.bytes; ++i)
        sum += tensor.data[i];
    static volatile unsigned sink;
    sink = sum;
  } catch (const Error &) {
  }
  return 0;
}
