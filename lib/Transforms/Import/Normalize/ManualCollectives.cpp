//===- ManualCollectives.cpp - Collectives of manual computations ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a collective and each device's value of its operands. Out: operations
// that compute each device's results from the values of its group, in the order
// in which the group lists its members.
//
// Cost: for a group of n devices, n - 1 copies of the reducer's operations
// where it reduces, n slices where it scatters, the square of n for an
// all-to-all; all others need one operation or none. The lists of groups are
// read once, linear in the devices.
//
//===----------------------------------------------------------------------===//

#include "ManualCollectives.h"

#include "Patterns.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace whale::normalize {

bool isCollective(Operation *op) {
  return isa<stablehlo::AllGatherOp, stablehlo::AllReduceOp,
             stablehlo::AllToAllOp, stablehlo::CollectiveBroadcastOp,
             stablehlo::CollectivePermuteOp, stablehlo::ReduceScatterOp>(op);
}

/// The scalar code of a reducer on whole tensors.
static FailureOr<Value> combine(OpBuilder &b, Block &reducer, Value lhs,
                                Value rhs) {
  auto type = cast<RankedTensorType>(lhs.getType());
  IRMapping mapping;
  mapping.map(reducer.getArguments(), ValueRange{lhs, rhs});
  for (Operation &inner : reducer.without_terminator()) {
    if (isa<sdy::ShardingConstraintOp>(inner)) {
      mapping.map(inner.getResult(0),
                  mapping.lookupOrDefault(inner.getOperand(0)));
      continue;
    }
    if (inner.getNumRegions() != 0 || inner.getNumResults() != 1)
      return inner.emitOpError("is not supported in a collective's reducer");
    Type result = type.clone(getElementTypeOrSelf(inner.getResult(0)));
    Operation *cloned = b.clone(inner, mapping);
    if (auto constant = dyn_cast<stablehlo::ConstantOp>(cloned))
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue())
                                .resizeSplat(cast<ShapedType>(result)));
    cloned->getResult(0).setType(result);
    mapping.map(inner.getResult(0), cloned->getResult(0));
  }
  return mapping.lookupOrDefault(reducer.getTerminator()->getOperand(0));
}

static FailureOr<Value> reduce(OpBuilder &b, Block &reducer,
                               ArrayRef<Value> values) {
  Value result = values.front();
  for (Value value : values.drop_front()) {
    FailureOr<Value> next = combine(b, reducer, result, value);
    if (failed(next))
      return failure();
    result = *next;
  }
  return result;
}

/// Lists of devices, as positions in the mesh, that an attribute names by id.
/// Ids below 0 fill up lists that are shorter than others.
static FailureOr<SmallVector<SmallVector<int64_t>>>
readLists(Operation *op, const Devices &devices, StringRef attribute) {
  int64_t count = devices.count();
  SmallVector<int64_t> positionOf(count);
  for (int64_t position = 0; position < count; ++position) {
    int64_t id = devices.id(position);
    if (id < 0 || id >= count)
      return op->emitOpError("runs on a mesh of unknown devices");
    positionOf[id] = position;
  }
  std::optional<Attribute> found = op->getInherentAttr(attribute);
  auto ids = dyn_cast_or_null<DenseIntElementsAttr>(
      found ? *found : op->getAttr(attribute));
  if (!ids)
    return op->emitOpError("does not say between which devices it goes");
  size_t width = ids.getType().getShape().back();
  SmallVector<SmallVector<int64_t>> lists;
  for (auto [number, value] : llvm::enumerate(ids.getValues<APInt>())) {
    if (number % width == 0)
      lists.emplace_back();
    int64_t id = value.getSExtValue();
    if (id >= count)
      return op->emitOpError("names device ")
             << id << " of a mesh of " << count;
    if (id >= 0)
      lists.back().push_back(positionOf[id]);
  }
  return lists;
}

