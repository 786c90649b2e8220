//===- KernelParts.cpp - Kernels compiled in parallel ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Target/CPU/KernelParts.h"

#include "mlir/IR/Threading.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Target/CPU/NativeCode.h"
#include "llvm/Support/FileUtilities.h"

using namespace mlir;
using namespace whale;

static SmallVector<Operation *> findKernels(ModuleOp kernels,
                                            bool isForProcessor) {
  SmallVector<Operation *> found;
  for (Operation &function : *kernels.getBody())
    if (function.hasAttr(kForProcessorAttrName) == isForProcessor)
      found.push_back(&function);
  return found;
}

OwningOpRef<ModuleOp> whale::selectKernels(ModuleOp kernels,
                                           bool isForProcessor) {
  OwningOpRef<ModuleOp> selected = ModuleOp::create(kernels.getLoc());
  for (Operation *function : findKernels(kernels, isForProcessor))
    selected->push_back(function->clone());
  return selected;
}

SmallVector<OwningOpRef<ModuleOp>> whale::divideKernels(ModuleOp kernels) {
  // A part has costs of its own: LLVM's set-up, and copies of what its kernels
  // call.
  constexpr size_t kKernelsOfPart = 4, kMostParts = 8;
  SmallVector<OwningOpRef<ModuleOp>> modules;
  for (bool isForProcessor : {false, true}) {
    SmallVector<Operation *> alike = findKernels(kernels, isForProcessor);
    if (alike.empty())
      continue;
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
