//===- SharedProgram.cpp - A program for processes that lack it -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/SharedProgram.h"

#include "whale/ProgramFormat/ProgramPlace.h"

#include <algorithm>
#include <unistd.h>

namespace fs = std::filesystem;

namespace whale::runtime {

SharedProgram::SharedProgram(const fs::path &path, Job *job) : directory(path) {
  if (!job || job->processes() == 1)
    return;
  std::error_code error;
  bool isHere = fs::is_directory(format::locateProgram(path), error);
  std::vector<std::string> all =
      job->allGather("who has the program", isHere ? "yes" : "no");
  if (std::ranges::count(all, "no") == 0)
    return;
  if (all[0] == "no")
    throw Error(path.string() + ": process 0 has no such program directory");
  std::string mine;
  if (job->process() == 0)
    mine = format::readProgramDirectory(path, format::packProgram);
  std::string packed = job->allGather("the program", mine)[0];
  if (isHere)
    return;
  // Beside the directories of Python's processes: what a process that was
  // killed leaves is removed by the next one.
  copy.emplace(fs::temp_directory_path() /
               ("whale-" + std::to_string(geteuid())));
  directory = copy->place();
  format::unpackProgram(packed, directory);
}

} // namespace whale::runtime
