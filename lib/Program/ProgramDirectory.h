//===- ProgramDirectory.h - Write a directory whole or not ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_PROGRAMDIRECTORY_H
#define WHALE_LIB_PROGRAM_PROGRAMDIRECTORY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace whale {

/// A directory under construction beside its target. It takes the target's
/// place when it is committed; destroyed before, it leaves nothing behind.
class ProgramDirectory {
public:
  /// Fails if something that is no program stands in the target's place, or
  /// nothing can be written there.
  static llvm::Expected<ProgramDirectory> create(llvm::StringRef target);

  ProgramDirectory(ProgramDirectory &&other);
  ~ProgramDirectory();

  std::string path(llvm::StringRef file) const;
  llvm::Error write(llvm::StringRef file, llvm::StringRef contents);
  /// Counts a file that something else wrote among the program's.
  void add(llvm::StringRef file) { files.push_back(file.str()); }
  /// Writes the checksums of all files and moves the directory to its place.
  llvm::Error commit();

private:
  ProgramDirectory() = default;
  std::string target, temporary;
  std::vector<std::string> files;
};

} // namespace whale

#endif // WHALE_LIB_PROGRAM_PROGRAMDIRECTORY_H
