//===- SharedFiles.h - Where files of shared memory are made ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// UCX makes each piece of shared memory as a file and removes its name at once.
// A process that is killed in between leaves megabytes. So the files are made
// in a directory of the process, which goes with it, or is removed by its
// launcher, another process of the job, or the next run.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_SHAREDFILES_H
#define WHALE_RUNTIME_TRANSPORT_SHAREDFILES_H

#include "whale/System/Staging.h"

#include <optional>
#include <string>

namespace whale::runtime {

/// The directory of this process for files of shared memory.
class SharedFiles {
public:
  /// Where none can be made, the files are where they would be without it.
  SharedFiles();
  ~SharedFiles();
  SharedFiles(const SharedFiles &) = delete;
  SharedFiles &operator=(const SharedFiles &) = delete;

  /// While it lives, UCX reads of this directory in its variable.
  class Told {
  public:
    explicit Told(const SharedFiles &files);
    ~Told();
    Told(const Told &) = delete;
    Told &operator=(const Told &) = delete;

  private:
    std::optional<std::string> before;
  };

  /// Removes those of this user's processes that have died.
  static void sweep();

private:
  std::optional<system::Staging> staging;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_SHAREDFILES_H
