//===- KernelBuffers.cpp - The buffers that a loop nest needs -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which results can be written over an operand.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Transforms/Attributes.h"

using namespace mlir;
using namespace whale;

bool whale::isStateOf(Value value, Value result) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      dyn_cast<FunctionOpInterface>(result.getParentBlock()->getParentOp());
  if (!argument || !function || argument.getOwner()->getParentOp() != function)
    return false;
  for (StringRef name : {kFedByAttr, kAliasingOutputAttr})
    if (auto number = function.getArgAttrOfType<IntegerAttr>(
            argument.getArgNumber(), name))
      return llvm::any_of(result.getUses(), [&](OpOperand &use) {
        return use.getOwner() == result.getParentBlock()->getTerminator() &&
               use.getOperandNumber() == number.getInt();
      });
  return false;
}

/// Whether result `result` can reuse the buffer that `read` is of.
bool LoopNest::canOverwrite(unsigned result, const Access &read) {
  const Access &write = writes[result];
  // Sums line by line are set before anything is read.
  if (read.buffer == ~0u || !(read == write) || stores[result] ||
      (innerParallel && isAccumulated(result)))
    return false;
  // Partial results have another shape. Without a barrier, threads that combine
  // a sum may still read what the first one stores it over.
  if (isAccumulated(result) &&
      (blocks.chunks > 1 || (blocks.rows > 1 && countCombinedBytes() == 0)))
    return false;
  Value tensor = inputs[read.buffer];
  auto from = cast<RankedTensorType>(tensor.getType());
  auto to = cast<RankedTensorType>(op->getResult(result).getType());
  // What is captured is read at any place.
  if (from.getNumElements() != to.getNumElements() ||
      getStoredBits(getBufferType(from).getElementType()) !=
          getStoredBits(getBufferType(to).getElementType()) ||
      captures.contains(tensor))
    return false;
  // No other access may see the element overwritten.
  auto conflicts = [&](const Access &other) {
    return other.buffer == read.buffer && !(other == write);
  };
  bool conflict = llvm::any_of(reads, conflicts);
  for (auto &list : fillReads)
    conflict |= llvm::any_of(list, conflicts);
  for (auto [number, initRead] : llvm::enumerate(initReads))
    conflict |= readsInit[number] && conflicts(initRead);
  return !conflict;
}

/// Each result reuses the buffer of at most one operand: first the state that
/// it is the next value of, then any that is left.
void LoopNest::findInplace(KernelOp kernel) {
  SmallVector<int64_t> inplace(writes.size(), -1);
  for (bool wantsState : {true, false})
    for (unsigned result = 0; result < writes.size(); ++result)
      for (const Access &read : reads) {
        if (inplace[result] >= 0)
          break;
        if (canOverwrite(result, read) &&
            !llvm::is_contained(inplace, read.buffer) &&
            (!wantsState ||
             isStateOf(inputs[read.buffer], op->getResult(result))))
          inplace[result] = read.buffer;
      }
  if (llvm::any_of(inplace, [](int64_t operand) { return operand >= 0; }))
    kernel.setInplace(inplace);
}
