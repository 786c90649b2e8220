//===- KernelParts.cpp - Kernels compiled in parallel ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Target/CPU/KernelParts.h"

#include "mlir/IR/Threading.h"
#include "whale/Dialect/Whale/IR/GpuArchAttribute.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Target/CPU/NativeCode.h"
#include "llvm/Support/FileUtilities.h"

#include <map>

using namespace mlir;
using namespace whale;

/// What a kernel is for: the processor, or an architecture of GPUs; nothing is
/// said of them where all are alike.
static std::pair<bool, StringRef> getTarget(Operation *kernel) {
  auto arch = kernel->getAttrOfType<StringAttr>(kGpuArchAttrName);
  return {kernel->hasAttr(kForProcessorAttrName),
          arch ? arch.getValue() : StringRef()};
}

OwningOpRef<ModuleOp>
whale::selectKernels(ModuleOp kernels, bool isForProcessor, StringRef arch) {
  OwningOpRef<ModuleOp> selected = ModuleOp::create(kernels.getLoc());
  for (Operation &function : *kernels.getBody()) {
    auto [isItsOwn, own] = getTarget(&function);
    if (isItsOwn == isForProcessor && (own.empty() || own == arch))
      selected->push_back(function.clone());
  }
  return selected;
}

SmallVector<OwningOpRef<ModuleOp>> whale::divideKernels(ModuleOp kernels) {
  // A part has costs of its own: LLVM's set-up, and copies of what its kernels
  // call.
  constexpr size_t kKernelsOfPart = 4, kMostParts = 8;
  SmallVector<OwningOpRef<ModuleOp>> modules;
  std::map<std::pair<bool, StringRef>, SmallVector<Operation *>> byTarget;
  for (Operation &function : *kernels.getBody())
    byTarget[getTarget(&function)].push_back(&function);
  for (const auto &[target, alike] : byTarget) {
    size_t parts =
        std::clamp<size_t>(alike.size() / kKernelsOfPart, 1, kMostParts);
    SmallVector<size_t> weights(parts, 0);
    size_t first = modules.size();
    for (size_t number = 0; number < parts; ++number)
      modules.push_back(ModuleOp::create(kernels.getLoc()));
    for (Operation *function : alike) {
      size_t lightest = llvm::min_element(weights) - weights.begin();
      function->walk([&](Operation *) { ++weights[lightest]; });
      modules[first + lightest]->push_back(function->clone());
    }
  }
  return modules;
}

LogicalResult whale::compileParts(
    ModuleOp kernels, StringRef path,
    function_ref<LogicalResult(ModuleOp, size_t, StringRef)> compile) {
  SmallVector<OwningOpRef<ModuleOp>> parts = divideKernels(kernels);
  SmallVector<std::string> objects;
  std::vector<std::unique_ptr<llvm::FileRemover>> removers;
  for (size_t number = 0; number < parts.size(); ++number) {
    // Beside the library, whose directory is removed if this process is ended.
    objects.push_back((path + "." + Twine(number) + ".o").str());
    removers.push_back(std::make_unique<llvm::FileRemover>(objects.back()));
  }
  if (failed(failableParallelForEachN(
          kernels.getContext(), 0, parts.size(), [&](size_t number) {
            return compile(*parts[number], number, objects[number]);
          })))
    return failure();
  if (std::string error = linkShared(objects, path); !error.empty())
    return kernels.emitError("cannot link the kernels: ") << error;
  return success();
}
