//===- CheckedFiles.h - Files of a program, with their hashes ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROGRAM_CHECKEDFILES_H
#define WHALE_RUNTIME_PROGRAM_CHECKEDFILES_H

#include "whale/System/Io.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace whale::runtime {

/// The files of a program directory, each checked when it is opened.
class CheckedFiles {
public:
  explicit CheckedFiles(const std::filesystem::path &directory)
      : directory(directory) {
    if (std::filesystem::exists(directory / "checksums.txt"))
      readChecksums();
  }

  /// `hash` is what the manifest says; empty where it says nothing.
  std::unique_ptr<system::MappedFile> open(const std::string &file,
                                           const std::string &hash = "") const;

private:
  void readChecksums();

  const std::filesystem::path &directory;
  std::optional<std::map<std::string, std::string>> checksums;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROGRAM_CHECKEDFILES_H
