//===- WritePlacements.cpp - Layouts and shares as attributes -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the meshes, and the layout of every value along each of their axes. Out:
// placements, in attributes of arguments and operations. A result has the
// placement in which it is made, an operand the one in which it is wanted:
// where the two differ, whale-insert-reshards moves the value. Task graphs get
// none (their operations have them), nor do the bodies of reductions. Cost:
// linear in operands and results; each looks its layout up among the few known
// ones of its mesh, type and micro-batch. Attributes of arguments are set one
// at a time, each time with a new list of all: the square of the arguments.
//
//===----------------------------------------------------------------------===//

#include "WritePlacements.h"

#include "MomentRegions.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Sharding/GivenPlacements.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Import/StackPieces.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
namespace {

class Writer {
public:
  Writer(func::FuncOp function, const StepMeshes &meshes,
         const StepLayouts &layouts)
      : function(function), meshes(meshes), layouts(layouts) {}

  void writeArguments() {
    SmallVector<Attribute> placements;
    for (BlockArgument argument : function.getArguments()) {
      PlacementAttr given = getGivenPlacement(argument);
      placements.push_back(
          given ? given
                : place(meshes.meshOfValue(argument), argument, std::nullopt));
    }
    makeJoinable(placements,
                 [&](unsigned i) { return function.getArgAttrDict(i); });
    // One by one, each would copy and hash those of all arguments.
    SmallVector<DictionaryAttr> all;
    for (auto [index, placement] : llvm::enumerate(placements)) {
      NamedAttrList attrs(function.getArgAttrDict(index));
      attrs.set(placementAttrName, placement);
      all.push_back(attrs.getDictionary(function.getContext()));
    }
    function.setAllArgAttrs(all);
  }

  void writeOperations() {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      bool endsMoment =
          isa<YieldOp>(op) && !isa<TaskGraphOp>(op->getParentOp());
      if (op == function || isa<TaskGraphOp>(op) ||
          (isa<YieldOp>(op) && !endsMoment))
        return WalkResult::advance();
      if (auto loop = dyn_cast<MicroBatchesOp>(op)) {
        writeLoop(loop);
        return WalkResult::advance();
      }
      if (endsMoment) {
        writeEndOfMoment(op);
        return WalkResult::advance();
      }
      writeOperation(op);
      // The bodies of reductions work on scalars.
      if (hlo::isControlFlow(op))
        return WalkResult::advance();
      return WalkResult::skip();
    });
  }

  void writeOperation(Operation *op) {
    const Mesh *mesh = meshes.meshOf(op);
    std::optional<int64_t> moment = momentOf(op);
    SmallVector<Attribute> operands, results;
    bool isEnd = op == function.front().getTerminator();
    for (OpOperand &operand : op->getOpOperands()) {
      PlacementAttr given = isEnd ? givenOfFed(operand) : PlacementAttr();
      operands.push_back(
          given ? given
                : place(isEnd ? meshOfResult(operand) : mesh, operand, moment));
    }
    if (isEnd)
      makeJoinable(operands,
                   [&](unsigned i) { return function.getResultAttrDict(i); });
    for (Value result : op->getResults())
      results.push_back(place(mesh, result, moment));
    write(op, operands, results);
  }

