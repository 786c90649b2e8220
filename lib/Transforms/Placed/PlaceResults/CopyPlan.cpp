//===- CopyPlan.cpp - Where operations are computed -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a block, and where what it yields is wanted. Out: the copies of its
// operations that make it there, and where they want what the block is given.
//
// Operations are visited from the last to the first, so that all that want a
// value have been seen. Devices compute what they are wanted to hold where the
// operation's rule allows that, else all of it. What a loop carries has one
// placement: that of the result, or else the only one that its body wants it
// in; where there are several, each device has all of it. Cost: linear in
// operations and in the placements that they are wanted in; the body of a loop
// is planned once more for each carried value that gets a placement.
//
//===----------------------------------------------------------------------===//

#include "CopyPlan.h"

#include "FollowRule.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/StableHLO/IR/CustomCalls.h"

#include <map>
#include <tuple>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

PlacementAttr getWhole(Value value, ArrayRef<DeviceId> devices) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return PlacementAttr::get(value.getContext(),
                            Placement::replicated(shape, devices));
}

static bool isWhole(PlacementAttr placement) {
  return placement.getValue().isReplicated();
}

static SmallVector<DeviceId> devicesOf(PlacementAttr placement) {
  SmallVector<DeviceId> devices(placement.getValue().devices());
  llvm::sort(devices);
  return devices;
}

/// Adds those of a placement, in order.
static void addDevices(SmallVectorImpl<DeviceId> &devices,
                       PlacementAttr placement) {
  llvm::append_range(devices, placement.getValue().devices());
  llvm::sort(devices);
  devices.erase(llvm::unique(devices), devices.end());
}

/// Whether each of a placement's devices has all of a value.
static bool hasAll(PlacementAttr given, PlacementAttr placement) {
  return isWhole(given) &&
         llvm::all_of(placement.getValue().devices(), [&](DeviceId device) {
           return given.getValue().contains(device);
         });
}

/// Whether a part is made for less than it is cut out of the whole.
static bool isMadeInParts(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() ||
         isa<hlo::IotaOp, hlo::BroadcastInDimOp>(op);
}

static void want(WantedPlacements &wanted, Value value,
                 PlacementAttr placement) {
  SmallVector<PlacementAttr, 1> &list = wanted[value];
  if (!llvm::is_contained(list, placement))
    list.push_back(placement);
}

namespace {

class Planner {
public:
  FailureOr<BlockPlan> planBlock(Block &block, ArrayRef<PlacementAttr> yielded,
                                 WantedPlacements &around);

private:
  LogicalResult planOperation(Operation *op);
  FailureOr<CopyPlan> planCopy(Operation *op, unsigned result,
                               PlacementAttr wanted);
  CopyPlan planWhole(Operation *op, ArrayRef<DeviceId> devices);
  CopyPlan planBarrier(Operation *op, unsigned result, PlacementAttr placement);
  FailureOr<CopyPlan> planLoop(hlo::WhileOp loop, unsigned result,
                               PlacementAttr placement);
  FailureOr<CopyPlan> planBranch(Operation *op, unsigned result,
                                 PlacementAttr placement);
  CopyPlan startCopy(Operation *op, unsigned result, PlacementAttr placement,
                     SmallVectorImpl<DeviceId> &devices);
  SmallVector<PlacementAttr> startResults(Operation *op, unsigned result,
                                          PlacementAttr placement,
                                          SmallVectorImpl<DeviceId> &devices);

  /// Where operands and results of an operation are if a result is wanted
  /// somewhere; nothing where it can't be split so.
  using Parts = std::optional<
      std::pair<SmallVector<PlacementAttr>, SmallVector<PlacementAttr>>>;
  const Parts &partsOf(Operation *op, unsigned result, PlacementAttr wanted);

  /// Of the block at hand and those around it.
  WantedPlacements *wanted = nullptr;
  BlockPlan *plan = nullptr;
  /// By what an operation is and is wanted for: tensors of a type are made by
  /// the same operations.
  std::map<std::vector<const void *>, Parts> parts;
};

} // namespace

FailureOr<BlockPlan> Planner::planBlock(Block &block,
                                        ArrayRef<PlacementAttr> yielded,
                                        WantedPlacements &around) {
  WantedPlacements own;
  BlockPlan made;
  made.yielded.assign(yielded.begin(), yielded.end());
  WantedPlacements *outer = std::exchange(wanted, &own);
  BlockPlan *outerPlan = std::exchange(plan, &made);
  for (auto [value, placement] :
       llvm::zip_equal(block.getTerminator()->getOperands(), yielded))
    if (placement)
      want(own, value, placement);
  bool hasFailed = false;
  for (Operation &op : llvm::reverse(block.without_terminator()))
    if (failed(planOperation(&op))) {
      hasFailed = true;
      break;
    }
  wanted = outer;
  plan = outerPlan;
  if (hasFailed)
    return failure();
  // What the block is given, or takes from around it.
  for (auto &[value, placements] : own)
    if (value.getParentBlock() != &block || isa<BlockArgument>(value))
      for (PlacementAttr placement : placements)
        want(around, value, placement);
  return made;
}

