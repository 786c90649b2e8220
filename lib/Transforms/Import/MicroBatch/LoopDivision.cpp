//===- LoopDivision.cpp - A loop in two, one after the other --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a loop that counts its rounds from 0, and operations of its body. Out:
// the loop without them and what depends on them, and a loop with these behind
// it. Cost: a walk over the body for each carried value that depends on
// another, a copy of the body, and memory for what crosses in each round.
//
//===----------------------------------------------------------------------===//

#include "LoopDivision.h"

#include "../CarryAttributes.h"
#include "../LoopStacks.h"
#include "mlir/IR/IRMapping.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
namespace {

class LoopDivision {
public:
  LoopDivision(hlo::WhileOp loop, const SetVector<Operation *> &seeds)
      : loop(loop), body(loop.getBody().front()), cond(loop.getCond().front()),
        late(seeds.begin(), seeds.end()), isLate(body.getNumArguments()) {}

  bool find(function_ref<bool(Value)> mayKeep) {
    std::optional<CountedLoop> found = countedLoop(loop);
    if (!found || found->start != 0 || found->step != 1)
      return false;
    counted = *found;
    findLate();
    for (auto [argument, isLate] : llvm::zip_equal(cond.getArguments(), isLate))
      if (isLate && !argument.use_empty())
        return false;
    return !isLate[counted.counter] && findKept(mayKeep);
  }

  hlo::WhileOp divide() {
    hlo::WhileOp first = makeFirst();
    hlo::WhileOp second = makeSecond(first);
    unsigned early = 0, behind = 1;
    for (auto [result, isLate] : llvm::zip_equal(loop.getResults(), isLate))
      result.replaceAllUsesWith(isLate ? second->getResult(behind++)
                                       : first->getResult(early++));
    loop.erase();
    return second;
  }

private:
  Operation *getTerminator() { return body.getTerminator(); }

  bool isReadLate(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument.getOwner() == &body && isLate[argument.getArgNumber()];
    return late.contains(value.getDefiningOp());
  }

  /// All that depends on what is late, round after round.
  void findLate() {
    bool changes = true;
    while (changes) {
      changes = false;
      for (Operation &op : body.without_terminator())
        if (!late.contains(&op) &&
            llvm::any_of(getReads(&op), [&](Value v) { return isReadLate(v); }))
          late.insert(&op);
      for (auto [i, value] : llvm::enumerate(getTerminator()->getOperands()))
        if (!isLate[i] && isReadLate(value))
          changes = isLate[i] = true;
    }
  }

  bool isOfBody(Value value) {
    return value.getParentRegion() == body.getParent();
  }

  /// Whether a value of the body depends on the number of the round alone, as
  /// an index. What computes it is added to `again`.
  bool isCounted(Value value) {
    SetVector<Value> values;
    SmallVector<Operation *> ops;
    values.insert(value);
    for (unsigned i = 0; i < values.size(); ++i) {
      Value next = values[i];
      if (!isOfBody(next) || next == body.getArgument(counted.counter))
        continue;
      Operation *op = next.getDefiningOp();
      bool isCheap = op && op->getNumRegions() == 0 &&
                     (op->hasTrait<OpTrait::ConstantLike>() ||
                      cast<ShapedType>(next.getType()).getRank() == 0);
      if (!isCheap)
        return false;
      ops.push_back(op);
      values.insert_range(op->getOperands());
    }
    again.insert(ops.begin(), ops.end());
    return true;
  }

  /// What the second loop reads of the first, in the order of the body.
  bool findKept(function_ref<bool(Value)> mayKeep) {
    for (Operation &op : body.without_terminator()) {
      if (!late.contains(&op))
        continue;
      for (Value value : getReads(&op)) {
        if (isReadLate(value) || isCounted(value))
          continue;
        if (!mayKeep(value))
          return false;
        if (isOfBody(value))
          kept.insert(value);
      }
    }
    return true;
  }

  Value constant(OpBuilder &builder, RankedTensorType type, Attribute value) {
    Operation *op = hlo::ConstantOp::create(
        builder, loop.getLoc(), DenseElementsAttr::get(type, value));
    carryAttributes(loop, op);
    return op->getResult(0);
  }

  /// The loop with all that does not wait, and the stacks as last results.
  hlo::WhileOp makeFirst() {
    OpBuilder builder(loop);
    SmallVector<Value> operands;
    for (auto [operand, isLate] : llvm::zip_equal(loop->getOperands(), isLate))
      if (!isLate)
        operands.push_back(operand);
    for (Value value : kept) {
      RankedTensorType type = getStackType(counted.trips, value.getType());
      operands.push_back(
          constant(builder, type, builder.getZeroAttr(type.getElementType())));
    }
    hlo::WhileOp first = makeLoop(builder, operands);
    IRMapping inCond, inBody;
    Block &newCond = first.getCond().front(),
          &newBody = first.getBody().front();
    mapArguments(newCond, cond, inCond);
    mapArguments(newBody, body, inBody);
    builder.setInsertionPointToStart(&newCond);
    for (Operation &op : cond)
      builder.clone(op, inCond);
    builder.setInsertionPointToStart(&newBody);
    for (Operation &op : body.without_terminator())
      if (!late.contains(&op))
        builder.clone(op, inBody);
    SmallVector<Value> next;
    for (auto [value, isLate] :
         llvm::zip_equal(getTerminator()->getOperands(), isLate))
      if (!isLate)
        next.push_back(inBody.lookupOrDefault(value));
    ValueRange stacks = newBody.getArguments().take_back(kept.size());
    Value round = inBody.lookup(body.getArgument(counted.counter));
    for (auto [value, stack] : llvm::zip_equal(kept, stacks))
      next.push_back(storeRow(builder, value.getLoc(), loop,
                              inBody.lookup(value), stack, round));
    hlo::ReturnOp::create(builder, loop.getLoc(), next);
    return first;
  }

