//===- EmulateKernels.cpp - GPU kernels to code for this processor --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LowerToNvvm.h"
#include "mlir/IR/Threading.h"
#include "whale/Target/CPU/NativeCode.h"
#include "whale/Target/CUDA/CompileCuda.h"

#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Threading.h"

using namespace mlir;
using namespace whale;

/// Compiles a module of kernels, which is consumed, to the file `object`.
static LogicalResult compilePart(ModuleOp kernels, StringRef object) {
  auto fail = [&](const Twine &what) {
    return kernels.emitError("cannot compile the kernels: ") << what;
  };
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      lowerToNvvm(kernels, context, /*isForProcessor=*/true);
  if (!module)
    return failure();
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createNativeMachine("", error);
  if (!machine)
    return fail(error);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  if (llvm::Error unknown = emulateIntrinsics(*module))
    return fail(llvm::toString(std::move(unknown)));
  for (llvm::Function &function : *module)
    if (!function.isDeclaration()) {
      function.removeFnAttr("target-cpu");
      function.addFnAttr("target-cpu", machine->getTargetCPU());
      function.addFnAttr("target-features", machine->getTargetFeatureString());
    }
  optimizeNative(*module, *machine);
  error = emitObject(*module, *machine, object);
  return error.empty() ? success() : fail(error);
}

LogicalResult whale::compileEmulated(ModuleOp kernels, StringRef path) {
  unsigned parts = 1;
  if (kernels.getContext()->isMultithreadingEnabled())
    parts = llvm::hardware_concurrency().compute_thread_count();
  size_t count = llvm::range_size(kernels.getBody()->getOperations());
  SmallVector<OwningOpRef<ModuleOp>> modules =
      divideKernels(kernels, std::clamp<size_t>(count / 4, 1, parts));
  SmallVector<std::string> objects;
  std::vector<std::unique_ptr<llvm::FileRemover>> removers;
  for (size_t number = 0; number < modules.size(); ++number) {
    objects.push_back((path + "." + Twine(number) + ".o").str());
    removers.push_back(std::make_unique<llvm::FileRemover>(objects.back()));
  }
  if (failed(failableParallelForEachN(
          kernels.getContext(), 0, modules.size(), [&](size_t number) {
            return compilePart(*modules[number], objects[number]);
          })))
    return failure();
  if (std::string error = linkShared(objects, path); !error.empty())
    return kernels.emitError("cannot link the kernels: ") << error;
  return success();
}
