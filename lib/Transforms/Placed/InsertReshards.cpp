//===- InsertReshards.cpp - Make changes of placement explicit -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Puts a whale.reshard wherever an operation needs another placement of an
// operand than the one that it is produced in. A reshard is right after
// the value is made, so that all users of the same placement share it and
// loops don't repeat it. A broadcast of what each device has whole is made
// once more instead, so that none makes more of it than its part.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Shardy/IR/ShardyOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Sharding/GivenPlacements.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_INSERTRESHARDS
#include "whale/Transforms/Placed/Passes.h.inc"

namespace {

/// Whether a device has all of a value that is no partial result.
bool isWholeOn(Value value, DeviceId device) {
  PlacementAttr placement = getPlacement(value);
  if (!placement || placement.getValue().reduction())
    return false;
  std::optional<Box> box = placement.getValue().box(device);
  return box && box->volume() ==
                    cast<RankedTensorType>(value.getType()).getNumElements();
}

/// Whether a broadcast can be made in a placement from its operand as that is.
bool canBeMadeIn(stablehlo::BroadcastInDimOp op, const Placement &wanted) {
  ArrayRef<int64_t> shape = op.getType().getShape();
  if (wanted.reduction() || ArrayRef<int64_t>(wanted.view()) != shape)
    return false;
  auto operand = cast<RankedTensorType>(op.getOperand().getType());
  return llvm::all_of(wanted.devices(), [&](DeviceId device) {
    std::optional<Box> box = wanted.box(device);
    return box && isWholeOn(op.getOperand(), device) &&
           llvm::all_of(llvm::enumerate(op.getBroadcastDimensions()),
                        [&](auto dim) {
                          return operand.getDimSize(dim.index()) == 1 ||
                                 box->size[dim.value()] == shape[dim.value()];
                        });
  });
}

struct InsertReshardsPass : impl::InsertReshardsBase<InsertReshardsPass> {
  using InsertReshardsBase::InsertReshardsBase;

  void runOnOperation() final {
    FailureOr<func::FuncOp> function = getMainFunction(getOperation());
    if (failed(function))
      return signalPassFailure();
    sharesParameters =
        Config(getOperation()).getZeroLevel() == ZeroLevel::Parameters;
    SmallVector<OpOperand *> operands;
    function->walk([&](Operation *op) {
      if (op->hasAttr(operandPlacementsAttrName))
        for (OpOperand &operand : op->getOpOperands())
          operands.push_back(&operand);
    });
    for (OpOperand *operand : operands)
      if (failed(reshardOperand(*operand)))
        return signalPassFailure();
    for (Operation *op : broadcasts)
      if (op->use_empty())
        op->erase();
    function->walk(
        [&](Operation *op) { op->removeAttr(operandPlacementsAttrName); });
    dropGivenPlacements(*function);
    // What sharding constraints asked for has been done.
    function->walk([&](sdy::ShardingConstraintOp op) {
      op.replaceAllUsesWith(op.getInput());
      op.erase();
    });
    for (sdy::MeshOp mesh :
         llvm::make_early_inc_range(getOperation().getOps<sdy::MeshOp>()))
      mesh.erase();
  }

private:
  LogicalResult reshardOperand(OpOperand &operand) {
    PlacementAttr wanted = getWantedPlacement(operand);
    PlacementAttr given = getPlacement(operand.get());
    if (!wanted || wanted == given)
      return success();
    if (!given)
      return operand.getOwner()->emitError("operand #")
             << operand.getOperandNumber() << " has no placement";
    if (isStored(operand)) {
      gather(operand, given, wanted);
      return success();
    }
    if (scatterTerm(operand, given, wanted))
      return success();
    Value &reshard = reshards[{operand.get(), wanted}];
    if (!reshard) {
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfterValue(operand.get());
      auto broadcast =
          operand.get().getDefiningOp<stablehlo::BroadcastInDimOp>();
      if (broadcast && canBeMadeIn(broadcast, wanted.getValue())) {
        Operation *copy = builder.clone(*broadcast);
        copy->setAttr(placementsAttrName, builder.getArrayAttr(wanted));
        reshard = copy->getResult(0);
        broadcasts.insert(broadcast);
      } else {
        reshard = createReshard(builder, operand.get(), given, wanted);
      }
    }
    operand.set(reshard);
    return success();
  }

