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
// - arithmetic by NVVM's names is LLVM's arithmetic, rounded alike; what the
//   hardware approximates (reciprocals, square roots) is exact;
// - thread and block numbers, barriers and shuffles come from the
//   EmulatedThread that each kernel gets as its first argument;
// - shared memory is the block's own;
// - the emulator is asked before each access.
//
// Anything else that only a GPU has is an error, never skipped.
//
//===----------------------------------------------------------------------===//

#include "CheckAccesses.h"
#include "LowerToNvvm.h"
#include "whale/Target/CUDA/CompileCuda.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace {

/// Operands and builder at a call that is replaced.
struct Site {
  IRBuilder<> &b;
  CallBase &call;
  /// The EmulatedThread; null in functions that are no kernels.
  Value *self;

  Value *operand(unsigned number) const { return call.getArgOperand(number); }
};

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// "fma.rn.f" and the like, without rounding and type.
std::optional<StringRef> dropSuffixes(StringRef name, StringRef &rounding) {
  for (StringRef type : {".f32", ".f64", ".f", ".d"})
    if (name.consume_back(type))
      break;
  name.consume_back(".ftz"); // Only where __nvvm_reflect asks for it: nowhere.
  for (StringRef each : {".rn", ".rz", ".rm", ".rp", ".approx"})
    if (name.consume_back(each)) {
      rounding = each.drop_front();
      break;
    }
  return name;
}

/// An integer of a float that is rounded as `rounding` says; what is out of
/// range becomes the nearest integer.
Value *toInteger(const Site &site, StringRef rounding, bool isSigned) {
  IRBuilder<> &b = site.b;
  Value *value = site.operand(0);
  Intrinsic::ID round = rounding == "rn"   ? Intrinsic::roundeven
                        : rounding == "rm" ? Intrinsic::floor
                        : rounding == "rp" ? Intrinsic::ceil
                                           : Intrinsic::trunc;
  value = b.CreateUnaryIntrinsic(round, value);
  return b.CreateIntrinsic(isSigned ? Intrinsic::fptosi_sat
                                    : Intrinsic::fptoui_sat,
                           {site.call.getType(), value->getType()}, {value});
}

/// a * b + c in f32, rounded down ("rm"), up or towards zero. The product is
/// exact in f64, and so are the sum and its error together.
Value *roundFma(IRBuilder<> &b, ArrayRef<Value *> operands,
                StringRef rounding) {
  Type *wide = b.getDoubleTy(), *narrow = b.getFloatTy();
  auto extend = [&](Value *value) { return b.CreateFPExt(value, wide); };
  Value *product = b.CreateFMul(extend(operands[0]), extend(operands[1]));
  Value *term = extend(operands[2]);
  Value *sum = b.CreateFAdd(product, term);
  Value *part = b.CreateFSub(sum, product);
  Value *error = b.CreateFAdd(b.CreateFSub(product, b.CreateFSub(sum, part)),
                              b.CreateFSub(term, part));
  Value *result = b.CreateFPTrunc(sum, narrow);
  Value *back = extend(result), *zero = ConstantFP::get(wide, 0.0);
  auto isBeyond = [&](CmpInst::Predicate predicate) {
    return b.CreateOr(b.CreateFCmp(predicate, back, sum),
                      b.CreateAnd(b.CreateFCmpOEQ(back, sum),
                                  b.CreateFCmp(predicate, zero, error)));
  };
  Value *isAbove = isBeyond(CmpInst::FCMP_OGT);
  Value *isBelow = isBeyond(CmpInst::FCMP_OLT);
  // To the neighbour below or above: one less or more, seen as integers, away
  // from or towards zero.
  Value *bits = b.CreateBitCast(result, b.getInt32Ty());
  Value *isNegative = b.CreateICmpSLT(bits, b.getInt32(0));
  auto step = [&](bool down) {
    Value *away = b.CreateAdd(bits, b.getInt32(1));
    Value *towards = b.CreateSub(bits, b.getInt32(1));
    Value *next = down ? b.CreateSelect(isNegative, away, towards)
                       : b.CreateSelect(isNegative, towards, away);
    Value *isZero = b.CreateICmpEQ(b.CreateAnd(bits, b.getInt32(0x7fffffff)),
                                   b.getInt32(0));
    next = b.CreateSelect(isZero, b.getInt32(down ? 0x80000001 : 1), next);
    return b.CreateBitCast(next, narrow);
  };
  Value *isPositive = b.CreateFCmpOGT(sum, zero);
  Value *down = b.CreateSelect(isAbove, step(true), result);
  Value *up = b.CreateSelect(isBelow, step(false), result);
  if (rounding == "rm")
    return down;
  if (rounding == "rp")
    return up;
  return b.CreateSelect(isPositive, down, up);
}

