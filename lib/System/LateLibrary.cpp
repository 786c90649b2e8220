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
    : library(openLibrary(file, RTLD_NOW | RTLD_GLOBAL)), name(name) {
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

fs::path ownDirectory() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void *>(&ownDirectory), &info) ||
      !info.dli_fname)
    return {};
  // An executable's name is as it was called, perhaps without a directory.
  fs::path name = info.dli_fname;
  std::error_code error;
  if (!name.has_parent_path())
    name = fs::read_symlink("/proc/self/exe", error);
  return fs::weakly_canonical(name, error).parent_path();
}

void *openLibrary(const char *file, int flags) {
  if (void *library = dlopen(file, flags))
    return library;
  fs::path own = ownDirectory() / "lib" / file;
  // The loader's reason is the better one where there is no such file.
  std::error_code error;
  return fs::exists(own, error) ? dlopen(own.c_str(), flags) : nullptr;
}

/// Adds nvidia/*/FOLDER of a folder of Python packages.
static void addPackages(const fs::path &packages, const char *folder,
                        std::vector<fs::path> &directories) {
  std::error_code error;
  for (fs::directory_iterator it(packages / "nvidia", error), end;
       !error && it != end; it.increment(error))
    if (fs::is_directory(it->path() / folder, error))
      directories.push_back(it->path() / folder);
}

/// In the order of their names, each once.
static void makeUnique(std::vector<fs::path> &directories) {
  std::sort(directories.begin(), directories.end());
  auto last = std::unique(directories.begin(), directories.end());
  directories.erase(last, directories.end());
}

std::vector<fs::path> packageDirectories(const char *folder) {
  std::vector<fs::path> directories;
  std::error_code error;
  for (fs::path up = ownDirectory(); up.has_relative_path();
       up = up.parent_path())
    if (up.filename() == "site-packages")
      addPackages(up, folder, directories);
  for (const char *variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char *value = std::getenv(variable);
    if (!value || !*value)
      continue;
    for (fs::directory_iterator it(fs::path(value) / "lib", error), end;
         !error && it != end; it.increment(error))
      if (it->path().filename().string().starts_with("python"))
        addPackages(it->path() / "site-packages", folder, directories);
  }
  makeUnique(directories);
  return directories;
}

std::vector<fs::path> libraryDirectories() {
  std::vector<fs::path> directories = packageDirectories("lib");
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
  makeUnique(directories);
  return directories;
}

} // namespace whale::system
