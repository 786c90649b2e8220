//===- Libdevice.cpp - The CUDA toolkit's device library ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LowerToNvvm.h"

#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/IPO/Internalize.h"

#include <cstdlib>

using namespace llvm;

/// Where toolkits put the library: what the usual variables name, where
/// NVIDIA's packages install, and Debian's.
static std::string findLibdevice() {
  constexpr const char *file = "nvvm/libdevice/libdevice.10.bc";
  auto exists = [](const Twine &path) { return sys::fs::exists(path); };
  SmallString<128> path;
  for (const char *variable : {"CUDA_ROOT", "CUDA_HOME", "CUDA_PATH"})
    if (const char *root = std::getenv(variable)) {
      path = root;
      sys::path::append(path, file);
      if (exists(path))
        return path.str().str();
    }
  for (const char *place :
       {"/usr/local/cuda/nvvm/libdevice/libdevice.10.bc",
        "/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc"})
    if (exists(place))
      return place;
  return "";
}

Error whale::linkLibdevice(Module &module) {
  bool isCalled = any_of(module, [](Function &function) {
    return function.isDeclaration() && function.getName().starts_with("__nv_");
  });
  if (!isCalled)
    return Error::success();
  std::string path = findLibdevice();
  if (path.empty())
    return createStringError(
        "the kernels need the CUDA toolkit's libdevice.10.bc, which is in none "
        "of its usual places: install the package cuda-nvvm (NVIDIA's) or "
        "nvidia-cuda-toolkit (Debian's), or say in CUDA_HOME where it is");
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> library =
      parseIRFile(path, diagnostic, module.getContext());
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
