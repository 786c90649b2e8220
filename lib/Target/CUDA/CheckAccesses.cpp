//===- CheckAccesses.cpp - Emulated accesses are checked ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckAccesses.h"
#include "whale/ProgramFormat/Emulator.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"

#include <set>

using namespace llvm;
using namespace whale;

using Arrays = DenseMap<Value *, EmulatedArray>;

namespace {

/// Finds what addresses are offsets from: through the descriptors of memrefs,
/// which are structures, and what chooses between them.
class Roots {
public:
  Roots(Value *address, const Arrays &arrays) : arrays(arrays) {
    collect(address, {});
  }

  SmallSetVector<Value *, 4> found;

private:
  /// `value`, or if it is a structure its `field`.
  void collect(Value *value, ArrayRef<unsigned> field) {
    if (!seen.insert({value, SmallVector<unsigned>(field)}).second)
      return;
    if (auto *insert = dyn_cast<InsertValueInst>(value)) {
      if (insert->getIndices() == field)
        collect(insert->getInsertedValueOperand(), {});
      else
        collect(insert->getAggregateOperand(), field);
    } else if (auto *extract = dyn_cast<ExtractValueInst>(value)) {
      SmallVector<unsigned> inner(extract->getIndices());
      inner.append(field.begin(), field.end());
      collect(extract->getAggregateOperand(), inner);
    } else if (auto *phi = dyn_cast<PHINode>(value)) {
      for (Value *incoming : phi->incoming_values())
        collect(incoming, field);
    } else if (auto *select = dyn_cast<SelectInst>(value)) {
      collect(select->getTrueValue(), field);
      collect(select->getFalseValue(), field);
    } else if (arrays.contains(value)) {
      found.insert(value);
    } else if (auto *gep = dyn_cast<GEPOperator>(value)) {
      collect(gep->getPointerOperand(), field);
    } else if (auto *cast = dyn_cast<AddrSpaceCastOperator>(value)) {
      collect(cast->getPointerOperand(), field);
    } else {
      found.insert(value);
    }
  }

  const Arrays &arrays;
  std::set<std::pair<Value *, SmallVector<unsigned>>> seen;
};

} // namespace

/// Memory of one thread, constants, and what the emulator itself passes.
static bool isUnchecked(Value *root) {
  auto *global = dyn_cast<GlobalVariable>(root);
  return isa<AllocaInst, CallInst, Argument>(root) ||
         (global && global->isConstant());
}

Error whale::checkAccesses(Function &body,
                           const DenseMap<Value *, EmulatedArray> &arrays,
                           function_ref<Value *(IRBuilder<> &)> loadChecker) {
  SmallVector<Instruction *> accesses;
  for (Instruction &instruction : instructions(body)) {
    if (isa<LoadInst, StoreInst>(instruction))
      accesses.push_back(&instruction);
    else if (isa<AtomicRMWInst, AtomicCmpXchgInst, MemIntrinsic>(instruction))
      return createStringError("the emulator does not know " +
                               Twine(instruction.getOpcodeName()));
  }
  const DataLayout &layout = body.getDataLayout();
  for (Instruction *instruction : accesses) {
    Type *type = getLoadStoreType(instruction);
    if (type->isPointerTy()) // What the emulator passes; kernels have none.
      continue;
    Value *address = getLoadStorePointerOperand(instruction);
    Roots roots(address, arrays);
    if (all_of(roots.found, isUnchecked))
      continue;
    if (any_of(roots.found, isUnchecked)) {
      std::string text;
      raw_string_ostream(text) << *instruction;
      return createStringError("the emulator cannot tell the buffer of" + text);
    }
    IRBuilder<> b(instruction);
    auto *pointer = b.getPtrTy();
    // Null is one of several buffers.
    Value *base = Constant::getNullValue(pointer);
    EmulatedArray array{0, false};
    if (roots.found.size() == 1) {
      base = roots.found.front();
      array = arrays.lookup(base);
    }
    auto toGeneric = [&](Value *value) {
      return b.CreateAddrSpaceCast(value, pointer);
    };
    int kind =
        (isa<StoreInst>(instruction) ? format::kWrites : format::kReads) +
        (array.isShared ? format::kOfSharedMemory : 0);
    auto *checker =
        FunctionType::get(pointer,
                          {pointer, pointer, b.getInt64Ty(), pointer,
                           b.getInt32Ty(), b.getInt32Ty(), b.getInt32Ty()},
                          false);
    Value *checked =
        b.CreateCall(checker, loadChecker(b),
                     {body.getArg(0), toGeneric(base), b.getInt64(array.bytes),
                      toGeneric(address),
                      b.getInt32(layout.getTypeStoreSize(type).getFixedValue()),
                      b.getInt32(getLoadStoreAlignment(instruction).value()),
                      b.getInt32(kind)});
    checked = b.CreateAddrSpaceCast(checked, address->getType());
    instruction->setOperand(isa<StoreInst>(instruction) ? 1 : 0, checked);
  }
  return Error::success();
}
