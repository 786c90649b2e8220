//===- LateLibrary.cpp - Libraries that are opened when needed ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/LateLibrary.h"
#include "whale/System/Error.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace fs = std::filesystem;

namespace whale::system {

DeclaredLibrary::DeclaredLibrary(const char *file, const char *name,
                                 const char *what)
    : library(dlopen(file, RTLD_NOW | RTLD_GLOBAL)), name(name) {
  if (!library)
    throw Error(std::string("cannot open ") + name + ", " + what + ": " +
                dlerror());
}

void *DeclaredLibrary::find(const char *symbol) const {
  // Also in the libraries that it brings with it.
  void *found = dlsym(library, symbol);
  if (!found)
    throw Error(std::string(name) + " has no function " + symbol);
  return found;
}

/// nvidia/*/lib of a folder of Python packages.
static void addPackages(const fs::path &packages,
                        std::vector<fs::path> &directories) {
  std::error_code error;
  for (fs::directory_iterator it(packages / "nvidia", error), end;
       !error && it != end; it.increment(error))
    if (fs::is_directory(it->path() / "lib", error))
      directories.push_back(it->path() / "lib");
}

std::vector<fs::path> libraryDirectories() {
  std::vector<fs::path> directories;
  std::error_code error;
  std::vector<fs::path> toolkits;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *value = std::getenv(variable); value && *value)
      toolkits.emplace_back(value);
  toolkits.emplace_back("/usr/local/cuda");
  for (const fs::path &toolkit : toolkits)
    for (const char *folder : {"lib64", "lib"})
      if (fs::is_directory(toolkit / folder, error))
        directories.push_back(toolkit / folder);
  Dl_info own;
  if (dladdr(reinterpret_cast<const void *>(&libraryDirectories), &own) &&
      own.dli_fname)
    for (fs::path up = fs::absolute(own.dli_fname, error).parent_path();
         up.has_relative_path(); up = up.parent_path())
      if (up.filename() == "site-packages")
        addPackages(up, directories);
  for (const char *variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char *value = std::getenv(variable);
    if (!value || !*value)
      continue;
    for (fs::directory_iterator it(fs::path(value) / "lib", error), end;
         !error && it != end; it.increment(error))
      if (it->path().filename().string().starts_with("python"))
        addPackages(it->path() / "site-packages", directories);
  }
  std::sort(directories.begin(), directories.end());
  auto last = std::unique(directories.begin(), directories.end());
  directories.erase(last, directories.end());
  return directories;
}

} // namespace whale::system
