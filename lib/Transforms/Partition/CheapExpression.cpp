//===- CheapExpression.cpp - What kernels compute instead of reading ------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheapExpression.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// What takes more arithmetic than this is kept, as whale-fuse-kernels would.
static constexpr unsigned kMaxArithmetic = 4;
/// Operations to look at. Those that move elements are no arithmetic, so there
/// may be any number of them.
static constexpr unsigned kMaxSteps = 256;
/// An operand of at most this part of the result's size is small.
static constexpr int64_t kFarSmaller = 16;

static bool movesElements(Operation *op) {
  return isa<hlo::BroadcastInDimOp, hlo::TransposeOp>(op);
}

/// Whether the operation is a loop that gives one element at a time.
static bool isParallel(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() || movesElements(op) ||
         isa<hlo::SelectOp, hlo::ClampOp, hlo::IotaOp>(op);
}

bool becomesLoop(Operation *op) {
  return isParallel(op) || isa<hlo::ReduceOp>(op);
}

/// How much arithmetic it is for an element; nothing if too much.
static std::optional<unsigned> getArithmetic(Operation *op) {
  if (movesElements(op))
    return 0;
  // A number and its conversion.
  if (isa<hlo::IotaOp>(op))
    return 2;
  if (isa<hlo::AddOp, hlo::SubtractOp, hlo::MulOp, hlo::NegOp, hlo::AbsOp,
          hlo::MaxOp, hlo::MinOp, hlo::AndOp, hlo::OrOp, hlo::NotOp, hlo::XorOp,
          hlo::CompareOp, hlo::ConvertOp, hlo::SelectOp>(op))
    return 1;
  return std::nullopt;
}

static bool isTransposedProduct(Operation *op) {
  return isa<hlo::TransposeOp>(op) &&
         op->getOperand(0).getDefiningOp<hlo::DotGeneralOp>();
}

std::optional<CheapExpression> CheapExpression::find(Value value) {
  unsigned steps = 0;
  return find(value, steps);
}

std::optional<CheapExpression> CheapExpression::find(Value value,
                                                     unsigned &steps) {
  Operation *op = value.getDefiningOp();
  CheapExpression expression;
  if (!isParallel(op) || isTransposedProduct(op) || !expression.add(op, steps))
    return std::nullopt;
  int64_t size = cast<ShapedType>(value.getType()).getNumElements();
  auto isLarge = [&](Value leaf) {
    return cast<ShapedType>(leaf.getType()).getNumElements() * kFarSmaller >
           size;
  };
  if (llvm::count_if(expression.leaves, isLarge) > 1)
    return std::nullopt;
  return expression;
}

/// Adds an operation and what is taken in with it. `steps` counts the
/// operations looked at, for the expressions that this one asks for, too.
bool CheapExpression::add(Operation *op, unsigned &steps) {
  std::optional<unsigned> own = getArithmetic(op);
  if (!own || (arithmetic += *own) > kMaxArithmetic || ++steps > kMaxSteps)
    return false;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (producer && producer->hasTrait<OpTrait::ConstantLike>()) {
      ops.insert(producer);
    } else if (producer && producer->getBlock() == op->getBlock() &&
               isTakenIn(producer, steps)) {
      if (!ops.contains(producer) && !add(producer, steps))
        return false;
    } else {
      leaves.insert(operand);
    }
  }
  ops.insert(op);
  return true;
}

/// Whether what makes an operand is a part of the same loop.
bool CheapExpression::isTakenIn(Operation *producer, unsigned &steps) {
  // A product can be written transposed.
  if (!isParallel(producer) || isTransposedProduct(producer))
    return false;
  return llvm::all_equal(producer->getUsers()) ||
         find(producer->getResult(0), steps);
}

} // namespace whale
