//===- SinkCheapValues.cpp - Compute again instead of keep ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SinkCheapValues.h"

#include "mlir/IR/IRMapping.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "llvm/ADT/SetVector.h"

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

/// Whether the operation becomes a loop that can take in what makes its
/// operands.
static bool isLoop(Operation *op) {
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

namespace {

/// What one loop computes for a value, from others that are stored.
class Expression {
public:
  /// Nothing if it is more than what is cheap: little arithmetic on one value
  /// of the size of the result, and others that are far smaller.
  static std::optional<Expression> findCheap(Value value) {
    unsigned steps = 0;
    return findCheap(value, steps);
  }

  /// Each after those that it needs.
  llvm::SetVector<Operation *> ops;

private:
  static std::optional<Expression> findCheap(Value value, unsigned &steps) {
    Operation *op = value.getDefiningOp();
    Expression expression;
    if (!isParallel(op) || isTransposedProduct(op) ||
        !expression.add(op, steps))
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

  /// `steps` counts the operations looked at, for the expressions that this
  /// one asks for, too.
  bool add(Operation *op, unsigned &steps) {
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
  static bool isTakenIn(Operation *producer, unsigned &steps) {
    // A product can be written transposed.
    if (!isParallel(producer) || isTransposedProduct(producer))
      return false;
    return llvm::all_equal(producer->getUsers()) ||
           findCheap(producer->getResult(0), steps);
  }

  static bool isTransposedProduct(Operation *op) {
    return isa<hlo::TransposeOp>(op) &&
           op->getOperand(0).getDefiningOp<hlo::DotGeneralOp>();
  }

  llvm::SetVector<Value> leaves;
  unsigned arithmetic = 0;
};

class Sinker {
public:
  explicit Sinker(SmallVectorImpl<Operation *> &ops)
      : ops(ops), block(ops.front()->getBlock()),
        members(ops.begin(), ops.end()) {}

  void run() {
    llvm::SetVector<Value> inputs;
    for (Operation *op : ops)
      forEachRead(op, [&](Value value) {
        if (isBefore(value))
          inputs.insert(value);
      });
    SmallVector<Operation *> copies;
    for (Value input : inputs)
      sink(input, copies);
    ops.insert(ops.begin(), copies.begin(), copies.end());
  }

private:
  bool isBefore(Value value) const {
    Operation *producer = value.getDefiningOp();
    return producer && producer->getBlock() == block &&
           !members.contains(producer);
  }

  /// Copies what makes `value` if it is cheap and all that uses it here are
  /// loops.
  void sink(Value value, SmallVectorImpl<Operation *> &copies) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : value.getUses())
      if (members.contains(block->findAncestorOpInBlock(*use.getOwner()))) {
        if (!isLoop(use.getOwner()) || use.getOwner()->getBlock() != block)
          return;
        uses.push_back(&use);
      }
    std::optional<Expression> expression = Expression::findCheap(value);
    if (!expression)
      return;
    OpBuilder builder(ops.front());
    IRMapping mapping;
    for (Operation *op : expression->ops)
      copies.push_back(builder.clone(*op, mapping));
    for (OpOperand *use : uses)
      use->set(mapping.lookup(value));
  }

  SmallVectorImpl<Operation *> &ops;
  Block *block;
  llvm::SmallPtrSet<Operation *, 32> members;
};

} // namespace

void sinkCheapValues(SmallVectorImpl<Operation *> &ops) { Sinker(ops).run(); }

} // namespace whale
