//===- Io.h - Mapped files and atomic replacement ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_IO_H
#define WHALE_RUNTIME_IO_H

#include "whale/Runtime/Staging.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace whale::runtime {

/// A file's bytes, mapped privately: writes to them never change the file. A
/// device without bytes (/dev/null) is an empty file. Throws Error with the
/// path.
class MappedFile {
public:
  explicit MappedFile(const std::filesystem::path &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  char *data() const { return static_cast<char *>(memory); }
  size_t size() const { return length; }
  std::string_view text() const { return {data(), length}; }

private:
  void *memory = nullptr;
  size_t length = 0;
};

/// Writes to a temporary file beside `path` and renames it in `commit`; without
/// `commit` it is removed and the old file stays. A symbolic link stays a link.
/// A path that is not a regular file (a pipe, /dev/null, /dev/stdout) is
/// written directly; a directory is an error. Throws Error with the path.
class FileWriter {
public:
  explicit FileWriter(std::filesystem::path path);
  ~FileWriter();
  FileWriter(const FileWriter &) = delete;
  FileWriter &operator=(const FileWriter &) = delete;

  void write(const void *data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Writes all data to the operating system; afterwards only `commit` can
  /// fail.
  void flush();
  void commit();

private:
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path;
  /// nullopt if `path` is written directly.
  std::optional<Staging> staging;
  FILE *file = nullptr;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_IO_H
