//===- GpuMachine.h - Kernels of a GPU, run here ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_MUTATION_GPUMACHINE_H
#define WHALE_UNITTESTS_MUTATION_GPUMACHINE_H

#include "LowerToNvvm.h"
#include "emulator/Emulator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Program/Compile.h"
#include "whale/Target/CUDA/CompileCuda.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

namespace whale {

inline bool isGpuKernel(const llvm::Function &function) {
  return !function.isDeclaration() &&
         function.getCallingConv() == llvm::CallingConv::PTX_Kernel;
}

/// The iterations of a kernel of level 5.
inline int64_t getExtent(mlir::func::FuncOp function) {
  return function->getAttrOfType<mlir::IntegerAttr>(kExtentAttrName).getInt();
}

/// Calls `visit` with each kernel of programs of level 5, alone in a module,
/// and its program. False, once it has been said why, if a file is none.
inline bool forEachKernel(
    llvm::ArrayRef<std::string> files,
    llvm::function_ref<void(mlir::ModuleOp kernel, mlir::ModuleOp program)>
        visit) {
  mlir::DialectRegistry registry;
  registerProgramDialects(registry);
  registry.insert<mlir::gpu::GPUDialect>();
  mlir::MLIRContext context(registry);
  loadNvvm(context);
  for (const std::string &name : files) {
    llvm::SourceMgr sources;
    auto file = mlir::openInputFile(name);
    if (!file)
      return false;
    sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
    mlir::SourceMgrDiagnosticHandler handler(sources, &context);
    auto program = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
    if (!program)
      return false;
    auto kernels = program->lookupSymbol<mlir::ModuleOp>(kKernelsModuleName);
    for (auto kernel : kernels.getOps<mlir::func::FuncOp>()) {
      mlir::OwningOpRef<mlir::ModuleOp> alone =
          mlir::ModuleOp::create(kernel.getLoc());
      alone->push_back(kernel.clone());
      visit(*alone, *program);
    }
  }
  return true;
}

/// Compiles kernels for the emulator, without optimization; ends the program
/// where that can't be done.
class GpuMachine {
public:
  GpuMachine() : jit(llvm::cantFail(llvm::orc::LLJITBuilder().create())) {}

  /// Compiles a module with one kernel, which is consumed; returns its entry.
  void *compile(std::unique_ptr<llvm::Module> module,
                llvm::orc::ThreadSafeContext context) {
    using namespace llvm;
    module->setTargetTriple(jit->getTargetTriple());
    module->setDataLayout(jit->getDataLayout());
    std::string name;
    for (Function &function : *module)
      if (isGpuKernel(function))
        name = function.getName().str();
    cantFail(emulateIntrinsics(*module, /*blockSharedBytes=*/48 << 10));
    orc::JITDylib &library = cantFail(
        jit->createJITDylib("kernel" + std::to_string(numLibraries++)));
    library.addGenerator(
        cantFail(orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
            jit->getDataLayout().getGlobalPrefix())));
    cantFail(jit->addIRModule(
        library, orc::ThreadSafeModule(std::move(module), context)));
    auto **functions = cantFail(jit->lookup(library, "whale_emulator"))
                           .toPtr<const format::EmulatorFunctions **>();
    *functions = &runtime::emulatorFunctions();
    return cantFail(jit->lookup(library, name)).toPtr<void *>();
  }

  /// Runs iterations `begin` to `end` on these buffers.
  static void run(void *entry, std::vector<void *> &buffers, int64_t begin,
                  int64_t end) {
    reinterpret_cast<void (*)(void **, int64_t, int64_t)>(entry)(buffers.data(),
                                                                 begin, end);
  }

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
  unsigned numLibraries = 0;
};

} // namespace whale

#endif // WHALE_UNITTESTS_MUTATION_GPUMACHINE_H
