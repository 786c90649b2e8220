//===- RankClassBuilder.cpp - The schedule of a rank class ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main with resolved reshards, and the ranks of a class. Out: the class's
// schedule and its segments.
//
// Visits the operations of @main in order. An operation outside of
// micro-batches, and each collective, goes into the schedule; what a
// micro-batch computes between two collectives goes into the segment that is
// open, and what that lacks becomes its input. A reshard becomes one collective
// for each step of its resolution in which this device takes part. What a
// micro-batch receives is received when it is first used. RankClassLoops.cpp
// has the loops. Cost: linear in the operations that are written. At last
// pieces of arguments are moved to their first use: each that has several users
// numbers the schedule's operations anew, which is quadratic.
//
//===----------------------------------------------------------------------===//

#include "RankClassBuilder.h"

#include "mlir/IR/Matchers.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Placement/Resolver.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

FailureOr<RankClassCode> RankClassBuilder::build(StringRef name) {
  SmallVector<Type> inputs, outputs;
  Operation *terminator = main.front().getTerminator();
  for (BlockArgument argument : main.getArguments())
    inputs.push_back(getLocalTypeOrAbsent(argument));
  for (Value result : terminator->getOperands())
    outputs.push_back(getLocalTypeOrAbsent(result));
  schedule = ScheduleOp::create(builder, main.getLoc(), name,
                                builder.getFunctionType(inputs, outputs), ranks,
                                /*arg_attrs=*/{}, /*res_attrs=*/{});
  Block *entry = schedule.addEntryBlock();
  SmallVector<DictionaryAttr> attributes;
  for (auto [argument, local] :
       llvm::zip(main.getArguments(), entry->getArguments())) {
    local.setLoc(argument.getLoc());
    NamedAttrList all(main.getArgAttrDict(argument.getArgNumber()));
    all.set(globalTypeAttrName, TypeAttr::get(argument.getType()));
    attributes.push_back(all.getDictionary(main.getContext()));
    if (holds(argument))
      map(argument, local);
  }
  schedule.setAllArgAttrs(attributes);
  builder.setInsertionPointToStart(entry);
  if (failed(visitBlock(main.front())))
    return failure();

  SmallVector<Value> results;
  attributes.clear();
  for (auto [index, result] : llvm::enumerate(terminator->getOperands())) {
    NamedAttrList all(main.getResultAttrDict(index));
    all.set(globalTypeAttrName, TypeAttr::get(result.getType()));
    all.set(placementAttrName, getPlacement(result));
    attributes.push_back(all.getDictionary(main.getContext()));
    results.push_back(holds(result) ? lookup(result)
                                    : emitAbsent(outputs[index]));
  }
  schedule.setAllResultAttrs(attributes);
  ReturnOp::create(builder, terminator->getLoc(), results);
  pruneSegments(segments);
  cutLate(*entry);
  return RankClassCode{schedule, std::move(segments)};
}

/// Whether the elements of the slice are side by side, and where they begin.
static std::optional<int64_t> findContiguous(hlo::SliceOp slice) {
  auto type = cast<RankedTensorType>(slice.getOperand().getType());
  auto part = cast<RankedTensorType>(slice.getType());
  if (part.getNumElements() == 0)
    return std::nullopt;
  int64_t offset = 0;
  bool isWhole = true; // the dimensions behind
  for (int64_t dim = type.getRank() - 1, stride = 1; dim >= 0; --dim) {
    int64_t size = part.getDimSize(dim);
    if (size > 1 && (!isWhole || slice.getStrides()[dim] != 1))
      return std::nullopt;
    isWhole &= size == type.getDimSize(dim);
    offset += slice.getStartIndices()[dim] * stride;
    stride *= type.getDimSize(dim);
  }
  return offset;
}

