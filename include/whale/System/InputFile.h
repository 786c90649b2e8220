//===- InputFile.h - Opening what a tool reads ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A path that is given to a tool may stand for anything; what would never end,
// or never begin, is refused in one place.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_INPUTFILE_H
#define WHALE_SYSTEM_INPUTFILE_H

#include <cstddef>
#include <optional>
#include <string>

namespace whale::system {

/// A file that is open for reading, closed by the destructor.
class InputFile {
public:
  enum class Dash {
    /// "-" is standard input.
    Standard,
    /// "-" is a file of that name.
    Name,
  };

  /// Throws Error, which says what is wrong but not the path, of what can't be
  /// opened, a directory, a block device, a character device that is no
  /// terminal and has bytes, and a pipe that nobody writes to.
  explicit InputFile(const std::string &path, Dash dash = Dash::Name);
  ~InputFile();
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;

  int getDescriptor() const { return descriptor; }
  /// Bytes of a regular file that was opened by its name, and 0 of a device
  /// without any (/dev/null). A stream has no size.
  std::optional<size_t> getSize() const { return size; }
  /// What has been read of a stream to see whether there is anything.
  const std::string &getBeginning() const { return beginning; }

private:
  void check();
  [[noreturn]] void fail(const char *what) const;

  int descriptor;
  bool isStandard;
  std::optional<size_t> size;
  std::string beginning;
};

} // namespace whale::system

#endif // WHALE_SYSTEM_INPUTFILE_H
