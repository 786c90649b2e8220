//===- EmulateIntrinsics.cpp - GPU operations on a processor --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the LLVM IR that the PTX backend gets. Out: IR for this machine, in which
//
// - arithmetic by NVVM's names is LLVM's (EmulateArithmetic.cpp);
// - thread and block numbers, barriers and shuffles come from the
//   EmulatedThread that each kernel gets as its first argument;
// - shared memory is the block's own;
// - the emulator is asked before each access.
//
// Anything else that only a GPU has is an error, never skipped.
//
// Cost: linear in the instructions but for two: each kernel looks at the
// accesses to shared memory of all kernels that are left, which is quadratic in
// the kernels of a module; each access follows its address to the buffers that
// it may be in. When a kernel runs, each access, barrier and shuffle is a call
// of a function.
//
//===----------------------------------------------------------------------===//

#include "CheckAccesses.h"
#include "EmulateArithmetic.h"
#include "LowerToNvvm.h"
#include "whale/ProgramFormat/Emulator.h"
#include "whale/Target/CUDA/CompileCuda.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/ReplaceConstant.h"

using namespace llvm;
using namespace whale;

namespace {

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// The fields of format::EmulatedThread and of its functions.
enum ThreadField { kFunctions, kSharedMemory, kThread, kBlock };
enum TableField { kRun, kBarrier, kShuffle, kAccess };

StructType *getThreadType(LLVMContext &context) {
  auto *pointer = PointerType::get(context, 0);
  auto *number = Type::getInt32Ty(context);
  return StructType::get(context, {pointer, pointer, number, number});
}

Value *loadField(IRBuilder<> &b, Value *self, ThreadField field) {
  StructType *type = getThreadType(b.getContext());
  return b.CreateLoad(type->getElementType(field),
                      b.CreateStructGEP(type, self, field));
}

Value *loadFunction(IRBuilder<> &b, Value *self, TableField function) {
  auto *pointer = b.getPtrTy();
  Value *table = loadField(b, self, kFunctions);
  return b.CreateLoad(pointer, b.CreateConstGEP1_32(pointer, table, function));
}

/// shfl.sync of 32 bits; with a predicate it returns a pair.
Value *emulateShuffle(IRBuilder<> &b, CallBase &call, StringRef name,
                      Value *self) {
  using format::ShuffleMode;
  name.consume_front("shfl.sync.");
  auto mode = StringSwitch<ShuffleMode>(name.split('.').first)
                  .Case("up", ShuffleMode::Up)
                  .Case("down", ShuffleMode::Down)
                  .Case("bfly", ShuffleMode::Xor)
                  .Default(ShuffleMode::Index);
  Type *word = b.getInt32Ty();
  Value *value = call.getArgOperand(1);
  auto *type = FunctionType::get(
      b.getInt64Ty(), {b.getPtrTy(), word, word, word, word, word}, false);
  Value *result =
      b.CreateCall(type, loadFunction(b, self, kShuffle),
                   {self, b.getInt32(static_cast<uint32_t>(mode)),
                    call.getArgOperand(0), b.CreateBitCast(value, word),
                    call.getArgOperand(2), call.getArgOperand(3)});
  Value *shuffled =
      b.CreateBitCast(b.CreateTrunc(result, word), value->getType());
  auto *pair = dyn_cast<StructType>(call.getType());
  if (!pair)
    return shuffled;
  Value *isInside = b.CreateTrunc(b.CreateLShr(result, 32), b.getInt1Ty());
  return b.CreateInsertValue(
      b.CreateInsertValue(PoisonValue::get(pair), shuffled, 0), isInside, 1);
}

/// What the intrinsic llvm.nvvm.`name` returns to the thread `self`, or the
/// call in which it waits; null for any other, and in functions that are no
/// kernels.
Value *emulateThread(IRBuilder<> &b, CallBase &call, StringRef name,
                     Value *self) {
  if (!self)
    return nullptr;
  if (name == "read.ptx.sreg.tid.x")
    return loadField(b, self, kThread);
  if (name == "read.ptx.sreg.ctaid.x")
    return loadField(b, self, kBlock);
  if (name == "barrier.cta.sync.aligned.all")
    return b.CreateCall(FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false),
                        loadFunction(b, self, kBarrier), {self});
  if (name.starts_with("shfl.sync."))
    return emulateShuffle(b, call, name, self);
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// The answer to __nvvm_reflect("name"): the library asks for the architecture
/// and for flushing of small numbers.
Value *reflect(CallBase &call) {
  StringRef name;
  getConstantStringInfo(call.getArgOperand(0), name);
  return ConstantInt::get(call.getType(), name == "__CUDA_ARCH"        ? 900
                                          : name == "__CUDA_PREC_SQRT" ? 1
                                                                       : 0);
}

Error emulateCalls(Function &function, Value *self) {
  for (Instruction &instruction :
       make_early_inc_range(instructions(function))) {
    auto *call = dyn_cast<CallBase>(&instruction);
    if (!call)
      continue;
    IRBuilder<> b(call);
    Value *value = nullptr;
    std::string what;
    if (auto *assembly = dyn_cast<InlineAsm>(call->getCalledOperand())) {
      value = emulateAssembly(b, *call, assembly->getAsmString());
      what = "the assembly '" + assembly->getAsmString().str() + "'";
    } else if (Function *callee = call->getCalledFunction()) {
      StringRef name = callee->getName();
      if (name == "__nvvm_reflect") {
        value = reflect(*call);
      } else if (name.consume_front("llvm.nvvm.")) {
        value = emulateArithmetic(b, *call, name);
        if (!value)
          value = emulateThread(b, *call, name, self);
        what = callee->getName().str();
      } else {
        continue;
      }
    }
    if (!value)
      return createStringError("the emulator does not know " + what);
    call->replaceAllUsesWith(value);
    call->eraseFromParent();
  }
  return Error::success();
}

/// The threads of a block, which the kernel says.
int64_t getThreads(const Function &kernel) {
  int64_t threads;
  StringRef text = kernel.getFnAttribute("nvvm.maxntid").getValueAsString();
  bool failed = text.split(',').first.getAsInteger(10, threads);
  assert(!failed && "whale-kernels-to-gpu knows the size of a block");
  (void)failed;
  return threads;
}

using Arrays = DenseMap<Value *, EmulatedArray>;

SmallVector<uint64_t> getBufferBytes(const Function &kernel) {
  SmallVector<uint64_t> bytes;
  for (const Argument &argument : kernel.args())
    bytes.push_back(argument.getDereferenceableBytes());
  return bytes;
}

/// Moves the body of a kernel into a function of an EmulatedThread and a list
/// of buffers, and returns that. Notes the buffers in `arrays`.
Function *makeBody(Function &kernel, Arrays &arrays) {
  LLVMContext &context = kernel.getContext();
  auto *pointer = PointerType::get(context, 0);
  auto *body = Function::Create(
      FunctionType::get(Type::getVoidTy(context), {pointer, pointer}, false),
      GlobalValue::InternalLinkage, kernel.getName() + ".body",
      kernel.getParent());
  body->splice(body->end(), &kernel);
  IRBuilder<> b(&body->getEntryBlock(), body->getEntryBlock().begin());
  for (Argument &argument : kernel.args()) {
    Value *place = b.CreateConstInBoundsGEP1_32(pointer, body->getArg(1),
                                                argument.getArgNo());
    Value *buffer = b.CreateLoad(pointer, place);
    arrays[buffer] = {argument.getDereferenceableBytes(), false};
    argument.replaceAllUsesWith(buffer);
  }
  return body;
}

/// Gives the arrays of shared memory that a kernel uses offsets in the block's,
/// and notes them in `arrays`; returns their size.
uint64_t placeShared(Function &body, ArrayRef<GlobalVariable *> shared,
                     const DataLayout &layout, Arrays &arrays) {
  uint64_t size = 0;
  for (GlobalVariable *array : shared) {
    SmallVector<Instruction *> users;
    for (User *user : array->users())
      if (auto *instruction = dyn_cast<Instruction>(user))
        if (instruction->getFunction() == &body)
          users.push_back(instruction);
    if (users.empty())
      continue;
    size = alignTo(size, layout.getValueOrABITypeAlignment(
                             array->getAlign(), array->getValueType()));
    IRBuilder<> b(&body.getEntryBlock(), body.getEntryBlock().begin());
    Value *memory = loadField(b, body.getArg(0), kSharedMemory);
    Value *place = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), memory, size);
    place = b.CreateAddrSpaceCast(place, array->getType());
    for (Instruction *user : users)
      user->replaceUsesOfWith(array, place);
    uint64_t bytes = layout.getTypeAllocSize(array->getValueType());
    arrays[place] = {bytes, true};
    size += bytes;
  }
  return size;
}