/// Arguments are there all the time, so their pieces, as those that each
/// micro-batch takes, are cut where they are first used; no elements move where
/// a piece is a part of its argument's memory.
void RankClassBuilder::cutLate(Block &block) {
  auto slices = llvm::to_vector(block.getOps<hlo::SliceOp>());
  for (hlo::SliceOp slice : llvm::reverse(slices)) {
    if (!isa<BlockArgument>(slice.getOperand()))
      continue;
    Operation *first = nullptr;
    for (Operation *user : slice->getUsers()) {
      Operation *ancestor = block.findAncestorOpInBlock(*user);
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
    }
    if (first)
      slice->moveBefore(first);
    bool isCalled =
        llvm::any_of(slice->getUsers(), llvm::IsaPred<func::CallOp>);
    std::optional<int64_t> offset = findContiguous(slice);
    if (offset && isCalled) {
      OpBuilder builder(slice);
      auto view = ViewOp::create(builder, slice.getLoc(), slice.getType(),
                                 slice.getOperand(),
                                 builder.getI64IntegerAttr(*offset));
      slice.replaceAllUsesWith(view.getResult());
      slice.erase();
    }
  }
}

Value RankClassBuilder::emitAbsent(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return hlo::ConstantOp::create(
      builder, main.getLoc(),
      DenseElementsAttr::get(tensor, ArrayRef<Attribute>()));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The value in the schedule.
Value RankClassBuilder::get(Value value) const {
  if (moment)
    if (Value local = moment->lookup(value))
      return local;
  return values.lookup(value);
}

/// The constant that the value is in the schedule, of which segments make
/// copies; null if it is none. A moment's own piece is an input even where it
/// is a constant, under whatever name the turn knows it.
Operation *RankClassBuilder::getConstant(Value value) const {
  Value local = get(value);
  if (!local || (loop && loop->pieces.contains(local)))
    return nullptr;
  return local.getDefiningOp<hlo::ConstantOp>();
}

/// What there is of a value, as turns record it.
Attribute RankClassBuilder::getState(Value value) const {
  if (!get(value))
    return {};
  if (Operation *constant = getConstant(value))
    return cast<hlo::ConstantOp>(constant).getValue();
  return builder.getUnitAttr();
}

/// The value in the schedule, which the turn that is written depends on.
Value RankClassBuilder::find(Value value) {
  if (turn && !made.contains(value) && !turn->seen.contains(value))
    turn->seen.insert({value, getState(value)});
  return get(value);
}

/// The value where operations are written now.
Value RankClassBuilder::lookup(Value value) {
  if (!open)
    return find(value);
  if (Value local = open->lookup(value))
    return local;
  Value local = find(value);
  if (!local)
    return {};
  if (Operation *constant = getConstant(value)) {
    Value copy = builder.clone(*constant)->getResult(0);
    open->bind(value, copy);
    return copy;
  }
  return open->addInput({.value = value}, local.getType());
}

void RankClassBuilder::map(Value value, Value local) {
  if (open) {
    open->map(value, local);
    return;
  }
  (moment ? *moment : values)[value] = local;
  if (turn)
    made.insert(value);
}

Value RankClassBuilder::getOperand(OpOperand &operand) {
  if (Value local = lookup(operand.get()))
    return local;
  // Task graphs of a moment return constants that nothing in them has used.
  Value source = lookThroughTaskGraph(operand.get()), local;
  if (isLate(source.getDefiningOp())) {
    if (failed(visitHere(source.getDefiningOp())))
      return {};
    local = lookup(source);
    if (local && source != operand.get())
      map(operand.get(), local);
  }
  if (!local)
    operand.getOwner()->emitError("operand #")
        << operand.getOperandNumber() << " is not placed on device " << device;
  return local;
}

/// What another stage sends to a micro-batch is received when it is first
/// needed, and constants belong to no stage.
bool RankClassBuilder::isLate(Operation *producer) const {
  return moment && producer &&
         (isa<ReshardOp>(producer) ||
          producer->hasTrait<OpTrait::ConstantLike>());
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult RankClassBuilder::visit(Operation *op) {
  if (auto graph = dyn_cast<TaskGraphOp>(op))
    return visitTaskGraph(graph);
  if (auto micro = dyn_cast<MicroBatchesOp>(op))
    return visitMicroBatches(micro);
  if (isNested || !moment)
    return visitHere(op);
  if (op->getNumResults() != 0 && !holds(op->getResult(0)) && !isSent(op))
    return visitHere(op);
  if (!communicates(op)) {
    if (failed(visitInSegment(op)))
      return failure();
    if (loop->cuts.contains(op)) {
      reduce(*loop, momentNumber);
      closeSegment();
    }
    return success();
  }
  // Collectives are part of the schedule.
  closeSegment();
  if (turn)
    turn->parts.push_back({.op = op});
  if (failed(visitLateReads(op)) || failed(visitHere(op)))
    return failure();
  // What is reduced here is added at once; turns that are repeated know it.
  if (turn && isa<ReshardOp>(op) &&
      llvm::any_of(op->getUsers(),
                   [](Operation *user) { return isa<YieldOp>(user); }))
    reduce(*loop, momentNumber);
  return success();
}

/// Visits the operation where operations are written now.
LogicalResult RankClassBuilder::visitHere(Operation *op) {
  if (auto reshard = dyn_cast<ReshardOp>(op))
    return visitReshard(reshard);
  bool around = std::exchange(isNested, true);
  LogicalResult result = BlockLocalizer::visit(op);
  isNested = around;
  return result;
}

/// Receives what the operation reads, before the segment that uses it.
LogicalResult RankClassBuilder::receiveReads(Operation *op) {
  for (Value value : getReads(op)) {
    auto reshard = value.getDefiningOp<ReshardOp>();
    if (!reshard || !holds(value) || find(value) ||
        (open && open->contains(value)))
      continue;
    if (failed(visit(reshard)))
      return failure();
  }
  return success();
}

LogicalResult RankClassBuilder::visitInSegment(Operation *op) {
  // A segment doesn't begin with a few loops that belong to what is computed
  // from something received.
  for (Operation *next = op; !open && next && next->getNumResults() != 0;
       next = next->getNextNode()) {
    if (holds(next->getResult(0)) && failed(receiveReads(next)))
      return failure();
    if (!next->hasTrait<OpTrait::Elementwise>() &&
        !next->hasTrait<OpTrait::ConstantLike>() &&
        !isa<hlo::BroadcastInDimOp>(next))
      break;
  }
  if (failed(receiveReads(op)))
    return failure();
  openSegment(op->getLoc());
  open->addOperation(op);
  if (hlo::isControlFlow(op) && failed(visitLateReads(op)))
    return failure();
  return visitHere(op);
}

/// A loop or branch doesn't receive what it uses in each of its rounds.
LogicalResult RankClassBuilder::visitLateReads(Operation *op) {
  if (!hlo::isControlFlow(op))
    return success();
  for (Value value : getReads(op))
    if (failed(visitLate(value)))
      return failure();
  return success();
}

/// Makes or receives a late value, unless it is there.
LogicalResult RankClassBuilder::visitLate(Value value) {
  Operation *producer = value.getDefiningOp();
  if (!isLate(producer) || !holds(value) || lookup(value))
    return success();
  return visitHere(producer);
}

/// Whether the device has what another one is to get.
bool RankClassBuilder::isSent(Operation *op) const {
  auto reshard = dyn_cast<ReshardOp>(op);
  return reshard && holds(reshard.getInput());
}

/// Whether the operation becomes collectives, or holds some.
bool RankClassBuilder::communicates(Operation *op) {
  auto reshard = dyn_cast<ReshardOp>(op);
  if (!reshard)
    return op->walk([](ReshardOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  const ResolvedReshard &resolved = reshards.at(reshard);
  if (auto earlier = cast_if_present<ReshardOp>(resolved.earlier))
    return !find(earlier.getResult()) &&
           !(open && open->contains(earlier.getResult())) &&
           communicates(earlier);
  return llvm::is_contained(resolved.isNothing, false);
}

LogicalResult RankClassBuilder::visitTaskGraph(TaskGraphOp graph) {
  if (failed(visitBlock(graph.getBody().front())))
    return failure();
  if (open)
    open->addOperation(graph);
  for (auto [result, yielded] :
       llvm::zip(graph->getResults(), graph.getYield()->getOperands())) {
    if (open && open->contains(yielded)) {
      open->map(result, open->lookup(yielded));
      continue;
    }
    Value local = find(yielded);
    if (!local)
      continue;
    (moment ? *moment : values)[result] = local;
    if (turn) {
      made.insert(result);
      turn->parts.push_back({.yielded = yielded, .result = result});
    }
  }
  return success();
}

static Operation *createCollective(OpBuilder &builder, ReshardOp op,
                                   const Step &step, int64_t channel,
                                   Value value,
                                   std::optional<RankedTensorType> result) {
  OperationState state(op->getLoc(), collectiveName(step.kind));
  if (value)
    state.addOperands(value);
  if (result)
    state.addTypes(*result);
  MLIRContext *context = builder.getContext();
  state.addAttribute("channel", builder.getI64IntegerAttr(channel));
  state.addAttribute("from", PlacementAttr::get(context, step.from));
  state.addAttribute("to", PlacementAttr::get(context, step.to));
  return builder.create(state);
}

static Type withElements(Value value, Type element) {
  return cast<RankedTensorType>(value.getType()).clone(element);
}

/// `value` times a number, in elements of another type.
static Value scaled(OpBuilder &builder, Value value, double factor,
                    Type element) {
  Location loc = value.getLoc();
  if (factor != 1) {
    auto type = cast<RankedTensorType>(value.getType());
    auto number = hlo::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(type, ArrayRef<Attribute>(builder.getFloatAttr(
                                         type.getElementType(), factor))));
    value = hlo::MulOp::create(builder, loc, value, number);
  }
  return getElementTypeOrSelf(value) == element
             ? value
             : hlo::ConvertOp::create(builder, loc,
                                      withElements(value, element), value);
}

LogicalResult RankClassBuilder::visitReshard(ReshardOp op) {
  // Not there if it is yet to be received, or if a segment has made it without
  // communication and for itself alone.
  auto earlier = cast_if_present<ReshardOp>(reshards.at(op).earlier);
  if (earlier) {
    if (!holds(earlier))
      return success();
    if (Value local = lookup(earlier)) {
      map(op.getResult(), local);
      return success();
    }
  }
  const ResolvedReshard &resolved = reshards.at(earlier ? earlier : op);
  auto type = cast<RankedTensorType>(op.getType());
  // Neither segments nor task graphs return constants.
  Value input = lookThroughTaskGraph(op.getInput());
  if (!matchPattern(input, m_Constant()))
    input = op.getInput();
  else if (failed(visitLate(input)))
    return failure();
  Value value = lookup(input);
  int64_t channel = resolved.firstChannel;
  for (auto [step, isNothing] :
       llvm::zip_equal(resolved.steps, resolved.isNothing)) {
    std::optional<RankedTensorType> result =
        getLocalType(type, step.to, device);
    // A collective keeps the element type; what it reduced in f32 is rounded
    // after it.
    std::optional<RankedTensorType> rounded = result;
    Type sent = getLocalElementType(type, step.from);
    bool isNarrow = op.getWire() && step.kind != StepKind::LocalSlice;
    double scale = op.getScale() ? op.getScale()->convertToDouble() : 1;
    if (result)
      result = result->clone(isNarrow ? *op.getWire() : sent);
    if (isNothing) {
      value = result ? value : Value();
      ++channel;
      continue;
    }
    if (!value && !result) {
      ++channel;
      continue;
    }
    if (isNarrow && value)
      value = scaled(builder, adapt(value, withElements(value, sent)), scale,
                     *op.getWire());
    Operation *&first = collectives[channel];
    Operation *collective = first ? builder.clone(*first) : nullptr;
    if (!first)
      first = collective =
          createCollective(builder, op, step, channel, value, result);
    else if (value)
      collective->setOperands(value);
    ++channel;
    value = result ? collective->getResult(0) : Value();
    if (isNarrow && value)
      value = scaled(builder, adapt(value, withElements(value, sent)),
                     1 / scale, sent);
    if (value)
      value = adapt(value, *rounded);
  }
  // Empty shards are all equal to the steps, so 0x2 may have stayed 0x2 where
  // 2x0 is wanted.
  auto wanted = cast<RankedTensorType>(getLocalTypeOrAbsent(op.getResult()));
  if (value &&
      cast<RankedTensorType>(value.getType()).getShape() != wanted.getShape())
    value = hlo::ReshapeOp::create(builder, op->getLoc(), wanted, value);
  if (value) {
    map(op.getResult(), value);
    if (earlier)
      map(earlier.getResult(), value);
  }
  return success();
}

} // namespace whale
