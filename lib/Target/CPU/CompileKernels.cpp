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
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace mlir;
using namespace whale;

namespace {

//===----------------------------------------------------------------------===//
// LLVM IR
//===----------------------------------------------------------------------===//

/// How many numbers the vector version of a called function takes.
constexpr StringLiteral kLanesAttrName = "whale-lanes";

/// That a loop could not be vectorized although it should be, and why, is
/// nothing to tell a user.
struct IgnoreMissedLoops : llvm::DiagnosticHandler {
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    return info.getSeverity() == llvm::DS_Remark ||
           info.getKind() == llvm::DK_OptimizationFailure;
  }
};

/// Marks a function as one that computes nothing but its result: errno is not
/// set.
void markPure(llvm::Function &function) {
  function.setDoesNotAccessMemory();
  function.setDoesNotThrow();
  function.setWillReturn();
}

/// The version of a math function for the longest vectors, of those that
/// libmvec has and this processor runs.
llvm::Function *findVectorVersion(llvm::Function &function,
                                  const llvm::TargetMachine &machine) {
  StringRef features = machine.getTargetFeatureString();
  llvm::Type *type = function.getReturnType();
  auto find = [&](char letter, unsigned bits) -> llvm::Function * {
    unsigned lanes = bits / type->getScalarSizeInBits();
    std::string name =
        ("_ZGV" + Twine(letter) + "N" + Twine(lanes) +
         std::string(function.arg_size(), 'v') + "_" + function.getName())
            .str();
    if (!hasVectorMath(name))
      return nullptr;
    auto *vector = llvm::FixedVectorType::get(type, lanes);
    SmallVector<llvm::Type *> arguments(function.arg_size(), vector);
    auto *version = cast<llvm::Function>(
        function.getParent()
            ->getOrInsertFunction(
                name, llvm::FunctionType::get(vector, arguments, false))
            .getCallee());
    markPure(*version);
    return version;
  };
  llvm::Function *version = nullptr;
  if (features.contains("+avx512f"))
    version = find('e', 512);
  if (!version && features.contains("+avx2"))
    version = find('d', 256);
  return version ? version : find('b', 128);
}

/// A function that computes fewer numbers than `version` does, by repeating
/// them; with one lane they are no vectors.
llvm::Function *makeNarrower(llvm::Function &version, unsigned lanes,
                             const Twine &name) {
  auto *wide = cast<llvm::FixedVectorType>(version.getReturnType());
  llvm::Type *type = wide->getElementType();
  if (lanes > 1)
    type = llvm::FixedVectorType::get(type, lanes);
  SmallVector<llvm::Type *> arguments(version.arg_size(), type);
  // Inlined, or changed for its callers, it would no longer be one that the
  // vectorizer knows: what another one might take the place of is neither.
  auto *narrow = llvm::Function::Create(
      llvm::FunctionType::get(type, arguments, false),
      llvm::GlobalValue::LinkOnceAnyLinkage, name, *version.getParent());
  narrow->setVisibility(llvm::GlobalValue::HiddenVisibility);
  markPure(*narrow);
  llvm::IRBuilder<> builder(
      llvm::BasicBlock::Create(version.getContext(), "entry", narrow));
  SmallVector<int> repeated, first;
  for (unsigned lane = 0; lane < wide->getNumElements(); ++lane)
    repeated.push_back(lane % lanes);
  for (unsigned lane = 0; lane < lanes; ++lane)
    first.push_back(lane);
  auto operands = llvm::map_to_vector(
      narrow->args(), [&](llvm::Argument &argument) -> llvm::Value * {
        return lanes == 1 ? builder.CreateVectorSplat(wide->getElementCount(),
                                                      &argument)
                          : builder.CreateShuffleVector(&argument, repeated);
      });
  llvm::Value *result = builder.CreateCall(&version, operands);
  builder.CreateRet(lanes == 1
                        ? builder.CreateExtractElement(result, uint64_t(0))
                        : builder.CreateShuffleVector(result, first));
  return narrow;
}

/// Computes a math function of libm by one of libmvec's functions, however many
/// numbers a loop takes at once: all others round in another way, and bits must
/// not depend on what is computed beside an element.
void useVectorVersion(llvm::Function &function,
                      const llvm::TargetMachine &machine) {
  markPure(function);
  llvm::Function *version = findVectorVersion(function, machine);
  if (!version)
    return;
  std::string name = ("whale_" + function.getName()).str();
  unsigned most =
      cast<llvm::FixedVectorType>(version->getReturnType())->getNumElements();
  llvm::Function *single = makeNarrower(*version, 1, name);
  SmallVector<llvm::GlobalValue *> versions;
  SmallVector<std::string> mappings;
  for (unsigned lanes = 2; lanes <= most; lanes *= 2) {
    llvm::Function *ofLanes =
        lanes == most
            ? version
            : makeNarrower(*version, lanes, name + "_" + Twine(lanes));
    versions.push_back(ofLanes);
    mappings.push_back(("_ZGV_LLVM_N" + Twine(lanes) +
                        std::string(function.arg_size(), 'v') + "_" + name +
                        "(" + ofLanes->getName() + ")")
                           .str());
  }
  llvm::appendToCompilerUsed(*function.getParent(), versions);
  function.replaceAllUsesWith(single);
  auto attribute =
      llvm::Attribute::get(function.getContext(), "vector-function-abi-variant",
                           llvm::join(mappings, ","));
  for (llvm::User *user : single->users())
    if (auto *call = dyn_cast<llvm::CallInst>(user)) {
      call->addFnAttr(attribute);
      call->addFnAttr(llvm::Attribute::get(function.getContext(),
                                           kLanesAttrName, Twine(most).str()));
    }
}

