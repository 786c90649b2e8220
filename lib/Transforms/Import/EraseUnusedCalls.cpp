//===- EraseUnusedCalls.cpp - Calls into Python that nobody needs ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main, into which all is inlined. Out: where it calls into Python,
// without the operations that no result of @main and no effect depends on. As
// in JAX, a call has an effect where `has_side_effect` says so. What a loop
// carries for nobody, and what a branch gives to nobody, becomes zeros. Cost:
// two walks, and a set of the values that are needed.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/StableHLO/IR/CustomCalls.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace whale {
#define GEN_PASS_DEF_ERASEUNUSEDCALLS
#include "whale/Transforms/Import/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;
namespace hlo = mlir::stablehlo;

namespace {

bool hasOwnEffect(Operation *op) {
  auto call = dyn_cast<hlo::CustomCallOp>(op);
  if (call && isPythonCallback(call.getCallTargetName()))
    return call.getHasSideEffect() || call->getNumResults() == 0;
  return !op->hasTrait<OpTrait::IsTerminator>() &&
         !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() &&
         !isMemoryEffectFree(op);
}

/// Whether zeros may stand for a value that nobody needs.
bool hasZeros(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() &&
         tensor.getElementType().isIntOrFloat();
}

Operation *yieldOf(Region &region) { return region.front().getTerminator(); }

/// What @main needs.
class Needs {
public:
  explicit Needs(func::FuncOp main) {
    addOperands(main.front().getTerminator());
    main->walk([&](Operation *op) {
      if (op != main && hasOwnEffect(op))
        add(op);
    });
    while (!waiting.empty())
      follow(waiting.pop_back_val());
  }

  bool contains(Value value) const { return values.contains(value); }
  bool contains(Operation *op) const { return ops.contains(op); }

private:
  void add(Value value) {
    if (values.insert(value).second)
      waiting.push_back(value);
  }

  void addOperands(Operation *op) {
    for (Value operand : op->getOperands())
      add(operand);
  }

  /// An operation with all that it takes, and what decides whether it runs.
  void add(Operation *op) {
    if (isa<func::FuncOp>(op) || !ops.insert(op).second)
      return;
    add(op->getParentOp());
    if (hlo::isControlFlow(op))
      for (Value result : op->getResults())
        if (!hasZeros(result.getType()))
          add(result);
    if (auto loop = dyn_cast<hlo::WhileOp>(op))
      return addOperands(yieldOf(loop.getCond()));
    if (hlo::isBranch(op))
      return add(op->getOperand(0));
    op->walk([&](Operation *inner) { addOperands(inner); });
  }

  void follow(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<hlo::WhileOp>(argument.getOwner()->getParentOp());
      if (loop)
        add(loop->getResult(argument.getArgNumber()));
      return;
    }
    Operation *op = value.getDefiningOp();
    add(op);
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (auto loop = dyn_cast<hlo::WhileOp>(op)) {
      add(loop->getOperand(number));
      add(yieldOf(loop.getBody())->getOperand(number));
    } else if (hlo::isBranch(op)) {
      for (Region &region : op->getRegions())
        add(yieldOf(region)->getOperand(number));
    }
  }

  llvm::DenseSet<Value> values;
  llvm::DenseSet<Operation *> ops;
  SmallVector<Value> waiting;
};

/// An operand that nobody needs becomes zeros.
void setZeros(Operation *op, unsigned number) {
  auto type = cast<RankedTensorType>(op->getOperand(number).getType());
  OpBuilder b(op);
  Attribute zero = b.getZeroAttr(type.getElementType());
  op->setOperand(number,
                 hlo::ConstantOp::create(b, op->getLoc(),
                                         DenseElementsAttr::get(type, zero)));
}

/// Erases what is not needed, from the end on, so that its users are gone.
void eraseIn(Block &block, const Needs &needs) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (!needs.contains(&op)) {
      // Zeros that were put there have users.
      if (op.use_empty())
        op.erase();
      continue;
    }
    if (!hlo::isControlFlow(&op))
      continue;
    auto loop = dyn_cast<hlo::WhileOp>(op);
    for (OpResult result : op.getResults()) {
      unsigned number = result.getResultNumber();
      if (needs.contains(result))
        continue;
      if (loop) {
        setZeros(loop, number);
        yieldOf(loop.getBody())
            ->setOperand(number, loop.getBody().getArgument(number));
        continue;
      }
      for (Region &region : op.getRegions())
        setZeros(yieldOf(region), number);
    }
    for (Region &region : op.getRegions())
      eraseIn(region.front(), needs);
  }
}

class EraseUnusedCalls
    : public whale::impl::EraseUnusedCallsBase<EraseUnusedCalls> {
  using EraseUnusedCallsBase::EraseUnusedCallsBase;

  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main)
      return;
    WalkResult found = main.walk([](hlo::CustomCallOp call) {
      return isPythonCallback(call.getCallTargetName())
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (found.wasInterrupted())
      eraseIn(main.front(), Needs(main));
  }
};

} // namespace
