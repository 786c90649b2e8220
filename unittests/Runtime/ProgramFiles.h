//===- ProgramFiles.h - Hand-written programs for tests ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_RUNTIME_PROGRAMFILES_H
#define WHALE_UNITTESTS_RUNTIME_PROGRAMFILES_H

#include "Manifests.h"

#include <filesystem>
#include <string>

namespace whale::runtime::test {

/// A directory that is removed at the end.
class TemporaryDirectory {
public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::filesystem::path &path() const { return directory; }

private:
  std::filesystem::path directory;
};

void writeFile(const std::filesystem::path &path, std::string_view text);
std::string readFile(const std::filesystem::path &path);

/// Compiles C to `kernels.so` in the directory.
void compileKernels(const std::filesystem::path &directory,
                    const std::string &source);

/// The C of the kernels that the programs here use: `add` (f32, 2 -> 1),
/// `scale` (f32, 1 -> 1, times two), `less` (i32, 2 -> i1), `increment` (i32).
extern const char *const kernelSource;

using format::test::arenaBuffer;
using format::test::emptyManifest;
using format::test::replicated;
using format::test::richManifest;
using format::test::shardBuffer;

/// The program of `richManifest`, with its kernels and constants.
nlohmann::json richProgram(const std::filesystem::path &directory);

} // namespace whale::runtime::test

#endif // WHALE_UNITTESTS_RUNTIME_PROGRAMFILES_H
