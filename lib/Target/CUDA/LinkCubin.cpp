//===- LinkCubin.cpp - PTX to the code of one GPU -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LinkCubin.h"

#include "whale/ProgramFormat/GpuArchitecture.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdlib>

using namespace llvm;
using namespace whale;

/// Whether a library makes code for an architecture: earlier ones don't know
/// later ones, nor late ones what NVIDIA has dropped.
static bool knows(const NvJitLink &library, StringRef arch) {
  std::string option = ("-arch=" + arch).str();
  const char *options[] = {option.c_str()};
  LinkHandle handle = nullptr;
  if (library.create.function(&handle, 1, options))
    return false;
  library.destroy.function(&handle);
  return true;
}

Expected<NvJitLink> whale::openNvJitLink(StringRef arch) {
  SmallVector<std::string> places;
  const char *given = std::getenv("WHALE_NVJITLINK");
  if (given) {
    places.emplace_back(given);
  } else {
    for (const char *name : {"libnvJitLink.so.13", "libnvJitLink.so.12"}) {
      places.emplace_back(name);
      for (const std::filesystem::path &folder : system::libraryDirectories())
        places.push_back((folder / name).string());
    }
  }
  std::string other;
  for (const std::string &place : places) {
    // An empty name would be the program itself.
    void *file =
        place.empty() ? nullptr : dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!file)
      continue;
    NvJitLink library;
    if (const char *missing = system::fill(library, file))
      return createStringError(Twine(place) + " lacks the function " + missing);
    if (knows(library, arch))
      return library;
    other = place;
  }
  int last =
      format::findGpuArchitecture(format::capabilityOf(arch.str())).lastToolkit;
  if (!other.empty())
    return createStringError(
        Twine(other) + " makes no code for " + arch + ": install " +
        (last ? "that of CUDA " + Twine(last) : Twine("a later one")));
  if (given)
    return createStringError(Twine("WHALE_NVJITLINK names no library ('") +
                             given + "')");
  return createStringError(
      "nvJitLink 12 or 13 is in none of its usual places: it comes with the "
      "CUDA toolkit (package libnvjitlink-13-x) and with the Python package "
      "nvidia-nvjitlink");
}

Expected<std::string> whale::linkCubin(const NvJitLink &library,
                                       const std::string &ptx, StringRef arch) {
  LinkHandle handle = nullptr;
  llvm::scope_exit destroy([&] {
    if (handle)
      library.destroy.function(&handle);
  });
  std::string option = ("-arch=" + arch).str();
  const char *options[] = {option.c_str()};
  auto fail = [&](const char *symbol, LinkStatus status) -> Error {
    std::string log;
    size_t size = 0;
    if (handle && !library.getLogSize.function(handle, &size) && size > 1) {
      log.resize(size);
      if (library.getLog.function(handle, log.data()))
        log.clear();
    }
    // The size counts the zero at the end.
    StringRef text = StringRef(log.c_str()).trim();
    return createStringError(Twine(symbol) + " for " + arch +
                             " fails with status " + Twine(status) +
                             (text.empty() ? "" : ": ") + text);
  };
  if (auto status = library.create.function(&handle, 1, options))
    return fail(library.create.symbol, status);
  // With the zero at its end, as a C string.
  if (auto status = library.addData.function(handle, kInputPtx, ptx.c_str(),
                                             ptx.size() + 1, "kernels"))
    return fail(library.addData.symbol, status);
  if (auto status = library.complete.function(handle))
    return fail(library.complete.symbol, status);
  size_t size = 0;
  if (auto status = library.getCubinSize.function(handle, &size))
    return fail(library.getCubinSize.symbol, status);
  std::string cubin(size, '\0');
  if (auto status = library.getCubin.function(handle, cubin.data()))
    return fail(library.getCubin.symbol, status);
  return cubin;
}
