//===- ProgramFiles.cpp - Hand-written programs for tests -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramFiles.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

using nlohmann::json;

namespace whale::runtime::test {

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "whale-test-XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    throw std::runtime_error("mkdtemp failed");
  directory = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

void writeFile(const std::filesystem::path &path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string readFile(const std::filesystem::path &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void compileKernels(const std::filesystem::path &directory,
                    const std::string &source) {
  writeFile(directory / "kernels.c", source);
  std::string command = std::string(WHALE_TEST_CC) + " -O1 -shared -fPIC -o " +
                        (directory / "kernels.so").string() + " " +
                        (directory / "kernels.c").string();
  if (std::system(command.c_str()) != 0)
    throw std::runtime_error("cannot compile kernels");
}

const char *const kernelSource = R"(
#include <stdint.h>
void add(void **b, int64_t begin, int64_t end) {
  float *x = b[0], *y = b[1], *out = b[2];
  for (int64_t i = begin; i < end; ++i) out[i] = x[i] + y[i];
}
void scale(void **b, int64_t begin, int64_t end) {
  float *x = b[0], *out = b[1];
  for (int64_t i = begin; i < end; ++i) out[i] = 2 * x[i];
}
void less(void **b, int64_t begin, int64_t end) {
  int32_t *x = b[0], *y = b[1]; uint8_t *out = b[2];
  for (int64_t i = begin; i < end; ++i) out[i] = x[i] < y[i];
}
void increment(void **b, int64_t begin, int64_t end) {
  int32_t *x = b[0], *out = b[1];
  for (int64_t i = begin; i < end; ++i) out[i] = x[i] + 1;
}
)";

json richProgram(const std::filesystem::path &directory) {
  compileKernels(directory, kernelSource);
  // Constants: 16 floats, then the i32 limit of the loop.
  std::string constants;
  for (int i = 0; i < 16; ++i) {
    float value = static_cast<float>(i);
    constants.append(reinterpret_cast<const char *>(&value), 4);
  }
  int32_t limit = 3;
  constants.append(reinterpret_cast<const char *>(&limit), 4);
  writeFile(directory / "constants.bin", constants);

  json root = richManifest();
  writeFile(directory / "manifest.json", root.dump(1));
  return root;
}

} // namespace whale::runtime::test