private:
  /// What enters and leaves a loop over micro-batches is where it is used and
  /// made.
  void writeLoop(MicroBatchesOp loop) {
    SmallVector<Attribute> operands, results;
    for (OpOperand &piece : loop->getOpOperands())
      operands.push_back(
          place(meshes.meshOfPiece(piece), piece, momentOf(piece)));
    for (OpResult result : loop->getResults())
      results.push_back(
          place(meshes.meshOfValue(result), result, momentOf(result)));
    write(loop, operands, results);
  }

  void writeEndOfMoment(Operation *yield) {
    auto loop = cast<MicroBatchesOp>(yield->getParentOp());
    SmallVector<Attribute> operands;
    for (OpOperand &operand : yield->getOpOperands()) {
      // Shares may rotate, but a sum over moments is cut alike in all of them.
      bool isSum = operand.getOperandNumber() < loop.getNumReduced();
      bool isSingle = llvm::any_of(layouts.getAxes(), [&](const auto &axis) {
        return axis->getRequired(operand).isSingle();
      });
      operands.push_back(
          place(meshes.meshOfValue(operand.get()), operand,
                isSum && !isSingle ? std::nullopt : momentOf(yield)));
    }
    write(yield, operands, {});
  }

  static void
  makeJoinable(SmallVectorImpl<Attribute> &attributes,
               llvm::function_ref<DictionaryAttr(unsigned)> attrsOf) {
    SmallVector<Placement> placements;
    for (Attribute attribute : attributes)
      placements.push_back(cast<PlacementAttr>(attribute).getValue());
    whale::makeJoinable(placements, attrsOf);
    for (auto [attribute, placement] : llvm::zip_equal(attributes, placements))
      attribute = PlacementAttr::get(attribute.getContext(), placement);
  }

  static void write(Operation *op, ArrayRef<Attribute> operands,
                    ArrayRef<Attribute> results) {
    bool isEdge = isa<MicroBatchesOp, YieldOp>(op);
    Builder builder(op->getContext());
    if (isEdge || !operands.empty())
      op->setAttr(operandPlacementsAttrName, builder.getArrayAttr(operands));
    if (isEdge || !results.empty())
      op->setAttr(placementsAttrName, builder.getArrayAttr(results));
  }

  /// Results stay on the devices that make them, unless they feed an argument.
  const Mesh *meshOfResult(OpOperand &operand) const {
    int64_t fed = layouts.getFeeds()[operand.getOperandNumber()];
    return meshes.meshOfValue(fed >= 0 ? Value(function.getArgument(fed))
                                       : operand.get());
  }

  /// Where the argument lies that a result feeds, if the input says so.
  PlacementAttr givenOfFed(OpOperand &operand) const {
    int64_t fed = layouts.getFeeds()[operand.getOperandNumber()];
    return fed >= 0 ? getGivenPlacement(function.getArgument(fed))
                    : PlacementAttr();
  }

  /// Where a value is made.
  PlacementAttr place(const Mesh *mesh, Value value,
                      std::optional<int64_t> moment) {
    return place(mesh, value, moment, [&](const AxisPropagation &axis) {
      return axis.getState(value);
    });
  }

  /// Where it is wanted.
  PlacementAttr place(const Mesh *mesh, OpOperand &operand,
                      std::optional<int64_t> moment) {
    return place(mesh, operand.get(), moment, [&](const AxisPropagation &axis) {
      return axis.getRequired(operand);
    });
  }

  PlacementAttr
  place(const Mesh *mesh, Value value, std::optional<int64_t> moment,
        llvm::function_ref<AxisState(const AxisPropagation &)> stateOf) {
    SmallVector<AxisState, 2> states;
    for (const auto &axis : layouts.getAxes())
      states.push_back(stateOf(*axis));
    // Layers and micro-batches have the same ones.
    auto &known = placed[{mesh, value.getType(), moment.value_or(-1)}];
    for (auto &[other, placement] : known)
      if (other == states)
        return placement;
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(value.getType()).getShape();
    auto placement = PlacementAttr::get(function.getContext(),
                                        mesh->place(shape, states, moment));
    known.push_back({std::move(states), placement});
    return placement;
  }

  mutable func::FuncOp function;
  const StepMeshes &meshes;
  const StepLayouts &layouts;
  /// By mesh, type and moment: placements for the states along all axes.
  using Known =
      SmallVector<std::pair<SmallVector<AxisState, 2>, PlacementAttr>>;
  llvm::DenseMap<std::tuple<const Mesh *, Type, int64_t>, Known> placed;
};

} // namespace

void writePlacements(func::FuncOp function, const StepMeshes &meshes,
                     const StepLayouts &layouts) {
  Writer writer(function, meshes, layouts);
  writer.writeArguments();
  writer.writeOperations();
}

void writePlacements(ArrayRef<Operation *> ops, const StepMeshes &meshes,
                     const StepLayouts &layouts) {
  Writer writer(ops.front()->getParentOfType<func::FuncOp>(), meshes, layouts);
  for (Operation *op : ops)
    writer.writeOperation(op);
}

} // namespace whale