/// What llvm.nvvm.`name` computes; null for what is no arithmetic.
Value *emulateArithmetic(const Site &site, StringRef name) {
  IRBuilder<> &b = site.b;
  Type *type = site.call.getType();
  StringRef rounding;
  StringRef plain = *dropSuffixes(name, rounding);
  bool isNearest = rounding.empty() || rounding == "rn";
  auto operand = [&](unsigned number) { return site.operand(number); };
  auto unary = [&](Intrinsic::ID id) {
    return b.CreateUnaryIntrinsic(id, operand(0));
  };
  auto one = [&] { return ConstantFP::get(type, 1.0); };
  if (isNearest) {
    if (plain == "fma")
      return b.CreateIntrinsic(Intrinsic::fma, {type},
                               {operand(0), operand(1), operand(2)});
    if (plain == "add")
      return b.CreateFAdd(operand(0), operand(1));
    if (plain == "mul")
      return b.CreateFMul(operand(0), operand(1));
    if (plain == "d2f")
      return b.CreateFPTrunc(operand(0), type);
    if (plain == "i2d" || plain == "i2f" || plain == "ll2f" || plain == "ll2d")
      return b.CreateSIToFP(operand(0), type);
    if (plain == "ui2d" || plain == "ui2f" || plain == "ull2f" ||
        plain == "ull2d")
      return b.CreateUIToFP(operand(0), type);
  }
  if (isNearest || rounding == "approx") {
    if (plain == "div")
      return b.CreateFDiv(operand(0), operand(1));
    if (plain == "rcp")
      return b.CreateFDiv(one(), operand(0));
    if (plain == "sqrt")
      return unary(Intrinsic::sqrt);
    if (plain == "rsqrt")
      return b.CreateFDiv(one(), unary(Intrinsic::sqrt));
    if (plain == "ex2")
      return unary(Intrinsic::exp2);
    if (plain == "lg2")
      return unary(Intrinsic::log2);
    if (plain == "sin")
      return unary(Intrinsic::sin);
    if (plain == "cos")
      return unary(Intrinsic::cos);
    if (plain == "floor")
      return unary(Intrinsic::floor);
    if (plain == "ceil")
      return unary(Intrinsic::ceil);
    if (plain == "trunc")
      return unary(Intrinsic::trunc);
    if (plain == "round")
      return unary(Intrinsic::roundeven);
    if (plain == "fabs")
      return unary(Intrinsic::fabs);
    if (plain == "fmin")
      return b.CreateBinaryIntrinsic(Intrinsic::minnum, operand(0), operand(1));
    if (plain == "fmax")
      return b.CreateBinaryIntrinsic(Intrinsic::maxnum, operand(0), operand(1));
  }
  if (type->isFloatTy() && !isNearest && rounding != "approx") {
    if (plain == "fma")
      return roundFma(b, {operand(0), operand(1), operand(2)}, rounding);
    if (plain == "add")
      return roundFma(b, {operand(0), one(), operand(1)}, rounding);
    if (plain == "mul")
      return roundFma(b, {operand(0), operand(1), ConstantFP::get(type, -0.0)},
                      rounding);
  }
  if (plain == "saturate") {
    Value *low = b.CreateBinaryIntrinsic(Intrinsic::maxnum, operand(0),
                                         ConstantFP::get(type, 0.0));
    return b.CreateBinaryIntrinsic(Intrinsic::minnum, low, one());
  }
  for (StringRef from : {"f", "d"})
    for (StringRef to : {"i", "ll"})
      for (bool isSigned : {true, false})
        if (plain == (from + "2" + (isSigned ? "" : "u") + to).str())
          return toInteger(site, rounding, isSigned);
  if (plain == "mulhi.i" || plain == "mulhi.ll" || plain == "mulhi.ui" ||
      plain == "mulhi.ull") {
    bool isSigned = !plain.contains(".u");
    unsigned bits = type->getIntegerBitWidth();
    Type *wide = b.getIntNTy(2 * bits);
    auto extend = [&](Value *value) {
      return isSigned ? b.CreateSExt(value, wide) : b.CreateZExt(value, wide);
    };
    Value *product = b.CreateMul(extend(operand(0)), extend(operand(1)));
    return b.CreateTrunc(b.CreateLShr(product, bits), type);
  }
  auto asPair = [&](Value *value) {
    return b.CreateBitCast(value, b.getInt64Ty());
  };
  if (plain == "d2i.lo")
    return b.CreateTrunc(asPair(operand(0)), type);
  if (plain == "d2i.hi")
    return b.CreateTrunc(b.CreateLShr(asPair(operand(0)), 32), type);
  if (plain == "lohi.i2d")
    return b.CreateBitCast(
        b.CreateOr(b.CreateZExt(operand(0), b.getInt64Ty()),
                   b.CreateShl(b.CreateZExt(operand(1), b.getInt64Ty()), 32)),
        type);
  return nullptr;
}

