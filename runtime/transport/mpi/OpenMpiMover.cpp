//===- OpenMpiMover.cpp - The module that uses MPI ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/message/Mover.h"

#include "whale/System/LateLibrary.h"

namespace whale::runtime {

std::unique_ptr<Mover> createMpiMover(const Exchange &exchange) {
  static const char *const file = "libWhaleMpi.so";
  std::filesystem::path own = system::ownDirectory();
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
