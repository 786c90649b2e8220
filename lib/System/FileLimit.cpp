//===- FileLimit.cpp - How many files a process may open ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/FileLimit.h"

#include "whale/System/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace whale::system {

/// How many of `count` files can be opened, and why no more: what limits the
/// whole system counts as well.
static size_t countOpenable(size_t count, int &error) {
  std::vector<int> files;
  files.reserve(count);
  while (files.size() < count) {
    int file = eventfd(0, EFD_CLOEXEC);
    if (file < 0) {
      error = errno;
      break;
    }
    files.push_back(file);
  }
  for (int file : files)
    close(file);
  return files.size();
}

void needFiles(size_t count, const char *what) {
  int error = 0;
  size_t openable = countOpenable(count, error);
  if (openable == count)
    return;
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  rlim_t needed = limit.rlim_cur + (count - openable);
  if (error == EMFILE && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = std::min(needed, limit.rlim_max);
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 &&
        countOpenable(count, error) == count)
      return;
  }
  std::string text = std::string(what) + " needs " + std::to_string(count) +
                     " open files, and this process can open " +
                     std::to_string(openable) + " more: ";
  throw Error(text + (error == EMFILE
                          ? "its limit (ulimit -n) must be at least " +
                                std::to_string(needed)
                          : std::strerror(error)));
}

} // namespace whale::system
