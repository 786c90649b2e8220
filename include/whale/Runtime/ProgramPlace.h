//===- ProgramPlace.h - Directories of programs -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROGRAMPLACE_H
#define WHALE_RUNTIME_PROGRAMPLACE_H

#include <filesystem>
#include <string_view>
#include <sys/types.h>

namespace whale::runtime {

/// Whether a program's directory may contain a file with that name.
bool isProgramFile(std::string_view name);

/// Whether a program may replace what is at `path`: a program, whole or
/// damaged, an empty directory, or nothing.
bool mayHoldProgram(const std::filesystem::path &path);

/// Returns the directory of the program at `path`. It differs from `path` only
/// while a writer that cannot exchange directories has moved it aside, or if a
/// writer crashed while it was moved.
std::filesystem::path locateProgram(const std::filesystem::path &path);

/// Identifies a directory, to detect that another one has replaced it.
struct DirectoryIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  static DirectoryIdentity of(const std::filesystem::path &directory);
  bool operator==(const DirectoryIdentity &) const = default;
};

/// Calls `read` with the directory of a program. If the directory is replaced
/// meanwhile, calls it again, so that parts of two programs are never mixed.
template <typename Read>
auto readProgram(const std::filesystem::path &path, Read read) {
  constexpr int mostTries = 20;
  for (int tries = 1;; ++tries) {
    std::filesystem::path directory = locateProgram(path);
    DirectoryIdentity before = DirectoryIdentity::of(directory);
    auto isReplaced = [&] {
      return tries < mostTries && (locateProgram(path) != directory ||
                                   DirectoryIdentity::of(directory) != before);
    };
    try {
      auto result = read(directory);
      if (!isReplaced())
        return result;
    } catch (...) {
      if (!isReplaced())
        throw;
    }
  }
}

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROGRAMPLACE_H
