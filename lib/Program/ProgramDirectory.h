//===- ProgramDirectory.h - Write a directory whole or not ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_PROGRAMDIRECTORY_H
#define WHALE_LIB_PROGRAM_PROGRAMDIRECTORY_H

#include "whale/System/Staging.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <memory>
#include <string>

namespace whale {

/// A program under construction beside its target. It takes the target's place
/// when it is committed; destroyed before, it leaves nothing behind.
class ProgramDirectory {
public:
  /// Fails if something that is no program is in the target's place, or
  /// nothing can be written there.
  static llvm::Expected<ProgramDirectory> create(llvm::StringRef target);

  std::string path(llvm::StringRef file) const;
  llvm::Error write(llvm::StringRef file, llvm::StringRef contents);
  /// Counts a file that something else wrote among the program's.
  llvm::Error add(llvm::StringRef file);
  /// The hashes of all files so far, by name.
  const std::map<std::string, std::string> &getHashes() const { return hashes; }
  /// Writes the checksums of all files and moves the directory to its place.
  llvm::Error commit();

private:
  ProgramDirectory() = default;
  std::string target;
  std::unique_ptr<system::Staging> staging;
  std::map<std::string, std::string> hashes;
};

} // namespace whale

#endif // WHALE_LIB_PROGRAM_PROGRAMDIRECTORY_H
