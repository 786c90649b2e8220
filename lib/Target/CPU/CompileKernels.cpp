//===- CompileKernels.cpp - Kernels to native code ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the module of kernels and a processor. Out: a shared library, or a
// diagnostic. The kernels are divided into parts (KernelParts.h). Each part, in
// an LLVM context of its own, is lowered to LLVM IR, is told which vector
// versions of math functions libmvec has and which loops are parallel, is
// optimized for the processor, and becomes an object file; these are linked.
//
// Cost: LLVM's pipeline and code generation, for several parts at the same
// time. What is added here is linear in the instructions; in a kernel of
// parallel loops dominators and loops are found once more.
//
//===----------------------------------------------------------------------===//

#include "whale/Target/CPU/CompileKernels.h"
#include "KernelsToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Support/WriteFile.h"
#include "whale/Target/CPU/KernelParts.h"
#include "whale/Target/CPU/NativeCode.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace mlir;
using namespace whale;

namespace {

//===----------------------------------------------------------------------===//
// LLVM IR
//===----------------------------------------------------------------------===//

/// Marks a math function as one that computes nothing but its result, and lists
/// which vector versions of it this machine has, for the optimizer.
void describeMathFunction(llvm::Function &function,
                          const llvm::TargetMachine &machine) {
  function.setDoesNotAccessMemory();
  function.setDoesNotThrow();
  function.setWillReturn();
  // errno is not set, and the result is only a result.
  StringRef features = machine.getTargetFeatureString();
  bool isFloat = function.getReturnType()->isFloatTy();
  struct Version {
    char letter;
    unsigned bits;
    bool available;
  };
  SmallVector<std::string> versions;
  llvm::Module &module = *function.getParent();
  SmallVector<llvm::GlobalValue *> used;
  for (Version version :
       {Version{'b', 128, true}, Version{'d', 256, features.contains("+avx2")},
        Version{'e', 512, features.contains("+avx512f")}}) {
    unsigned lanes = version.bits / (isFloat ? 32 : 64);
    std::string name =
        ("_ZGV" + Twine(version.letter) + "N" + Twine(lanes) +
         std::string(function.arg_size(), 'v') + "_" + function.getName())
            .str();
    if (!version.available || !hasVectorMath(name))
      continue;
    auto *vector = llvm::FixedVectorType::get(function.getReturnType(), lanes);
    SmallVector<llvm::Type *> arguments(function.arg_size(), vector);
    auto callee = module.getOrInsertFunction(
        name, llvm::FunctionType::get(vector, arguments, false));
    auto *declaration = cast<llvm::Function>(callee.getCallee());
    declaration->setDoesNotAccessMemory();
    declaration->setDoesNotThrow();
    declaration->setWillReturn();
    used.push_back(declaration);
    versions.push_back(name);
  }
  if (versions.empty())
    return;
  llvm::appendToCompilerUsed(module, used);
  auto attribute =
      llvm::Attribute::get(module.getContext(), "vector-function-abi-variant",
                           llvm::join(versions, ","));
  for (llvm::User *user : function.users())
    if (auto *call = dyn_cast<llvm::CallInst>(user))
      call->addFnAttr(attribute);
}

/// Says of the innermost loops that no iteration depends on another through
/// memory. Buffers may be the same (a kernel that works in place), so nothing
/// can be said of the pointers.
void markParallelLoops(llvm::Function &function) {
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  llvm::LLVMContext &context = function.getContext();
  for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost())
      continue;
    auto *group = llvm::MDNode::getDistinct(context, {});
    auto *property = llvm::MDNode::get(
        context,
        {llvm::MDString::get(context, "llvm.loop.parallel_accesses"), group});
    auto *id = llvm::MDNode::getDistinct(context, {nullptr, property});
    id->replaceOperandWith(0, id);
    loop->setLoopID(id);
    // Rotation makes the latch of the header.
    if (loop->isLoopExiting(loop->getHeader()))
      loop->getHeader()->getTerminator()->setMetadata("llvm.loop", id);
    for (llvm::BasicBlock *block : loop->blocks())
      for (llvm::Instruction &instruction : *block)
        if (isa<llvm::LoadInst, llvm::StoreInst>(instruction))
          instruction.setMetadata(llvm::LLVMContext::MD_access_group, group);
  }
}