LogicalResult Planner::planOperation(Operation *op) {
  auto call = dyn_cast<hlo::CustomCallOp>(op);
  if (call && isPythonCallback(call.getCallTargetName()))
    return op->emitError("calls into Python, which a program whose results are "
                         "made where another one wants them can't; call the "
                         "function before or after it");
  if (op->getNumResults() == 0)
    return op->emitError(
        "has an effect, and no result that is wanted anywhere");
  size_t first = plan->copies.size();
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    // Planning a loop may want more values, but none of its own results.
    SmallVector<PlacementAttr> placements(wanted->lookup(result));
    // Who has all of a value cuts its part out of that.
    llvm::stable_sort(placements, [](PlacementAttr one, PlacementAttr other) {
      return isWhole(one) && !isWhole(other);
    });
    for (PlacementAttr placement : placements) {
      auto isThere = [&, index = index](const CopyPlan &copy) {
        PlacementAttr given = copy.results[index];
        return given == placement ||
               (!isMadeInParts(op) && hasAll(given, placement));
      };
      auto own = ArrayRef(plan->copies).drop_front(first);
      if (llvm::any_of(own, isThere))
        continue;
      FailureOr<CopyPlan> copy = planCopy(op, index, placement);
      if (failed(copy))
        return failure();
      if (llvm::any_of(own, [&](const CopyPlan &other) {
            return other.results == copy->results;
          }))
        continue;
      for (auto [operand, own] :
           llvm::zip_equal(op->getOperands(), copy->operands))
        want(*wanted, operand, own);
      plan->copies.push_back(std::move(*copy));
    }
  }
  return success();
}

FailureOr<CopyPlan> Planner::planCopy(Operation *op, unsigned result,
                                      PlacementAttr placement) {
  if (auto loop = dyn_cast<hlo::WhileOp>(op))
    return planLoop(loop, result, placement);
  if (hlo::isBranch(op))
    return planBranch(op, result, placement);
  if (isa<hlo::OptimizationBarrierOp>(op))
    return planBarrier(op, result, placement);
  CopyPlan copy;
  copy.op = op;
  auto constant = dyn_cast<hlo::ConstantOp>(op);
  bool isSplat = constant && constant.getValue().isSplat();
  if (isSplat) {
    copy.results.push_back(placement);
    return copy;
  }
  const Parts &own = partsOf(op, result, placement);
  if (constant || !own) {
    copy = planWhole(op, devicesOf(placement));
    if (!isWhole(placement))
      copy.wholeResult = result;
    return copy;
  }
  std::tie(copy.operands, copy.results) = *own;
  return copy;
}

const Planner::Parts &Planner::partsOf(Operation *op, unsigned result,
                                       PlacementAttr placement) {
  std::vector<const void *> key{op->getName().getAsOpaquePointer(),
                                op->getAttrDictionary().getAsOpaquePointer(),
                                placement.getAsOpaquePointer()};
  for (Type type : llvm::concat<Type>(llvm::to_vector(op->getOperandTypes()),
                                      llvm::to_vector(op->getResultTypes())))
    key.push_back(type.getAsOpaquePointer());
  auto [it, isNew] = parts.try_emplace(std::move(key));
  // Of what has no regions and one result, the key says all.
  if (!isNew && op->getNumRegions() == 0 && op->getNumResults() == 1)
    return it->second;
  it->second.reset();
  std::optional<OperationPlacements> found =
      followRule(op, result, placement.getValue());
  if (!found)
    return it->second;
  it->second.emplace();
  auto add = [&](SmallVectorImpl<PlacementAttr> &list,
                 ArrayRef<Placement> placements) {
    for (const Placement &each : placements)
      list.push_back(PlacementAttr::get(op->getContext(), each));
  };
  add(it->second->first, found->operands);
  add(it->second->second, found->results);
  return it->second;
}

CopyPlan Planner::planWhole(Operation *op, ArrayRef<DeviceId> devices) {
  CopyPlan copy;
  copy.op = op;
  for (Value operand : op->getOperands())
    copy.operands.push_back(getWhole(operand, devices));
  for (Value result : op->getResults())
    copy.results.push_back(getWhole(result, devices));
  return copy;
}

