//===- CompilePtx.cpp - Kernels to PTX ------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module of kernels and an architecture. Out: texts of PTX, for each a
// cubin where nvJitLink is found, and how each kernel is launched.
//
// The kernels are divided into modules (KernelParts.h), each of which is
// compiled on its own, in parallel: to LLVM IR, at -O3, to PTX. Multiplications
// and additions are fused only where the IR says so. The texts are then linked
// to cubins, in parallel, too. Without cubins the driver compiles the PTX when
// the program is loaded.
//
// Cost: LLVM's pipeline and code generation, then nvJitLink, for each module.
// All texts and cubins are in memory; an error looks for its kernel among all.
//
//===----------------------------------------------------------------------===//

#include "LinkCubin.h"
#include "LowerToNvvm.h"
#include "mlir/IR/Threading.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/GpuArchitecture.h"
#include "whale/Target/CPU/KernelParts.h"
#include "whale/Target/CUDA/CompileCuda.h"

#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;
using namespace whale;

/// LLVM's features for an architecture: the lowest PTX that has what kernels
/// use, so that drivers of the CUDA that the architecture came with accept it.
static StringRef getFeatures(StringRef arch) {
  return format::findGpuArchitecture(format::capabilityOf(arch.str())).ptx;
}

ArrayRef<StringRef> whale::getGpuArchitectures() {
  static const SmallVector<StringRef> names = llvm::map_to_vector(
      format::getGpuArchitectures(),
      [](const format::GpuArchitecture &arch) { return StringRef(arch.name); });
  return names;
}

bool whale::isGpuArchitecture(StringRef name) {
  return llvm::is_contained(getGpuArchitectures(), name);
}

static std::unique_ptr<llvm::TargetMachine> createMachine(StringRef arch,
                                                          std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, arch, getFeatures(arch), options, std::nullopt, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

/// The PTX of a module of kernels, which is consumed.
static FailureOr<std::string> compilePart(ModuleOp kernels, StringRef arch) {
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(arch, error);
  if (!machine)
    return kernels.emitError("this LLVM has no PTX target: ") << error;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = lowerToNvvm(kernels, context);
  if (!module)
    return failure();
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  optimize(*module, *machine);
  llvm::SmallString<0> text;
  {
    llvm::raw_svector_ostream stream(text);
    llvm::legacy::PassManager passes;
    if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                     llvm::CodeGenFileType::AssemblyFile))
      return kernels.emitError("this LLVM cannot write PTX");
    passes.run(*module);
  }
  return text.str().str();
}

/// Where an error that nvJitLink finds in a text is: at the kernel that it
/// names, else at the first one of the text.
static Operation *findKernel(ModuleOp kernels, const Ptx &ptx, size_t text,
                             StringRef message) {
  Operation *first = nullptr;
  for (auto kernel : kernels.getOps<func::FuncOp>()) {
    auto it = ptx.kernels.find(kernel.getName().str());
    if (it == ptx.kernels.end() || it->second.module != text)
      continue;
    if (!first)
      first = kernel;
    if (message.contains(("'" + kernel.getName() + "'").str()))
      return kernel;
  }
  return first ? first : kernels.getOperation();
}

/// One cubin of each module of PTX: what a kernel shares with others of its
/// module, as functions of libdevice, is in it once, and so are an ELF file's
/// tables; with several, modules are linked in parallel.
static LogicalResult linkCubins(Ptx &ptx, ModuleOp kernels, StringRef arch) {
  llvm::Expected<NvJitLink> library = openNvJitLink(arch);
  if (!library) {
    kernels.emitRemark("the kernels are PTX alone, which the driver compiles "
                       "when the program is loaded: ")
        << llvm::toString(library.takeError());
    return success();
  }
  std::vector<std::string> cubins(ptx.modules.size());
  auto link = [&](size_t number) -> LogicalResult {
    auto cubin = linkCubin(*library, ptx.modules[number], arch);
    if (cubin) {
      cubins[number] = std::move(*cubin);
      return success();
    }
    std::string text = llvm::toString(cubin.takeError());
    return findKernel(kernels, ptx, number, text)->emitError(text);
  };
  if (failed(failableParallelForEachN(kernels.getContext(), 0, cubins.size(),
                                      link)))
    return failure();
  ptx.cubins = std::move(cubins);
  return success();
}

FailureOr<Ptx> whale::compilePtx(ModuleOp kernels, StringRef arch) {
  loadNvvm(*kernels.getContext());
  SmallVector<OwningOpRef<ModuleOp>> modules = divideKernels(kernels);
  Ptx ptx;
  for (auto [number, module] : llvm::enumerate(modules))
    for (auto kernel : module->getOps<func::FuncOp>())
      if (kernel->hasAttr(kExtentAttrName))
        ptx.kernels[kernel.getName().str()] = {number, getLaunchShape(kernel)};
  std::vector<FailureOr<std::string>> results(modules.size(), failure());
  auto compile = [&](size_t number) {
    results[number] = compilePart(*modules[number], arch);
  };
  parallelFor(kernels.getContext(), 0, modules.size(), compile);
  for (FailureOr<std::string> &result : results) {
    if (failed(result))
      return failure();
    ptx.modules.push_back(std::move(*result));
  }
  if (!ptx.modules.empty() && failed(linkCubins(ptx, kernels, arch)))
    return failure();
  return ptx;
}