/// The inline assembly of the device library; null for what it doesn't have.
Value *emulateAssembly(const Site &site, StringRef text) {
  IRBuilder<> &b = site.b;
  Type *type = site.call.getType();
  auto operand = [&](unsigned number) { return site.operand(number); };
  if (text.starts_with("rcp.approx.ftz.f32 "))
    return b.CreateFDiv(ConstantFP::get(type, 1.0), operand(0));
  if (text.starts_with("rsqrt.approx.ftz.f64 "))
    return b.CreateFDiv(ConstantFP::get(type, 1.0),
                        b.CreateUnaryIntrinsic(Intrinsic::sqrt, operand(0)));
  if (text.starts_with("sub.rn.f32 ") || text.starts_with("sub.rn.f64 "))
    return b.CreateFSub(operand(0), operand(1));
  if (text.contains("setp.equ.f64") && text.contains("selp.f64"))
    return b.CreateSelect(b.CreateFCmpUEQ(operand(0), operand(1)), operand(2),
                          operand(3));
  // Products and sums of 128 bits, as pairs of 64.
  if (text.contains("mov.b64         $1, {r2,r3};")) {
    auto wide = [&](unsigned number) {
      return b.CreateZExt(operand(number), b.getInt128Ty());
    };
    auto pair = [&](unsigned number) {
      return b.CreateOr(wide(number), b.CreateShl(wide(number + 1), 64));
    };
    Value *value = nullptr;
    if (text.contains("mad.lo.cc.u32   r0, alo, blo, clo;"))
      value = b.CreateAdd(b.CreateMul(wide(0), wide(1)), wide(2));
    else if (text.contains("mul.lo.u32      r0, alo, blo;"))
      value = b.CreateMul(wide(0), wide(1));
    else if (text.contains("add.cc.u32      r0, a0, b0;"))
      value = b.CreateAdd(pair(0), pair(2));
    else if (text.contains("sub.cc.u32      r0, a0, b0;"))
      value = b.CreateSub(pair(0), pair(2));
    else
      return nullptr;
    Value *result = PoisonValue::get(type);
    result =
        b.CreateInsertValue(result, b.CreateTrunc(value, b.getInt64Ty()), 0);
    return b.CreateInsertValue(
        result, b.CreateTrunc(b.CreateLShr(value, 64), b.getInt64Ty()), 1);
  }
  if (text.contains("mad.lo.cc.u32   $0, $2, $3, $4;") &&
      text.contains("madc.hi.u32     $1, $2, $3,  0;")) {
    auto wide = [&](unsigned number) {
      return b.CreateZExt(operand(number), b.getInt64Ty());
    };
    Value *sum = b.CreateAdd(b.CreateMul(wide(0), wide(1)), wide(2));
    Value *result = PoisonValue::get(type);
    result = b.CreateInsertValue(result, b.CreateTrunc(sum, b.getInt32Ty()), 0);
    return b.CreateInsertValue(
        result, b.CreateTrunc(b.CreateLShr(sum, 32), b.getInt32Ty()), 1);
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// The fields of whale/Runtime/Emulator.h's EmulatedThread and its functions.
enum ThreadField { kFunctions, kSharedMemory, kThread, kBlock };
enum Function { kRun, kBarrier, kShuffle, kAccess };

StructType *getThreadType(LLVMContext &context) {
  auto *pointer = PointerType::get(context, 0);
  auto *number = Type::getInt32Ty(context);
  return StructType::get(context, {pointer, pointer, number, number});
}

Value *loadField(IRBuilder<> &b, Value *self, ThreadField field) {
  StructType *type = getThreadType(b.getContext());
  auto *load = b.CreateLoad(type->getElementType(field),
                            b.CreateStructGEP(type, self, field));
  return load;
}

Value *loadFunction(IRBuilder<> &b, Value *self, Function function) {
  auto *pointer = b.getPtrTy();
  Value *table = loadField(b, self, kFunctions);
  return b.CreateLoad(pointer, b.CreateConstGEP1_32(pointer, table, function));
}

/// shfl.sync of 32 bits; with a predicate it returns a pair.
Value *emulateShuffle(const Site &site, StringRef name) {
  IRBuilder<> &b = site.b;
  name.consume_front("shfl.sync.");
  auto [mode, rest] = name.split('.');
  unsigned number = StringSwitch<unsigned>(mode)
                        .Case("up", 0)
                        .Case("down", 1)
                        .Case("bfly", 2)
                        .Default(3);
  Type *word = b.getInt32Ty();
  Value *value = site.operand(1);
  auto *type = FunctionType::get(
      b.getInt64Ty(), {b.getPtrTy(), word, word, word, word, word}, false);
  Value *result = b.CreateCall(type, loadFunction(b, site.self, kShuffle),
                               {site.self, b.getInt32(number), site.operand(0),
                                b.CreateBitCast(value, word), site.operand(2),
                                site.operand(3)});
  Value *shuffled =
      b.CreateBitCast(b.CreateTrunc(result, word), value->getType());
  auto *pair = dyn_cast<StructType>(site.call.getType());
  if (!pair)
    return shuffled;
  Value *isInside = b.CreateTrunc(b.CreateLShr(result, 32), b.getInt1Ty());
  return b.CreateInsertValue(
      b.CreateInsertValue(PoisonValue::get(pair), shuffled, 0), isInside, 1);
}

Value *emulateThread(const Site &site, StringRef name) {
  IRBuilder<> &b = site.b;
  if (!site.self)
    return nullptr;
  if (name == "read.ptx.sreg.tid.x")
    return loadField(b, site.self, kThread);
  if (name == "read.ptx.sreg.ctaid.x")
    return loadField(b, site.self, kBlock);
  if (name == "barrier.cta.sync.aligned.all")
    return b.CreateCall(FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false),
                        loadFunction(b, site.self, kBarrier), {site.self});
  if (name.starts_with("shfl.sync."))
    return emulateShuffle(site, name);
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

Error emulateCalls(llvm::Function &function, Value *self) {
  for (Instruction &instruction :
       make_early_inc_range(instructions(function))) {
    auto *call = dyn_cast<CallBase>(&instruction);
    if (!call)
      continue;
    IRBuilder<> b(call);
    Site site{b, *call, self};
    Value *value = nullptr;
    std::string what;
    if (auto *assembly = dyn_cast<InlineAsm>(call->getCalledOperand())) {
      value = emulateAssembly(site, assembly->getAsmString());
      what = "the assembly '" + assembly->getAsmString().str() + "'";
    } else if (llvm::Function *callee = call->getCalledFunction()) {
      StringRef name = callee->getName();
      if (name == "__nvvm_reflect") {
        value = reflect(*call);
      } else if (name.consume_front("llvm.nvvm.")) {
        value = emulateArithmetic(site, name);
        if (!value)
          value = emulateThread(site, name);
        what = callee->getName().str();
      } else {
        continue;
      }
    }
    if (!value) {
      return createStringError("the emulator does not know " + what);
    }
    call->replaceAllUsesWith(value);
    call->eraseFromParent();
  }
  return Error::success();
}

/// The threads of a block, which the kernel says.
int64_t getThreads(const llvm::Function &kernel) {
  for (StringRef name : {"nvvm.reqntid", "nvvm.maxntid"}) {
    int64_t threads;
    StringRef text = kernel.getFnAttribute(name).getValueAsString();
    if (!text.split(',').first.getAsInteger(10, threads))
      return threads;
  }
  return whale::kBlockThreads;
}

/// Whether threads of a block wait for one another.
bool hasCooperation(const llvm::Function &kernel) {
  return any_of(instructions(kernel), [](const Instruction &instruction) {
    auto *call = dyn_cast<CallBase>(&instruction);
    llvm::Function *callee = call ? call->getCalledFunction() : nullptr;
    return callee && (callee->getName().starts_with("llvm.nvvm.barrier.") ||
                      callee->getName().starts_with("llvm.nvvm.shfl."));
  });
}

using Arrays = DenseMap<Value *, whale::EmulatedArray>;

SmallVector<uint64_t> getBufferBytes(const llvm::Function &kernel) {
  SmallVector<uint64_t> bytes;
  for (const Argument &argument : kernel.args())
    bytes.push_back(argument.getDereferenceableBytes());
  return bytes;
}

/// Moves the body of a kernel into a function of an EmulatedThread and a list
/// of buffers, and returns that. Notes the buffers in `arrays`.
llvm::Function *makeBody(llvm::Function &kernel, Arrays &arrays) {
  LLVMContext &context = kernel.getContext();
  auto *pointer = PointerType::get(context, 0);
  auto *body = llvm::Function::Create(
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

/// Gives what is in shared memory places in the block's, noted in `arrays`;
/// returns its size.
uint64_t placeShared(llvm::Function &body, ArrayRef<GlobalVariable *> shared,
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
    size = alignTo(size, 16);
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
void makeEntry(StringRef name, llvm::Function *body, int64_t threads,
               uint64_t sharedBytes, bool cooperates,
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
  Constant *description = addConstant(
      ConstantStruct::getAnon({text, body, b.getInt32(threads),
                               b.getInt32(sharedBytes), b.getInt32(cooperates),
                               b.getInt32(bufferBytes.size()), sizes}),
      GlobalValue::InternalLinkage);
  auto *entry = llvm::Function::Create(
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

Error whale::emulateIntrinsics(Module &module) {
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
  SmallVector<llvm::Function *> kernels, others;
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      (function.getCallingConv() == CallingConv::PTX_Kernel ? kernels : others)
          .push_back(&function);
  for (llvm::Function *function : others)
    if (Error error = emulateCalls(*function, nullptr))
      return error;
  for (llvm::Function *kernel : kernels) {
    std::string name = kernel->getName().str();
    int64_t threads = getThreads(*kernel);
    bool cooperates = hasCooperation(*kernel);
    SmallVector<uint64_t> bufferBytes = getBufferBytes(*kernel);
    Arrays arrays;
    llvm::Function *body = makeBody(*kernel, arrays);
    kernel->eraseFromParent();
    if (Error error = emulateCalls(*body, body->getArg(0)))
      return error;
    uint64_t bytes = placeShared(*body, shared, module.getDataLayout(), arrays);
    Value *self = body->getArg(0);
    if (Error error = whale::checkAccesses(*body, arrays, [&](auto &b) {
          return loadFunction(b, self, kAccess);
        }))
      return error;
    makeEntry(name, body, threads, bytes, cooperates, bufferBytes, table);
  }
  for (GlobalVariable *array : shared)
    if (array->use_empty())
      array->eraseFromParent();
  return Error::success();
}