/// Makes `function`, of one pointer for each buffer, callable as
/// `name(void **buffers, int64_t begin, int64_t end)`.
void addEntryPoint(llvm::Function &function) {
  llvm::Module &module = *function.getParent();
  llvm::LLVMContext &context = module.getContext();
  std::string name = function.getName().str();
  function.setName(name + ".body");
  function.setLinkage(llvm::GlobalValue::InternalLinkage);
  function.addFnAttr(llvm::Attribute::AlwaysInline);
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *number = llvm::Type::getInt64Ty(context);
  auto *entry = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                              {pointer, number, number}, false),
      llvm::GlobalValue::ExternalLinkage, name, module);
  for (StringRef key : {"target-cpu", "target-features"})
    if (function.hasFnAttribute(key))
      entry->addFnAttr(function.getFnAttribute(key));
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", entry));
  SmallVector<llvm::Value *> arguments;
  unsigned buffers = function.arg_size() - 2;
  for (unsigned buffer = 0; buffer < buffers; ++buffer) {
    auto *address =
        builder.CreateConstInBoundsGEP1_64(pointer, entry->getArg(0), buffer);
    auto *load = builder.CreateLoad(pointer, address);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                      llvm::MDNode::get(context, {}));
    arguments.push_back(load);
  }
  arguments.push_back(entry->getArg(1));
  arguments.push_back(entry->getArg(2));
  builder.CreateCall(&function, arguments);
  builder.CreateRetVoid();
}

/// Compiles a part of the kernels to the file `object`; an empty string if all
/// is well.
std::string compilePart(ModuleOp part, size_t number, StringRef object,
                        const CompileKernelsOptions &options) {
  llvm::StringSet<> parallel;
  SmallVector<std::string> names;
  for (auto function : part.getOps<func::FuncOp>()) {
    names.push_back(function.getSymName().str());
    if (function->hasAttr(kParallelAttrName))
      parallel.insert(names.back());
  }
  if (failed(lowerKernelsToLLVM(part)))
    return "a kernel could not be lowered to LLVM";
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(part, context, "kernels");
  if (!llvmModule)
    return "a kernel could not be translated to LLVM IR";
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine =
      createNativeMachine(options.cpu, error);
  if (!machine)
    return error;
  llvmModule->setDataLayout(machine->createDataLayout());
  llvmModule->setTargetTriple(machine->getTargetTriple());
  for (llvm::Function &function : *llvmModule) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine->getTargetCPU());
    function.addFnAttr("target-features", machine->getTargetFeatureString());
  }
  SmallVector<llvm::Function *> declarations;
  for (llvm::Function &function : *llvmModule)
    if (function.isDeclaration() && !function.isIntrinsic() &&
        function.getReturnType()->isFloatingPointTy())
      declarations.push_back(&function);
  for (llvm::Function *function : declarations)
    describeMathFunction(*function, *machine);
  for (const std::string &name : names) {
    llvm::Function *function = llvmModule->getFunction(name);
    if (parallel.contains(name))
      markParallelLoops(*function);
    addEntryPoint(*function);
  }
  optimizeNative(*llvmModule, *machine);
  if (!options.dumpLLVM.empty()) {
    std::string dump = (options.dumpLLVM + "." + Twine(number) + ".ll").str();
    auto print = [&](raw_ostream &os) { llvmModule->print(os, nullptr); };
    if (std::error_code code = writeFile(dump, print))
      return ("cannot write '" + dump + "': " + code.message());
  }
  return emitObject(*llvmModule, *machine, object);
}

} // namespace

void whale::loadForKernels(MLIRContext &context) {
  registerBuiltinDialectTranslation(context);
  registerLLVMDialectTranslation(context);
  context.loadDialect<LLVM::LLVMDialect, cf::ControlFlowDialect,
                      func::FuncDialect>();
}

LogicalResult whale::compileKernelsPart(ModuleOp part, size_t number,
                                        StringRef object,
                                        const CompileKernelsOptions &options) {
  std::string error = compilePart(part, number, object, options);
  if (error.empty())
    return success();
  return part.emitError("cannot compile the kernels: ") << error;
}

LogicalResult whale::compileKernels(ModuleOp kernels, StringRef path,
                                    const CompileKernelsOptions &options) {
  loadForKernels(*kernels.getContext());
  return compileParts(
      kernels, path, [&](ModuleOp part, size_t number, StringRef object) {
        return compileKernelsPart(part, number, object, options);
      });
}