/// The results of an operation that may have several placements at a time: the
/// given one, and for others the first in which they are wanted, or null; with
/// all devices that have any.
SmallVector<PlacementAttr>
Planner::startResults(Operation *op, unsigned result, PlacementAttr placement,
                      SmallVectorImpl<DeviceId> &devices) {
  SmallVector<PlacementAttr> results(op->getNumResults());
  for (auto [index, value] : llvm::enumerate(op->getResults())) {
    auto found = wanted->find(value);
    if (index == result)
      results[index] = placement;
    else if (found != wanted->end())
      results[index] = found->second.front();
    if (results[index])
      addDevices(devices, results[index]);
  }
  return results;
}

/// The copy of an operation with `startResults`, and whole what nobody wants.
CopyPlan Planner::startCopy(Operation *op, unsigned result,
                            PlacementAttr placement,
                            SmallVectorImpl<DeviceId> &devices) {
  CopyPlan copy;
  copy.op = op;
  copy.results = startResults(op, result, placement, devices);
  for (auto [value, own] : llvm::zip_equal(op->getResults(), copy.results))
    if (!own)
      own = getWhole(value, devices);
  return copy;
}

CopyPlan Planner::planBarrier(Operation *op, unsigned result,
                              PlacementAttr placement) {
  SmallVector<DeviceId> devices;
  CopyPlan copy = startCopy(op, result, placement, devices);
  copy.operands = copy.results;
  return copy;
}

FailureOr<CopyPlan> Planner::planBranch(Operation *op, unsigned result,
                                        PlacementAttr placement) {
  SmallVector<DeviceId> devices;
  CopyPlan copy = startCopy(op, result, placement, devices);
  copy.operands.push_back(getWhole(op->getOperand(0), devices));
  for (Region &region : op->getRegions()) {
    FailureOr<BlockPlan> body =
        planBlock(region.front(), copy.results, *wanted);
    if (failed(body))
      return failure();
    copy.regions.push_back(std::move(*body));
  }
  return copy;
}

FailureOr<CopyPlan> Planner::planLoop(hlo::WhileOp loop, unsigned result,
                                      PlacementAttr placement) {
  CopyPlan copy;
  copy.op = loop;
  SmallVector<DeviceId> devices;
  SmallVector<PlacementAttr> carried =
      startResults(loop, result, placement, devices);
  PlacementAttr decides =
      getWhole(loop.getCond().front().getTerminator()->getOperand(0), devices);
  while (true) {
    WantedPlacements inner;
    FailureOr<BlockPlan> cond =
        planBlock(loop.getCond().front(), decides, inner);
    if (failed(cond))
      return failure();
    FailureOr<BlockPlan> body =
        planBlock(loop.getBody().front(), carried, inner);
    if (failed(body))
      return failure();
    bool hasChanged = false;
    for (unsigned i = 0; i < carried.size(); ++i) {
      SmallVector<PlacementAttr, 1> places;
      for (Region *region : {&loop.getCond(), &loop.getBody()})
        for (PlacementAttr each : inner.lookup(region->getArgument(i)))
          if (!llvm::is_contained(places, each))
            places.push_back(each);
      PlacementAttr own = carried[i];
      if (!own && !places.empty())
        own = places.front();
      if (own && !llvm::all_of(places,
                               [&](PlacementAttr each) { return each == own; }))
        own = getWhole(loop.getResult(i), devices);
      hasChanged |= own != carried[i];
      carried[i] = own;
    }
    if (hasChanged)
      continue;
    // Nobody wants the others, but a loop has one value for each.
    bool isComplete = llvm::all_of(carried, [](Attribute own) { return own; });
    if (isComplete) {
      for (auto &[value, placements] : inner)
        if (!isa<BlockArgument>(value) ||
            (value.getParentRegion() != &loop.getCond() &&
             value.getParentRegion() != &loop.getBody()))
          for (PlacementAttr each : placements)
            want(*wanted, value, each);
      cond->arguments = body->arguments = carried;
      copy.operands = copy.results = carried;
      if (!isWhole(placement) && carried[result] != placement)
        copy.wholeResult = result;
      copy.regions.push_back(std::move(*cond));
      copy.regions.push_back(std::move(*body));
      return copy;
    }
    for (auto [value, own] : llvm::zip_equal(loop.getResults(), carried))
      if (!own)
        own = getWhole(value, devices);
  }
}

FailureOr<BlockPlan> planCopies(func::FuncOp function,
                                ArrayRef<PlacementAttr> wanted,
                                WantedPlacements &arguments) {
  return Planner().planBlock(function.front(), wanted, arguments);
}

} // namespace whale
