//===- SharedFiles.cpp - Where files of shared memory are made ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/SharedFiles.h"

#include <cstdlib>
#include <system_error>
#include <unistd.h>

namespace whale::runtime {

static constexpr const char *variable = "UCX_POSIX_DIR";

/// What the directories stand beside: nothing, in the place that UCX would
/// take.
static std::filesystem::path target() {
  const char *given = std::getenv(variable);
  std::filesystem::path place = given && *given ? given : "/dev/shm";
  return place / ("whale-" + std::to_string(geteuid()));
}

SharedFiles::SharedFiles() {
  try {
    staging.emplace(target());
    std::filesystem::create_directory(staging->place());
  } catch (const std::system_error &) {
    staging.reset();
  }
}

SharedFiles::~SharedFiles() {
  staging.reset();
  sweep();
}

void SharedFiles::sweep() { system::sweepStaging(target()); }

SharedFiles::Told::Told(const SharedFiles &files) {
  if (const char *given = std::getenv(variable))
    before = given;
  if (files.staging)
    setenv(variable, files.staging->place().c_str(), /*overwrite=*/1);
}

SharedFiles::Told::~Told() {
  if (before)
    setenv(variable, before->c_str(), /*overwrite=*/1);
  else
    unsetenv(variable);
}

} // namespace whale::runtime
