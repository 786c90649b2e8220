//===- ScalarLoops.cpp - Loops of scalars as kernels ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a loop that carries scalars alone and computes them by elementwise
// operations, as series and continued fractions of special functions are. Out:
// a kernel that runs its turns, in registers. As a kernel cannot be interrupted
// it ends after kTurns of them: the loop stays behind it, and goes on with what
// is left, unless it is known to have no more turns.
//
// Cost: to compile, the bodies of condition and loop once more; in a run, where
// a loop stays, its condition once more.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "Kernel/KernelWork.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;
using namespace whale;

/// Turns that a kernel runs at most, and operations of one.
static constexpr int64_t kTurns = 4096, kMostBodyOperations = 256;

/// Whether a value is a scalar that a kernel keeps in a register.
static bool isScalar(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() != 0)
    return false;
  Type element = type.getElementType();
  return element.isF32() || element.isF64() || element.isInteger(1) ||
         element.isInteger(32) || element.isInteger(64);
}

static bool isSplatConstant(Value value) {
  DenseElementsAttr constant;
  return matchPattern(value, m_Constant(&constant)) && constant.isSplat();
}

/// Of a loop that carries scalars, whether these are all that it computes.
static bool isScalarLoop(stablehlo::WhileOp loop) {
  int64_t operations = 0;
  for (Region *region : {&loop.getCond(), &loop.getBody()})
    for (Operation &op : region->front().without_terminator()) {
      bool isKnown = isa<stablehlo::ConstantOp>(op)
                         ? isSplatConstant(op.getResult(0))
                         : isElementwise(&op);
      if (!isKnown || !llvm::all_of(op.getResults(), isScalar) ||
          !llvm::all_of(op.getOperands(), isScalar) ||
          ++operations > kMostBodyOperations)
        return false;
    }
  return true;
}

/// Pattern: reduce(x, init) over no dimensions -> body(init, x). JAX asks so
/// whether any of some elements goes on, of which there is one here.
static void inlineReductions(PatternRewriter &rewriter,
                             stablehlo::WhileOp loop) {
  SmallVector<stablehlo::ReduceOp> found;
  loop.walk([&](stablehlo::ReduceOp op) {
    if (op.getDimensions().empty() && llvm::all_of(op.getOperands(), isScalar))
      found.push_back(op);
  });
  for (stablehlo::ReduceOp op : found) {
    Block &body = op.getBody().front();
    SmallVector<Value> arguments(op.getInitValues());
    llvm::append_range(arguments, op.getInputs());
    IRMapping mapping;
    mapping.map(body.getArguments(), arguments);
    rewriter.setInsertionPoint(op);
    for (Operation &inner : body.without_terminator())
      rewriter.clone(inner, mapping);
    SmallVector<Value> results;
    for (Value value : body.getTerminator()->getOperands())
      results.push_back(mapping.lookupOrDefault(value));
    rewriter.replaceOp(op, results);
  }
}

/// The turns, from the carried values to those behind the last one.
static LogicalResult emitTurns(KernelBuilder &k, stablehlo::WhileOp loop,
                               const IRMapping &captured) {
  unsigned count = loop->getNumOperands();
  SmallVector<Value> first;
  for (unsigned i = 0; i < count; ++i)
    first.push_back(k.loadScalar(i, {}, loop->getOperand(i).getType()));
  first.push_back(k.index(0));
  bool good = true;
  auto emit = [&](OpBuilder &b, Region &region, ValueRange arguments) {
    FailureOr<SmallVector<Value>> results = emitScalarBlock(
        b, region.front(), arguments.take_front(count), &captured);
    good &= succeeded(results);
    return good ? *results : SmallVector<Value>(arguments);
  };
  auto turns = scf::WhileOp::create(
      k.b, k.loc, ValueRange(first).getTypes(), first,
      [&](OpBuilder &b, Location loc, ValueRange arguments) {
        Value goesOn = emit(b, loop.getCond(), arguments).front();
        Value hasTurns = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::ult, arguments.back(),
            constantIndex(b, loc, kTurns));
        scf::ConditionOp::create(
            b, loc, arith::AndIOp::create(b, loc, goesOn, hasTurns), arguments);
      },
      [&](OpBuilder &b, Location loc, ValueRange arguments) {
        SmallVector<Value> next = emit(b, loop.getBody(), arguments);
        next.resize(count);
        next.push_back(arith::AddIOp::create(b, loc, arguments.back(),
                                             constantIndex(b, loc, 1)));
        scf::YieldOp::create(b, loc, next);
      });
  unsigned output = k.buffers.size() - count;
  for (unsigned i = 0; i < count; ++i)
    k.store(turns.getResult(i), output + i, {});
  return success(good);
}

/// Puts the kernel before the loop.
static void lowerLoop(PatternRewriter &rewriter, stablehlo::WhileOp loop) {
  rewriter.setInsertionPoint(loop);
  SetVector<Value> outside;
  for (Region *region : {&loop.getCond(), &loop.getBody()})
    for (Value value : getCaptures(*region))
      if (!isSplatConstant(value))
        outside.insert(value);
  if (!llvm::all_of(outside, isScalar))
    return;
  SmallVector<Value> inputs;
  SmallVector<Type> types;
  for (Value init : loop->getOperands()) {
    inputs.push_back(stored(rewriter, init));
    types.push_back(inputs.back().getType());
  }
  for (Value value : outside)
    inputs.push_back(stored(rewriter, value));
  std::optional<CountedLoop> counted = countedLoop(loop);
  auto kernel = makeKernel(
      rewriter, loop.getLoc(), /*blocks=*/false, types, inputs,
      [&](KernelBuilder &k) {
        IRMapping captured;
        unsigned buffer = loop->getNumOperands();
        for (Value value : outside)
          captured.map(value, k.loadScalar(buffer++, {}, value.getType()));
        return emitTurns(k, loop, captured);
      });
  if (failed(kernel))
    return;
  // One that goes on after so many turns is computed as often as needed.
  bool isWhole = counted && counted->trips <= kTurns;
  noteWork(*kernel, loop, isWhole ? opFlops(loop) : kTurns);
  SmallVector<Value> results;
  for (auto [value, type] :
       llvm::zip_equal(kernel->getResults(), loop->getResultTypes()))
    results.push_back(value.getType() == type
                          ? value
                          : UnrealizedConversionCastOp::create(
                                rewriter, loop.getLoc(), type, value)
                                .getResult(0));
  if (isWhole)
    rewriter.replaceOp(loop, results);
  else
    rewriter.modifyOpInPlace(loop, [&] { loop->setOperands(results); });
}

void whale::lowerScalarLoops(PatternRewriter &rewriter, Operation *root) {
  SmallVector<stablehlo::WhileOp> loops;
  root->walk([&](stablehlo::WhileOp loop) {
    if (llvm::all_of(loop->getOperands(), isScalar))
      loops.push_back(loop);
  });
  for (stablehlo::WhileOp loop : loops) {
    inlineReductions(rewriter, loop);
    if (isScalarLoop(loop))
      lowerLoop(rewriter, loop);
  }
}
