//===- WhaleVerifiers.cpp - Constraints of the operations -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifies the constraints listed in WhaleOps.td, in the same order.
//

#include "whale/Cluster/Cluster.h"
#include "whale/Cluster/DeviceIds.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace whale;

//===----------------------------------------------------------------------===//
// VirtualDeviceOp
//===----------------------------------------------------------------------===//

SmallVector<int64_t> VirtualDeviceOp::getDevices() {
  SmallVector<int64_t> devices;
  for (size_t i = 0; i < getNumGroups(); ++i)
    llvm::append_range(devices, getGroup(i));
  return devices;
}

void VirtualDeviceOp::build(OpBuilder &builder, OperationState &state,
                            StringRef name,
                            ArrayRef<std::vector<int64_t>> groups) {
  SmallVector<Attribute> lists;
  for (ArrayRef<int64_t> group : groups)
    lists.push_back(builder.getDenseI64ArrayAttr(group));
  build(builder, state, name, builder.getArrayAttr(lists));
}

LogicalResult VirtualDeviceOp::verify() {
  if (getNumGroups() == 0)
    return emitOpError("has no devices");
  llvm::SmallSet<int64_t, 16> seen;
  for (size_t i = 0; i < getNumGroups(); ++i) {
    if (getGroup(i).empty())
      return emitOpError("list ") << i << " is empty";
    for (int64_t device : getGroup(i)) {
      if (const char *fault = findDeviceFault(device))
        return emitOpError("device ") << device << fault;
      if (!seen.insert(device).second)
        return emitOpError("device ") << device << " appears twice";
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// TaskGraphOp
//===----------------------------------------------------------------------===//

YieldOp TaskGraphOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

ScheduleStep TaskGraphOp::getStep(int64_t microBatch) {
  auto kind = getPhase() == Phase::Forward ? ScheduleStep::Forward
              : (*this)->hasAttr(kWeightGradientAttr)
                  ? ScheduleStep::WeightGradient
                  : ScheduleStep::Backward;
  auto chunk = (*this)->getAttrOfType<IntegerAttr>(kChunkAttr);
  return {kind, chunk ? chunk.getInt() : 0, microBatch};
}

LogicalResult TaskGraphOp::verify() {
  auto yield = dyn_cast<YieldOp>(getBody().front().getTerminator());
  if (!yield)
    return emitOpError("ends with '")
           << getBody().front().getTerminator()->getName()
           << "', expected 'whale.yield'";
  if (yield.getValues().getTypes() != getResultTypes())
    return emitOpError("yields (")
           << yield.getValues().getTypes() << ") but its results are ("
           << getResultTypes() << ")";
  if (getName().empty())
    return emitOpError("has an empty name");
  for (auto [value, what] :
       {std::pair(getFlops(), "flops"), {getBytes(), "bytes"}})
    if (value && int64_t(*value) < 0)
      return emitOpError() << what << " is negative";
  if ((*this)->getParentOfType<TaskGraphOp>())
    return emitOpError("is inside another task graph");
  return success();
}

LogicalResult
TaskGraphOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  FlatSymbolRefAttr name = getVirtualDeviceAttr();
  if (!name)
    return success();
  Operation *found = symbolTable.lookupNearestSymbolFrom(*this, name);
  if (!isa_and_nonnull<VirtualDeviceOp>(found))
    return emitOpError("virtual device ")
           << name << (found ? " is another kind of symbol" : " is undefined");
  return success();
}

//===----------------------------------------------------------------------===//
// ReshardOp
//===----------------------------------------------------------------------===//

LogicalResult ReshardOp::verify() {
  ArrayRef<int64_t> shape = getInput().getType().getShape();
  for (auto [placement, name] : {std::pair(getFrom(), "from"), {getTo(), "to"}})
    if (!placement.getValue().isViewOf(shape))
      return emitOpError("'")
             << name << "' has the view [" << placement.getValue().view()
             << "], which is not a view of " << getInput().getType();
  if (getFrom().getValue().hasWindows())
    return emitOpError("'from' is ") << getFrom().getValue().str()
                                     << ": windows are allowed in 'to' only";
  std::optional<Reduction> from = getFrom().getValue().reduction();
  std::optional<Reduction> to = getTo().getValue().reduction();
  if (from && to && *from != *to)
    return emitOpError("'from' is a partial ")
           << stringifyReduction(*from) << " and 'to' a partial "
           << stringifyReduction(*to);
  auto isHalf = [](Type type) { return type.isBF16() || type.isF16(); };
  if (std::optional<Type> wire = getWire()) {
    Type element = getInput().getType().getElementType();
    if (!isHalf(*wire) || !(element.isF32() || isHalf(element)))
      return emitOpError("has elements of ")
             << element << ", which are not sent as " << *wire;
    if (from != Reduction::Sum)
      return emitOpError("'wire' is of partial sums");
  }
  if (getScale() && (!getWire() || !(getScale()->convertToDouble() > 0)))
    return emitOpError("'scale' is positive, and stands beside 'wire'");
  return success();
}

//===----------------------------------------------------------------------===//
// ShardOffsetOp
//===----------------------------------------------------------------------===//

LogicalResult ShardOffsetOp::verify() {
  const Placement &placement = getPlacement().getValue();
  int64_t dim = getDim();
  if (dim < 0 || dim >= placement.rank())
    return emitOpError("dimension ")
           << dim << " is outside the view [" << placement.view() << "]";
  for (int64_t rank : getRanks(*this).value_or(ArrayRef<int64_t>()))
    if (!placement.contains(rank))
      return emitOpError("rank ") << rank << " holds no part of the value";
  return success();
}
