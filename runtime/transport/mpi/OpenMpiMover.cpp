//===- OpenMpiMover.cpp - The module that uses MPI ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/message/Mover.h"

#include <dlfcn.h>
#include <filesystem>

namespace whale::runtime {

/// The directory of the executable or library that this code is a part of.
static std::filesystem::path ownDirectory() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&ownDirectory), &info) ||
      !info.dli_fname)
    return {};
  // An executable's name is as it was called, perhaps without a directory.
  std::filesystem::path name = info.dli_fname;
  std::error_code error;
  if (!name.has_parent_path())
    name = std::filesystem::read_symlink("/proc/self/exe", error);
  return std::filesystem::weakly_canonical(name, error).parent_path();
}

std::unique_ptr<Mover> createMpiMover(const Exchange &exchange) {
  static const char *const file = "libWhaleMpi.so";
  std::filesystem::path own = ownDirectory();
  std::string what = "is not in '" + own.string() + "' or its ../lib";
  for (const std::filesystem::path &path :
       {own / file, own.parent_path() / "lib" / file}) {
    std::error_code error;
    if (!std::filesystem::exists(path, error))
      continue;
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    using Create = Mover *(*)(const Exchange &);
    if (auto create = library ? reinterpret_cast<Create>(
                                    dlsym(library, "whaleCreateMpiMover"))
                              : nullptr)
      return std::unique_ptr<Mover>(create(exchange));
    what = std::string("cannot be opened: ") + dlerror();
  }
  throw Error(std::string("--transport=mpi: ") + file + " " + what);
}

} // namespace whale::runtime
