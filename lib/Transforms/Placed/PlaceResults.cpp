//===- PlaceResults.cpp - Make results where they are wanted --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main with results that the input wants somewhere, and without
// strategies. Out: the same in one task graph, with placements of all values.
//
// Where results are wanted says where all that they are computed from is
// (PlaceResults/CopyPlan.h). An operation is then written once for each
// placement, so that nothing is exchanged between devices, and none computes
// more than it is to hold but for what cannot be split; what is left over of
// that is dropped behind it. An argument lies where the input says, else where
// it is wanted, or whole on all devices if that is several places. Cost: that
// of the plan, and a copy of each operation for each of its placements.
//
//===----------------------------------------------------------------------===//

#include "PlaceResults/CopyPlan.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Report/TextTable.h"
#include "whale/Sharding/GivenPlacements.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/DeviceRequests.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_PLACERESULTS
#include "whale/Transforms/Placed/Passes.h.inc"

namespace {

/// Writes the copies of a plan.
class CopyWriter {
public:
  /// To the builder's insertion point, which is in the function's body.
  explicit CopyWriter(OpBuilder &builder) : builder(builder) {}

  void add(Value value, PlacementAttr placement, Value copy) {
    made[value].push_back({placement, copy});
  }
  /// The copy of a value in a placement.
  Value get(Value value, PlacementAttr placement);
  /// All but the terminator.
  void writeBlock(const BlockPlan &plan);

private:
  void write(const CopyPlan &copy);
  void writeRegion(Region &region, const BlockPlan &plan, Region &copy);

  OpBuilder &builder;
  llvm::DenseMap<Value, SmallVector<std::pair<PlacementAttr, Value>, 1>> made;
  /// The operation of the function's body that is written now.
  Operation *outermost = nullptr;
};

Value CopyWriter::get(Value value, PlacementAttr placement) {
  auto &copies = made[value];
  assert(!copies.empty() && "planned before what uses it");
  for (auto &[own, copy] : copies)
    if (own == placement)
      return copy;
  // One from which nothing has to be sent, if there is one.
  auto *source = llvm::find_if(copies, [&](const auto &each) {
    const Placement &given = each.first.getValue();
    return given.isReplicated() &&
           llvm::all_of(placement.getValue().devices(), [&](DeviceId device) {
             return given.contains(device);
           });
  });
  if (source == copies.end())
    source = copies.begin();
  OpBuilder::InsertionGuard guard(builder);
  auto argument = dyn_cast<BlockArgument>(source->second);
  if (!argument)
    builder.setInsertionPointAfterValue(source->second);
  else if (!isa<func::FuncOp>(argument.getOwner()->getParentOp()))
    builder.setInsertionPointToStart(argument.getOwner());
  else if (outermost)
    builder.setInsertionPoint(outermost);
  Value moved =
      ReshardOp::create(builder, getProducerLoc(value), value.getType(),
                        source->second, source->first, placement,
                        /*wire=*/TypeAttr(), /*scale=*/FloatAttr());
  copies.push_back({placement, moved});
  return moved;
}

void CopyWriter::writeBlock(const BlockPlan &plan) {
  for (const CopyPlan &copy : llvm::reverse(plan.copies))
    write(copy);
}

/// Says what devices compute to no purpose.
static void explainWhole(const CopyPlan &copy) {
  if (!copy.wholeResult)
    return;
  Value result = copy.op->getResult(*copy.wholeResult);
  ArrayRef<DeviceId> ids = copy.results[*copy.wholeResult].getValue().devices();
  emitRemark(copy.op->getLoc())
      << "results: '" << copy.op->getName()
      << "' cannot be computed in parts: each of devices "
      << describeRanges(ids.vec()) << " computes all "
      << getTensorBytes(result.getType())
      << " bytes, and keeps its part of them";
}

void CopyWriter::write(const CopyPlan &copy) {
  Operation *op = copy.op;
  explainWhole(copy);
  SmallVector<Value> operands;
  for (auto [operand, placement] :
       llvm::zip_equal(op->getOperands(), copy.operands))
    operands.push_back(get(operand, placement));
  Operation *own = op->cloneWithoutRegions();
  builder.insert(own);
  own->setOperands(operands);
  own->removeAttr(kStrategyAttr);
  SmallVector<Attribute> placements(copy.results.begin(), copy.results.end());
  own->setAttr(placementsAttrName, builder.getArrayAttr(placements));
  bool isOutermost = !outermost;
  if (isOutermost)
    outermost = own;
  for (unsigned i = 0; i < op->getNumRegions(); ++i)
    if (copy.regions.empty()) {
      IRMapping mapping;
      op->getRegion(i).cloneInto(&own->getRegion(i), mapping);
    } else {
      writeRegion(op->getRegion(i), copy.regions[i], own->getRegion(i));
    }
  if (isOutermost)
    outermost = nullptr;
  for (auto [result, placement, value] :
       llvm::zip_equal(op->getResults(), copy.results, own->getResults()))
    add(result, placement, value);
}

void CopyWriter::writeRegion(Region &region, const BlockPlan &plan,
                             Region &copy) {
  // An operation around it may have been written before.
  region.walk([&](Block *block) {
    for (Value argument : block->getArguments())
      made.erase(argument);
    for (Operation &op : *block)
      for (Value result : op.getResults())
        made.erase(result);
  });
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&copy);
  for (auto [argument, placement] :
       llvm::zip_equal(region.getArguments(), plan.arguments))
    add(argument, placement,
        block->addArgument(argument.getType(), argument.getLoc()));
  writeBlock(plan);
  SmallVector<Value> yielded;
  Operation *end = region.front().getTerminator();
  for (auto [value, placement] :
       llvm::zip_equal(end->getOperands(), plan.yielded))
    yielded.push_back(get(value, placement));
  builder.clone(*end)->setOperands(yielded);
}