/// The kernel's entry: describes it and lets the runtime run it.
void makeEntry(StringRef name, Function *body, int64_t threads,
               uint64_t sharedBytes, int64_t mostSharedBytes, bool isByBlock,
               ArrayRef<uint64_t> bufferBytes, GlobalVariable *table) {
  Module &module = *body->getParent();
  LLVMContext &context = module.getContext();
  IRBuilder<> b(context);
  auto *pointer = b.getPtrTy();
  auto addConstant = [&](Constant *value, GlobalValue::LinkageTypes linkage) {
    return new GlobalVariable(module, value->getType(), true, linkage, value);
  };
  Constant *text = addConstant(ConstantDataArray::getString(context, name),
                               GlobalValue::PrivateLinkage);
  Constant *sizes = addConstant(ConstantDataArray::get(context, bufferBytes),
                                GlobalValue::PrivateLinkage);
  Constant *description =
      addConstant(ConstantStruct::getAnon(
                      {text, body, b.getInt32(threads), b.getInt32(sharedBytes),
                       b.getInt32(mostSharedBytes), b.getInt32(isByBlock),
                       b.getInt32(bufferBytes.size()), sizes}),
                  GlobalValue::InternalLinkage);
  auto *entry = Function::Create(
      FunctionType::get(b.getVoidTy(),
                        {pointer, b.getInt64Ty(), b.getInt64Ty()}, false),
      GlobalValue::ExternalLinkage, name, module);
  b.SetInsertPoint(BasicBlock::Create(context, "entry", entry));
  Value *functions = b.CreateLoad(pointer, table);
  Value *run =
      b.CreateLoad(pointer, b.CreateConstGEP1_32(pointer, functions, kRun));
  b.CreateCall(
      FunctionType::get(b.getVoidTy(),
                        {pointer, pointer, b.getInt64Ty(), b.getInt64Ty()},
                        false),
      run, {description, entry->getArg(0), entry->getArg(1), entry->getArg(2)});
  b.CreateRetVoid();
}

} // namespace

