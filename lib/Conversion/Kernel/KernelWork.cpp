//===- KernelWork.cpp - What kernels do -----------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelWork.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/OperationWork.h"

using namespace mlir;
using namespace whale;

void KernelWork::add(OpClass opClass, Type type, int64_t flops) {
  int64_t &sum = flopsOf[size_t(opClass)];
  sum = addCosts(sum, flops);
  if (type)
    flopsIn[type] = addCosts(flopsIn[type], flops);
}

void KernelWork::note(KernelOp kernel, int64_t bytes) const {
  Builder b(kernel.getContext());
  int64_t flops = 0;
  for (int64_t part : flopsOf)
    flops = addCosts(flops, part);
  kernel->setAttr(kFlopsAttrName, b.getI64IntegerAttr(flops));
  kernel->setAttr(kBytesAttrName, b.getI64IntegerAttr(bytes));
  // What only moves data is computed element by element.
  OpClass opClass = OpClass::Elementwise;
  for (size_t other = 0; other < kNumOpClasses; ++other)
    if (flopsOf[other] > flopsOf[size_t(opClass)])
      opClass = OpClass(other);
  if (opClass != OpClass::Elementwise)
    kernel->setAttr(kClassAttrName, b.getStringAttr(stringifyOpClass(opClass)));
  auto most = llvm::max_element(
      flopsIn, [](auto &a, auto &b) { return a.second < b.second; });
  if (most == flopsIn.end() || kernel->getNumResults() == 0 ||
      most->first == getElementTypeOrSelf(kernel->getResult(0)))
    return;
  kernel->setAttr(kComputesInAttrName, TypeAttr::get(most->first));
}

static int64_t countBytes(KernelOp kernel, Operation *op) {
  int64_t read = 0, written = 0;
  llvm::SmallDenseSet<int64_t> updated;
  std::optional<ArrayRef<int64_t>> updates = kernel.getUpdates();
  if (updates)
    updated.insert(updates->begin(), updates->end());
  for (auto [number, input] : llvm::enumerate(kernel.getInputs()))
    if (!updated.contains(int64_t(number)))
      read = addCosts(read, getTensorBytes(input.getType()));
  // Of many pieces each kernel writes those that it reads.
  if (isa<stablehlo::ConcatenateOp>(op))
    return multiplyCosts(2, read);
  for (auto [number, result] : llvm::enumerate(kernel.getResults())) {
    int64_t bytes = getTensorBytes(result.getType());
    if (updates && (*updates)[number] >= 0)
      bytes = multiplyCosts(2, std::min(bytes, read));
    written = addCosts(written, bytes);
  }
  return addCosts(read, written);
}

void whale::noteWork(KernelOp kernel, Operation *op, int64_t flops) {
  KernelWork work;
  work.add(opClassOf(op), getComputedType(op), flops);
  work.note(kernel, countBytes(kernel, op));
}

void whale::noteWork(KernelOp kernel, Operation *op) {
  noteWork(kernel, op, opFlops(op));
}

void whale::noteWork(LibraryCallOp call, Operation *op) {
  Builder b(op->getContext());
  call->setAttr(kFlopsAttrName, b.getI64IntegerAttr(opFlops(op)));
  call->setAttr(kBytesAttrName, b.getI64IntegerAttr(opBytes(op)));
  call->setAttr(kClassAttrName,
                b.getStringAttr(stringifyOpClass(opClassOf(op))));
}
