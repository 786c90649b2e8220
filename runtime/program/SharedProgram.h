//===- SharedProgram.h - A program for processes that lack it ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROGRAM_SHAREDPROGRAM_H
#define WHALE_RUNTIME_PROGRAM_SHAREDPROGRAM_H

#include "whale/Runtime/Job.h"
#include "whale/System/Staging.h"

#include <filesystem>
#include <optional>

namespace whale::runtime {

/// A program directory of which some processes of a job have no copy: they get
/// one from the first process, for as long as the object lives.
class SharedProgram {
public:
  /// Collective where `job` has several processes. `path` names the program in
  /// each of them. Throws Error: in all processes where the first one lacks the
  /// program.
  SharedProgram(const std::filesystem::path &path, Job *job);

  /// Where the program is in this process: `path`, or a temporary directory.
  const std::filesystem::path &path() const { return directory; }

private:
  std::filesystem::path directory;
  std::optional<system::Staging> copy;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROGRAM_SHAREDPROGRAM_H
