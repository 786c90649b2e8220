//===- NestWork.cpp - How much a loop nest does ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a nest. Out: its FLOPs and bytes, the class of operations that it counts
// as, and the type of most of what its body computes. What is fused into a sum
// is part of the reduction; a sum of products of inputs of which each is read
// again along the other's loops is a contraction. Cost: linear in the body, but
// that of a sum the inputs are looked for once for each loop.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "Kernel/KernelWork.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "whale/Step/Costs.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace whale;

static bool isArithmetic(Operation *op) {
  return isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
             op->getDialect()) &&
         !isa<arith::ConstantOp>(op);
}

int64_t LoopNest::countIterations() const {
  int64_t iterations = 1;
  for (int64_t size : sizes)
    iterations = multiplyCosts(iterations, size);
  return iterations;
}

int64_t LoopNest::countFlops() {
  int64_t operations = 0;
  op.getRegion().walk([&](Operation *inner) {
    if (isArithmetic(inner))
      ++operations;
  });
  return multiplyCosts(operations, countIterations());
}

/// The type of most operations of a body, or null.
static Type findComputedType(Region &body) {
  llvm::MapVector<Type, int64_t> counts;
  body.walk([&](Operation *op) {
    if (!isArithmetic(op) || isa<CastOpInterface>(op))
      return;
    // The first operand of a choice is the condition.
    Type type = op->getOperands().back().getType();
    if (type.isIntOrFloat() && !type.isInteger(1))
      ++counts[type];
  });
  auto most = llvm::max_element(
      counts, [](auto &a, auto &b) { return a.second < b.second; });
  return most == counts.end() ? Type() : most->first;
}

/// The loops that the inputs depend on which `value` is made from.
static llvm::SmallBitVector findLoops(linalg::GenericOp op, Value value) {
  llvm::SmallBitVector loops(op.getNumLoops());
  Block &body = op.getRegion().front();
  SmallVector<Value> values = {value};
  llvm::SmallDenseSet<Value> seen;
  while (!values.empty()) {
    Value next = values.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (Operation *producer = next.getDefiningOp())
      llvm::append_range(values, producer->getOperands());
    auto argument = dyn_cast<BlockArgument>(next);
    if (!argument || argument.getOwner() != &body)
      continue;
    AffineMap map =
        op.getMatchingIndexingMap(&op->getOpOperand(argument.getArgNumber()));
    for (unsigned loop = 0; loop < loops.size(); ++loop)
      if (map.isFunctionOfDim(loop))
        loops.set(loop);
  }
  return loops;
}

/// Whether result `number` is a sum of products of two inputs each of which
/// lacks a loop of the other.
static bool isContraction(linalg::GenericOp op, unsigned number) {
  Operation *sum = LoopNest::findCombiner(op, number);
  if (!sum || !isa<arith::AddFOp, arith::AddIOp, complex::AddOp>(sum))
    return false;
  for (Value term : sum->getOperands()) {
    Operation *product = term.getDefiningOp();
    while (isa_and_nonnull<CastOpInterface>(product))
      product = product->getOperand(0).getDefiningOp();
    if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp, complex::MulOp>(product))
      continue;
    llvm::SmallBitVector lhs = findLoops(op, product->getOperand(0)),
                         rhs = findLoops(op, product->getOperand(1));
    return lhs.test(rhs) && rhs.test(lhs);
  }
  return false;
}

void LoopNest::addWork(KernelWork &work) {
  OpClass opClass = OpClass::Elementwise;
  for (unsigned number = 0; number < op.getNumResults(); ++number)
    if (isAccumulated(number))
      opClass =
          isContraction(op, number) ? OpClass::Matmul : OpClass::Reduction;
  work.add(opClass, findComputedType(op.getRegion()), countFlops());
}

/// Of a tensor of which a nest reads a slice, no more than that.
int64_t LoopNest::countBytes(Type type) const {
  MemRefType buffer = getBufferType(type);
  return std::min(buffer.getNumElements(), countIterations()) *
         getStoredBits(buffer.getElementType()) / 8;
}

void LoopNest::countCosts(KernelOp kernel) {
  int64_t bytes = 0;
  for (Type type : op->getResultTypes())
    bytes += countBytes(type);
  for (Value input : inputs)
    if (llvm::none_of(stores, [&](stablehlo::DynamicUpdateSliceOp store) {
          return store && store.getOperand() == input;
        }))
      bytes += countBytes(input.getType());
  KernelWork work;
  addWork(work);
  work.note(kernel, bytes);
}