  static Value createReshard(OpBuilder &builder, Value value,
                             PlacementAttr given, PlacementAttr wanted) {
    return ReshardOp::create(builder, getProducerLoc(value), value.getType(),
                             value, given, wanted,
                             /*wire=*/TypeAttr(), /*scale=*/FloatAttr());
  }

  /// Has a micro-batch reduce a term of a sum over micro-batches where it is
  /// computed, so that its terms are not all there at once.
  static bool scatterTerm(OpOperand &operand, PlacementAttr given,
                          PlacementAttr wanted) {
    auto result = dyn_cast<OpResult>(operand.get());
    auto graph = operand.get().getDefiningOp<TaskGraphOp>();
    if (!isa<MicroBatchesOp>(operand.getOwner()->getParentOp()) || !graph ||
        !result.hasOneUse() || !given.getValue().isPartial() ||
        wanted.getValue().isPartial())
      return false;
    OpOperand &yielded =
        graph.getYield()->getOpOperand(result.getResultNumber());
    OpBuilder builder(graph.getContext());
    Value term = yielded.get();
    if (term.getParentRegion() != &graph.getBody())
      return false;
    builder.setInsertionPointAfterValue(term);
    yielded.set(createReshard(builder, term, given, wanted));
    return true;
  }

  /// Has a TaskGraph gather a parameter before its first use there, so that
  /// nobody holds it between TaskGraphs. What has formed it in another one is
  /// computed again.
  void gather(OpOperand &operand, PlacementAttr given, PlacementAttr wanted) {
    Operation *user = operand.getOwner();
    auto graph = user->getParentOfType<TaskGraphOp>();
    Value value = lookThroughTaskGraph(operand.get());
    Value &gathered = gathers[{{value, wanted}, graph}];
    if (!gathered) {
      Operation *maker = value.getDefiningOp();
      bool isHere = maker && maker->getParentOfType<TaskGraphOp>() == graph;
      Block *block = isHere  ? maker->getBlock()
                     : graph ? &graph.getBody().front()
                             : user->getBlock();
      OpBuilder builder(block->findAncestorOpInBlock(*user));
      Value local = isHere ? value : formAgain(builder, value);
      gathered = createReshard(builder, local, given, wanted);
    }
    operand.set(gathered);
  }

  static Value formAgain(OpBuilder &builder, Value value) {
    value = lookThroughTaskGraph(value);
    Operation *maker = value.getDefiningOp();
    if (!maker)
      return value;
    SmallVector<Value> operands;
    for (Value operand : maker->getOperands())
      operands.push_back(formAgain(builder, operand));
    Operation *copy = builder.clone(*maker);
    copy->removeAttr(operandPlacementsAttrName);
    copy->setOperands(operands);
    return copy->getResult(0);
  }

  /// Whether replicas read a parameter that they share out, or anybody what
  /// another program has, whatever formed it: not what is cut out of one in a
  /// loop, which is gathered there.
  bool isStored(OpOperand &operand) const {
    auto graph = operand.getOwner()->getParentOfType<TaskGraphOp>();
    if (!graph)
      return false;
    Value value = lookThroughTaskGraph(operand.get());
    while (isa_and_nonnull<stablehlo::ConvertOp, stablehlo::ReshapeOp,
                           stablehlo::SliceOp, stablehlo::ReducePrecisionOp>(
               value.getDefiningOp()) &&
           isa<TaskGraphOp>(value.getDefiningOp()->getParentOp()))
      value = lookThroughTaskGraph(value.getDefiningOp()->getOperand(0));
    auto argument = dyn_cast<BlockArgument>(value);
    auto function =
        argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
                 : func::FuncOp();
    if (!function)
      return false;
    return getGivenPlacement(argument) ||
           (sharesParameters &&
            isa_and_nonnull<ReplicateAttr>(graph.getStrategyAttr()) &&
            function.getArgAttr(argument.getArgNumber(), kFedByAttr));
  }

  /// Whether replicas share out parameters.
  bool sharesParameters = false;
  llvm::DenseMap<std::pair<std::pair<Value, Attribute>, Operation *>, Value>
      gathers;
  llvm::DenseMap<std::pair<Value, Attribute>, Value> reshards;
  /// Those that have been made in other placements, too.
  llvm::SetVector<Operation *> broadcasts;
};

} // namespace
} // namespace whale