  Value load(OpBuilder &builder, Value stack, Value value, Value round) {
    auto type = cast<RankedTensorType>(value.getType());
    RankedTensorType rowType = getStackType(1, type);
    Operation *row = hlo::DynamicSliceOp::create(
        builder, value.getLoc(), rowType, stack,
        getRowStarts(builder, value.getLoc(), loop, round, stack),
        builder.getDenseI64ArrayAttr(rowType.getShape()));
    Operation *flat = hlo::ReshapeOp::create(builder, value.getLoc(), type,
                                             row->getResult(0));
    for (Operation *made : {row, flat})
      carryAttributes(loop, made);
    return flat->getResult(0);
  }

  /// The loop with what waits: its own counter, and what it carries.
  hlo::WhileOp makeSecond(hlo::WhileOp first) {
    OpBuilder builder(loop);
    SmallVector<Value> operands{loop->getOperand(counted.counter)};
    for (auto [operand, isLate] : llvm::zip_equal(loop->getOperands(), isLate))
      if (isLate)
        operands.push_back(operand);
    hlo::WhileOp second = makeLoop(builder, operands);
    Block &newCond = second.getCond().front();
    Block &newBody = second.getBody().front();
    auto type = cast<RankedTensorType>(operands.front().getType());
    auto number = [&](int64_t value) {
      return constant(builder, type,
                      builder.getIntegerAttr(type.getElementType(), value));
    };
    builder.setInsertionPointToStart(&newCond);
    Operation *goesOn = hlo::CompareOp::create(
        builder, loop.getLoc(), newCond.getArgument(0), number(counted.trips),
        hlo::ComparisonDirection::LT);
    carryAttributes(loop, goesOn);
    hlo::ReturnOp::create(builder, loop.getLoc(), goesOn->getResults());

    builder.setInsertionPointToStart(&newBody);
    Value round = newBody.getArgument(0);
    IRMapping map;
    map.map(body.getArgument(counted.counter), round);
    unsigned next = 1;
    for (auto [argument, isLate] : llvm::zip_equal(body.getArguments(), isLate))
      if (isLate)
        map.map(argument, newBody.getArgument(next++));
    ValueRange stacks = first.getResults().take_back(kept.size());
    for (auto [value, stack] : llvm::zip_equal(kept, stacks))
      map.map(value, load(builder, stack, value, round));
    for (Operation &op : body.without_terminator())
      if (late.contains(&op) || again.contains(&op))
        builder.clone(op, map);
    Operation *after =
        hlo::AddOp::create(builder, loop.getLoc(), round, number(1));
    carryAttributes(loop, after);
    SmallVector<Value> yields{after->getResult(0)};
    for (auto [value, isLate] :
         llvm::zip_equal(getTerminator()->getOperands(), isLate))
      if (isLate)
        yields.push_back(map.lookup(value));
    hlo::ReturnOp::create(builder, loop.getLoc(), yields);
    return second;
  }

  hlo::WhileOp makeLoop(OpBuilder &builder, ValueRange operands) {
    auto made = hlo::WhileOp::create(
        builder, loop.getLoc(), operands.getTypes(), operands,
        loop->getDiscardableAttrDictionary().getValue());
    SmallVector<Location> locations(operands.size(), loop.getLoc());
    for (Region *region : {&made.getCond(), &made.getBody()})
      region->emplaceBlock().addArguments(operands.getTypes(), locations);
    return made;
  }

  void mapArguments(Block &to, Block &from, IRMapping &map) {
    unsigned next = 0;
    for (auto [argument, isLate] : llvm::zip_equal(from.getArguments(), isLate))
      if (!isLate)
        map.map(argument, to.getArgument(next++));
  }

  hlo::WhileOp loop;
  Block &body, &cond;
  CountedLoop counted;
  llvm::DenseSet<Operation *> late;
  SmallVector<bool> isLate;
  SetVector<Value> kept;
  /// Of the rest, what the second loop computes, too.
  llvm::DenseSet<Operation *> again;
};

} // namespace

hlo::WhileOp divideLoop(hlo::WhileOp loop, const SetVector<Operation *> &seeds,
                        function_ref<bool(Value)> mayKeep) {
  LoopDivision division(loop, seeds);
  return division.find(mayKeep) ? division.divide() : nullptr;
}

} // namespace whale