/// The replica groups; a device in none is a group of its own.
static FailureOr<SmallVector<SmallVector<int64_t>>>
readGroups(Operation *op, const Devices &devices) {
  auto groups = readLists(op, devices, "replica_groups");
  if (failed(groups))
    return failure();
  llvm::SmallBitVector alone(devices.count(), true);
  for (ArrayRef<int64_t> group : *groups)
    for (int64_t member : group)
      alone.reset(member);
  for (unsigned position : alone.set_bits())
    groups->push_back({int64_t(position)});
  return groups;
}

static FailureOr<SmallVector<Values>>
emitPermute(OpBuilder &b, stablehlo::CollectivePermuteOp op,
            const Devices &devices, ArrayRef<Values> operands) {
  auto pairs = readLists(op, devices, "source_target_pairs");
  if (failed(pairs))
    return failure();
  SmallVector<Values> results;
  for (auto [from, result] : llvm::zip_equal(operands, op->getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    // What no device sends to is 0.
    Value zero = stablehlo::ConstantOp::create(
        b, op.getLoc(), cast<DenseElementsAttr>(b.getZeroAttr(type)));
    Values &to = results.emplace_back(devices.count(), zero);
    for (ArrayRef<int64_t> pair : *pairs)
      to[pair[1]] = from[pair[0]];
  }
  return results;
}

/// What the members of a group get of the values that they give. `result` is a
/// result of the collective.
static FailureOr<Values> emitGroup(OpBuilder &b, OpResult result,
                                   const Values &given) {
  using Result = FailureOr<Values>;
  Operation *op = result.getOwner();
  Location loc = op->getLoc();
  size_t size = given.size();
  auto type = cast<RankedTensorType>(result.getType());
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](stablehlo::AllReduceOp) -> Result {
        FailureOr<Value> sum = reduce(b, op->getRegion(0).front(), given);
        return failed(sum) ? Result(failure()) : Values(size, *sum);
      })
      .Case([&](stablehlo::ReduceScatterOp scatter) -> Result {
        FailureOr<Value> sum = reduce(b, op->getRegion(0).front(), given);
        if (failed(sum))
          return failure();
        int64_t dim = scatter.getScatterDimension();
        Values taken;
        for (size_t member = 0; member < size; ++member)
          taken.push_back(
              slice(b, loc, *sum, dim, member, type.getDimSize(dim)));
        return taken;
      })
      .Case([&](stablehlo::AllGatherOp gather) -> Result {
        return Values(size,
                      concatenate(b, loc, given, gather.getAllGatherDim()));
      })
      .Case([&](stablehlo::AllToAllOp exchange) -> Result {
        int64_t dim = exchange.getSplitDimension();
        int64_t extent =
            cast<RankedTensorType>(given.front().getType()).getDimSize(dim);
        Values taken;
        for (size_t member = 0; member < size; ++member) {
          Values parts;
          for (Value value : given)
            parts.push_back(slice(b, loc, value, dim, member, extent / size));
          taken.push_back(
              concatenate(b, loc, parts, exchange.getConcatDimension()));
        }
        return taken;
      })
      .Case([&](stablehlo::CollectiveBroadcastOp) {
        return Values(size, given.front());
      });
}

FailureOr<SmallVector<Values>> emitCollective(OpBuilder &b, Operation *op,
                                              const Devices &devices,
                                              ArrayRef<Values> operands) {
  // Its reducer is written out where nothing of the body around it is.
  if (failed(closeRegions(op)))
    return failure();
  if (auto permute = dyn_cast<stablehlo::CollectivePermuteOp>(op))
    return emitPermute(b, permute, devices, operands);
  auto groups = readGroups(op, devices);
  if (failed(groups))
    return failure();
  SmallVector<Values> results;
  for (auto [from, result] : llvm::zip_equal(operands, op->getResults())) {
    Values &to = results.emplace_back(devices.count());
    for (ArrayRef<int64_t> group : *groups) {
      // A list of fillers alone.
      if (group.empty())
        continue;
      Values given;
      for (int64_t member : group)
        given.push_back(from[member]);
      FailureOr<Values> taken = emitGroup(b, result, given);
      if (failed(taken))
        return failure();
      for (auto [member, value] : llvm::zip_equal(group, *taken))
        to[member] = value;
    }
  }
  return results;
}

} // namespace whale::normalize