Error whale::emulateIntrinsics(Module &module, int64_t blockSharedBytes) {
  LLVMContext &context = module.getContext();
  auto *table = new GlobalVariable(
      module, PointerType::get(context, 0), false, GlobalValue::WeakODRLinkage,
      ConstantPointerNull::get(PointerType::get(context, 0)), "whale_emulator");
  SmallVector<GlobalVariable *> shared;
  SmallVector<Constant *> sharedConstants;
  for (GlobalVariable &variable : module.globals())
    if (variable.getAddressSpace() == 3) {
      shared.push_back(&variable);
      sharedConstants.push_back(&variable);
    }
  convertUsersOfConstantsToInstructions(sharedConstants);
  SmallVector<Function *> kernels, others;
  for (Function &function : module)
    if (!function.isDeclaration())
      (function.getCallingConv() == CallingConv::PTX_Kernel ? kernels : others)
          .push_back(&function);
  for (Function *function : others)
    if (Error error = emulateCalls(*function, nullptr))
      return error;
  for (Function *kernel : kernels) {
    std::string name = kernel->getName().str();
    int64_t threads = getThreads(*kernel);
    bool isByBlock = kernel->hasFnAttribute(kByBlockAttrName);
    SmallVector<uint64_t> bufferBytes = getBufferBytes(*kernel);
    Arrays arrays;
    Function *body = makeBody(*kernel, arrays);
    kernel->eraseFromParent();
    if (Error error = emulateCalls(*body, body->getArg(0)))
      return error;
    uint64_t bytes = placeShared(*body, shared, module.getDataLayout(), arrays);
    Value *self = body->getArg(0);
    if (Error error = checkAccesses(*body, arrays, [&](auto &b) {
          return loadFunction(b, self, kAccess);
        }))
      return error;
    makeEntry(name, body, threads, bytes, blockSharedBytes, isByBlock,
              bufferBytes, table);
  }
  for (GlobalVariable *array : shared)
    if (array->use_empty())
      array->eraseFromParent();
  return Error::success();
}
