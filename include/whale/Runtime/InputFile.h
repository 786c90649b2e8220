//===- InputFile.h - Opening a tool's input ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A path that is given to a tool may denote anything. This class rejects inputs
// that would never end, or never begin.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_INPUTFILE_H
#define WHALE_RUNTIME_INPUTFILE_H

#include <cstddef>
#include <optional>
#include <string>

namespace whale::runtime {

/// A file that is open for reading, closed by the destructor.
class InputFile {
public:
  enum class Dash {
    /// "-" is standard input.
    Standard,
    /// "-" is a file of that name.
    Name,
  };

  /// Opens a file. Throws Error, without the path in its message, if it can't
  /// be opened or is a directory, a block device, a character device that has
  /// bytes and is not a terminal, or a pipe without a writer.
  explicit InputFile(const std::string &path, Dash dash = Dash::Name);
  ~InputFile();
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;

  int getDescriptor() const { return descriptor; }
  /// Returns the bytes of a regular file that was opened by its name, and 0 for
  /// a device without any (/dev/null). nullopt for a stream.
  std::optional<size_t> getSize() const { return size; }
  /// Returns the bytes that were read from a stream to check that it isn't
  /// empty.
  const std::string &getBeginning() const { return beginning; }

private:
  void check();
  [[noreturn]] void fail(const char *what) const;

  int descriptor;
  bool isStandard;
  std::optional<size_t> size;
  std::string beginning;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_INPUTFILE_H
