//===- Libdevice.cpp - The CUDA toolkit's device library ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LowerToNvvm.h"

#include "whale/System/LateLibrary.h"

#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/IPO/Internalize.h"

#include <cstdlib>

using namespace llvm;

/// The file that WHALE_LIBDEVICE names, where it is set, else where toolkits
/// put the library: what the usual variables name, NVIDIA's packages for
/// Python, where its others install, and Debian's. Empty if there is none.
static std::string findLibdevice() {
  if (const char *given = std::getenv("WHALE_LIBDEVICE"))
    return given;
  std::vector<std::string> places;
  for (const char *variable : {"CUDA_ROOT", "CUDA_HOME", "CUDA_PATH"})
    if (const char *root = std::getenv(variable))
      places.push_back(std::string(root) + "/nvvm");
  for (const auto &place : whale::system::packageDirectories("nvvm"))
    places.push_back(place.string());
  places.insert(places.end(),
                {"/usr/local/cuda/nvvm", "/usr/lib/nvidia-cuda-toolkit"});
  for (std::string &place : places) {
    place += "/libdevice/libdevice.10.bc";
    if (sys::fs::exists(place))
      return place;
  }
  return "";
}

Error whale::linkLibdevice(Module &module) {
  std::string path = findLibdevice();
  if (path.empty())
    return createStringError(
        "the kernels need the CUDA toolkit's libdevice.10.bc, which is in none "
        "of its usual places: install the package nvidia-cuda-nvcc-cu12 (by "
        "pip), cuda-nvvm (NVIDIA's) or nvidia-cuda-toolkit (Debian's), or say "
        "in "
        "CUDA_HOME where it is");
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> library =
      getLazyIRFileModule(path, diagnostic, module.getContext());
  if (!library)
    return createStringError("cannot read '" + path +
                             "': " + diagnostic.getMessage());
  library->setTargetTriple(module.getTargetTriple());
  library->setDataLayout(module.getDataLayout());
  bool failed = Linker::linkModules(
      module, std::move(library), Linker::LinkOnlyNeeded,
      [](Module &linked, const StringSet<> &names) {
        internalizeModule(linked, [&](const GlobalValue &value) {
          return !value.hasName() || !names.contains(value.getName());
        });
      });
  if (failed)
    return createStringError("cannot link '" + path + "'");
  return Error::success();
}
