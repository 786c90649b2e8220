//===- ProgramPlace.h - Where programs lie ----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_PROGRAMPLACE_H
#define WHALE_PROGRAMFORMAT_PROGRAMPLACE_H

#include <filesystem>
#include <string_view>
#include <sys/types.h>

namespace whale::format {

/// Whether a program's directory may hold a file of that name.
bool isProgramFile(std::string_view name);

/// Whether a program may take the place of what is there: a program, whole
/// or damaged, an empty directory, or nothing. Throws std::system_error where
/// it cannot be read.
bool mayHoldProgram(const std::filesystem::path &path);

/// The directory of the program of that name. It is another one than `path`
/// only while a writer that cannot exchange directories has moved it aside, or
/// after it died doing so.
std::filesystem::path locateProgram(const std::filesystem::path &path);

/// The names and bytes of a program's files, for a process that lacks it.
std::string packProgram(const std::filesystem::path &directory);

/// Makes the directory of what another process has packed, of which only files
/// of programs are taken. Throws system::Error.
void unpackProgram(const std::string &packed,
                   const std::filesystem::path &directory);

/// Tells a directory from one that has taken its place.
struct DirectoryIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  static DirectoryIdentity of(const std::filesystem::path &directory);
  bool operator==(const DirectoryIdentity &) const = default;
};

/// Calls `read` with the directory of a program. One that was replaced while it
/// was read is read again: no caller gets parts of two.
template <typename Read>
auto readProgramDirectory(const std::filesystem::path &path, Read read) {
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

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_PROGRAMPLACE_H
