//===- ManifestFuzzer.cpp - Fuzz the program reader -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any bytes are a program or an error; nothing runs. Programs with kernels are
// left to TamperTest, which has some.
//
//===----------------------------------------------------------------------===//

#include "program/Kernels.h"
#include "program/Manifest.h"

using namespace whale::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ManifestContext context;
  context.file = "manifest.json";
  context.openKernels = [](const std::string &file,
                           const std::string &) -> const KernelLibrary * {
    throw Error(file + ": missing");
  };
  context.constantsSize = [](const std::string &, const std::string &) {
    return 4096;
  };
  try {
    readManifest({reinterpret_cast<const char *>(data), size}, context);
  } catch (const Error &) {
  }
  return 0;
}
