//===- Io.h - Files, mapped and replaced whole ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_IO_H
#define WHALE_SYSTEM_IO_H

#include "whale/System/Staging.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace whale::system {

/// A file's bytes, mapped privately: writing to them never reaches the file. A
/// device that has none (/dev/null) is an empty file. Throws Error naming the
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

/// Writes beside `path` and renames at the end: without `commit` nothing of it
/// remains and what was there before stays. A link stays one; what is no
/// regular file (a pipe, /dev/null, /dev/stdout) is written as it is, and a
/// directory is an error. Throws Error naming the path.
class FileWriter {
public:
  explicit FileWriter(std::filesystem::path path);
  ~FileWriter();
  FileWriter(const FileWriter &) = delete;
  FileWriter &operator=(const FileWriter &) = delete;

  void write(const void *data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// The same past the cache of the system, where the file system can do that:
  /// hardly any work for the processor, and for no other thread. Before it
  /// nothing else has been written; `data` and, but for the last call, `size`
  /// are multiples of `blockBytes`.
  void writeDirectly(const void *data, size_t size);
  static constexpr size_t blockBytes = 4096;
  /// Everything is on its way to the disk: only `commit` can still fail.
  void flush();
  /// Returns when everything is on the disk.
  void sync();
  void commit();

private:
  [[noreturn]] void fail(int error) const;
  void writeAll(const char *data, size_t size);
  void setDirect(bool wanted);

  std::filesystem::path path;
  /// Nothing where `path` is written directly.
  std::optional<Staging> staging;
  FILE *file = nullptr;
  bool isDirect = false, mayBeDirect = true;
};

/// Returns when the names in a directory are on the disk.
void syncDirectory(const std::filesystem::path &directory);

} // namespace whale::system

#endif // WHALE_SYSTEM_IO_H