/// Loads and stores the parts of complex numbers one by one. LLVM would do so,
/// too, but forget then that the loop around them is parallel.
void splitComplexAccesses(llvm::Function &function) {
  SmallVector<llvm::Instruction *> accesses;
  for (llvm::Instruction &instruction : llvm::instructions(function))
    if (isa<llvm::LoadInst, llvm::StoreInst>(instruction))
      if (isa<llvm::StructType>(llvm::getLoadStoreType(&instruction)))
        accesses.push_back(&instruction);
  const llvm::DataLayout &layout = function.getDataLayout();
  for (llvm::Instruction *access : accesses) {
    auto *type = cast<llvm::StructType>(llvm::getLoadStoreType(access));
    llvm::Value *pointer = llvm::getLoadStorePointerOperand(access);
    const llvm::StructLayout *places = layout.getStructLayout(type);
    llvm::IRBuilder<> builder(access);
    llvm::Value *whole = llvm::PoisonValue::get(type);
    for (unsigned part = 0; part < type->getNumElements(); ++part) {
      llvm::Value *address = builder.CreateStructGEP(type, pointer, part);
      llvm::Align align =
          llvm::commonAlignment(llvm::getLoadStoreAlignment(access),
                                places->getElementOffset(part).getFixedValue());
      if (auto *store = dyn_cast<llvm::StoreInst>(access))
        builder.CreateAlignedStore(
            builder.CreateExtractValue(store->getValueOperand(), part), address,
            align);
      else
        whole = builder.CreateInsertValue(
            whole,
            builder.CreateAlignedLoad(type->getElementType(part), address,
                                      align),
            part);
    }
    if (isa<llvm::LoadInst>(access))
      access->replaceAllUsesWith(whole);
    access->eraseFromParent();
  }
}

/// Says of a loop that calls math functions how many elements it computes at a
/// time: as many as each call does, also where the processor prefers shorter
/// vectors or memory is read here and there. A single element costs a call.
void setVectorWidth(llvm::Loop &loop, SmallVectorImpl<llvm::Metadata *> &id) {
  unsigned lanes = 0;
  for (llvm::BasicBlock *block : loop.blocks())
    for (llvm::Instruction &instruction : *block)
      if (auto *call = dyn_cast<llvm::CallInst>(&instruction)) {
        unsigned own = 0;
        if (call->getFnAttr(kLanesAttrName)
                .getValueAsString()
                .getAsInteger(10, own))
          continue;
        lanes = lanes ? std::min(lanes, own) : own;
      }
  if (lanes < 2)
    return;
  llvm::LLVMContext &context = loop.getHeader()->getContext();
  auto add = [&](StringRef name, unsigned value, unsigned bits) {
    auto *number =
        llvm::ConstantInt::get(llvm::IntegerType::get(context, bits), value);
    id.push_back(
        llvm::MDNode::get(context, {llvm::MDString::get(context, name),
                                    llvm::ConstantAsMetadata::get(number)}));
  };
  add("llvm.loop.vectorize.enable", 1, 1);
  add("llvm.loop.vectorize.width", lanes, 32);
  add("llvm.loop.vectorize.predicate.enable", 1, 1);
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
    SmallVector<llvm::Metadata *> properties = {nullptr, property};
    setVectorWidth(*loop, properties);
    auto *id = llvm::MDNode::getDistinct(context, properties);
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
  context.setDiagnosticHandler(std::make_unique<IgnoreMissedLoops>());
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
  SmallVector<llvm::Function *> declarations;
  for (llvm::Function &function : *llvmModule)
    if (function.isDeclaration() && !function.isIntrinsic() &&
        function.getReturnType()->isFloatingPointTy())
      declarations.push_back(&function);
  for (llvm::Function *function : declarations)
    useVectorVersion(*function, *machine);
  for (llvm::Function &function : *llvmModule) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine->getTargetCPU());
    function.addFnAttr("target-features", machine->getTargetFeatureString());
  }
  for (const std::string &name : names) {
    llvm::Function *function = llvmModule->getFunction(name);
    splitComplexAccesses(*function);
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