struct PlaceResultsPass : impl::PlaceResultsBase<PlaceResultsPass> {
  using PlaceResultsBase::PlaceResultsBase;

  void runOnOperation() final {
    FailureOr<func::FuncOp> found = getMainFunction(getOperation());
    if (failed(found))
      return signalPassFailure();
    if (hasGivenResults(*found) && failed(place(*found)))
      signalPassFailure();
  }

private:
  LogicalResult place(func::FuncOp main) {
    FailureOr<Cluster> cluster = getCluster(getOperation());
    if (failed(cluster))
      return failure();
    SmallVector<DeviceId> all(cluster->devices.size());
    std::iota(all.begin(), all.end(), 0);
    std::string name = dissolve(main);
    Operation *end = main.front().getTerminator();
    SmallVector<PlacementAttr> results;
    for (auto [index, value] : llvm::enumerate(end->getOperands())) {
      PlacementAttr given = getGivenPlacement(main, index);
      results.push_back(given ? given : getWhole(value, all));
    }
    WantedPlacements wanted;
    FailureOr<BlockPlan> plan = planCopies(main, results, wanted);
    if (failed(plan))
      return failure();
    // Placements keep to the plan, whose operations they replace.
    SmallVector<Operation *> old;
    for (Operation &op : main.front().without_terminator())
      old.push_back(&op);
    OpBuilder builder(end);
    CopyWriter writer(builder);
    placeArguments(main, wanted, all, writer);
    writer.writeBlock(*plan);
    for (auto [index, placement] : llvm::enumerate(results))
      end->setOperand(index, writer.get(end->getOperand(index), placement));
    for (Operation *op : llvm::reverse(old))
      op->erase();
    form(main, name, all);
    return success();
  }

  /// Puts the operations of task graphs, which have no strategy, into the
  /// function's body; returns the name that a task graph of all of them has.
  static std::string dissolve(func::FuncOp main) {
    std::string name = "default";
    for (auto graph :
         llvm::make_early_inc_range(main.front().getOps<TaskGraphOp>())) {
      name = graph.getName().str();
      Operation *yield = graph.getYield();
      for (Operation &op : llvm::make_early_inc_range(
               graph.getBody().front().without_terminator()))
        op.moveBefore(graph);
      graph->replaceAllUsesWith(yield->getOperands());
      graph.erase();
    }
    return name;
  }

  static void placeArguments(func::FuncOp main, const WantedPlacements &wanted,
                             ArrayRef<DeviceId> all, CopyWriter &writer) {
    SmallVector<DictionaryAttr> attributes;
    for (BlockArgument argument : main.getArguments()) {
      PlacementAttr placement = getGivenPlacement(argument);
      SmallVector<PlacementAttr, 1> places = wanted.lookup(argument);
      if (!placement && places.size() == 1)
        placement = places.front();
      if (!placement)
        placement = getWhole(argument, all);
      writer.add(argument, placement, argument);
      NamedAttrList own(main.getArgAttrDict(argument.getArgNumber()));
      own.set(placementAttrName, placement);
      attributes.push_back(own.getDictionary(main.getContext()));
    }
    main.setAllArgAttrs(attributes);
  }

  /// Puts all operations into one task graph.
  static void form(func::FuncOp main, StringRef name, ArrayRef<DeviceId> all) {
    Block &body = main.front();
    Operation *end = body.getTerminator();
    SmallVector<Operation *> ops;
    int64_t flops = 0, bytes = 0;
    for (Operation &op : body.without_terminator()) {
      ops.push_back(&op);
      flops = addCosts(flops, opFlops(&op));
      bytes = addCosts(bytes, opBytes(&op));
    }
    if (ops.empty())
      return;
    llvm::SetVector<Value> found;
    for (Value value : end->getOperands())
      if (value.getDefiningOp())
        found.insert(value);
    SmallVector<Value> outputs = found.takeVector();
    constexpr StringLiteral devices = "vd0";
    OpBuilder builder(main);
    VirtualDeviceOp::create(builder, main.getLoc(), devices,
                            std::vector<std::vector<int64_t>>{all.vec()});
    builder.setInsertionPoint(end);
    auto graph = TaskGraphOp::create(
        builder, ops.front()->getLoc(), ValueRange(outputs).getTypes(),
        builder.getStringAttr(name),
        PhaseAttr::get(builder.getContext(), Phase::Forward),
        /*strategy=*/StrategyAttr(),
        FlatSymbolRefAttr::get(builder.getContext(), devices),
        builder.getI64IntegerAttr(flops), builder.getI64IntegerAttr(bytes));
    Block *block = builder.createBlock(&graph.getBody());
    for (Operation *op : ops)
      op->moveBefore(block, block->end());
    builder.setInsertionPointToEnd(block);
    YieldOp::create(builder, graph.getLoc(), outputs);
    for (auto [value, result] : llvm::zip_equal(outputs, graph.getResults()))
      value.replaceUsesWithIf(
          result, [&](OpOperand &use) { return use.getOwner() == end; });
  }
};

} // namespace
} // namespace whale
