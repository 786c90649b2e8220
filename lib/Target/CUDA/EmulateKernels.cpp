//===- EmulateKernels.cpp - GPU kernels to code for this processor --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LowerToNvvm.h"
#include "whale/Dialect/Whale/IR/GpuArchAttribute.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/GpuArchitecture.h"
#include "whale/Target/CPU/CompileKernels.h"
#include "whale/Target/CPU/KernelParts.h"
#include "whale/Target/CPU/NativeCode.h"
#include "whale/Target/CUDA/CompileCuda.h"

using namespace mlir;
using namespace whale;

/// Compiles a module of kernels, which is consumed, to the file `object`. All
/// are for the same GPUs.
static LogicalResult compilePart(ModuleOp kernels, int capability,
                                 StringRef object) {
  auto fail = [&](const Twine &what) {
    return kernels.emitError("cannot compile the kernels: ") << what;
  };
  if (auto arch = kernels.getBody()->front().getAttrOfType<StringAttr>(
          kGpuArchAttrName))
    capability = format::capabilityOf(arch.str());
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
  if (llvm::Error unknown = emulateIntrinsics(
          *module, format::findGpuArchitecture(capability).blockSharedBytes))
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

LogicalResult whale::compileEmulated(ModuleOp kernels, StringRef path,
                                     int capability, StringRef cpu) {
  loadNvvm(*kernels.getContext());
  loadForKernels(*kernels.getContext());
  return compileParts(
      kernels, path, [&](ModuleOp part, size_t number, StringRef object) {
        return part.getBody()->front().hasAttr(kForProcessorAttrName)
                   ? compileKernelsPart(part, number, object,
                                        {cpu.str(), /*dumpLLVM=*/""})
                   : compilePart(part, capability, object);
      });
}
