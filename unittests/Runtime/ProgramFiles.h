//===- ProgramFiles.h - Hand-written programs for tests ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_RUNTIME_PROGRAMFILES_H
#define WHALE_UNITTESTS_RUNTIME_PROGRAMFILES_H

#include <nlohmann/json.hpp>

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

/// A manifest of `ranks` ranks of one class, without arguments, results,
/// buffers and instructions.
nlohmann::json emptyManifest(size_t ranks);

/// An argument or result held whole by every rank.
nlohmann::json replicated(const std::string &name, const std::string &dtype,
                          const std::vector<int64_t> &shape, size_t ranks);

nlohmann::json arenaBuffer(int64_t offset, const std::string &dtype,
                           const std::vector<int64_t> &shape);
nlohmann::json shardBuffer(const std::string &space, int64_t index,
                           const std::string &dtype,
                           const std::vector<int64_t> &shape);

/// A valid program of four ranks in two classes that uses every kind of buffer
/// and instruction; writes kernels and constants too.
nlohmann::json richProgram(const std::filesystem::path &directory);

} // namespace whale::runtime::test

#endif // WHALE_UNITTESTS_RUNTIME_PROGRAMFILES_H
