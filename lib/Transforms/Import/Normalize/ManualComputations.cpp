//===- ManualComputations.cpp - Programs written for one device -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: manual computations (shard_map, pmap): what each device of a mesh does
// with its shard. Out: the same on whole values.
//
// Whale decides about devices itself, so the body is written out for all of
// them: a value becomes one value for each device of the mesh (a single one as
// long as they agree), and collectives compute from the values of their group.
// Cost: the body's operations times the devices on which they differ. A loop
// with collectives is written anew while carried values turn out to differ
// between devices, at most once for each of them; with loops inside, these
// numbers multiply. Results are put together by a search among the devices for
// each block: the square of the devices.
//
//===----------------------------------------------------------------------===//

#include "ManualCollectives.h"
#include "Patterns.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/Reads.h"

#include "mlir/IR/IRMapping.h"

#include <map>

using namespace mlir;

namespace whale::normalize {

namespace {

/// Writes out a manual computation, and those inside of it.
class Expander {
public:
  Expander(sdy::ManualComputationOp op, Devices devices)
      : op(op), devices(devices), count(devices.count()), b(op) {}

  LogicalResult run() {
    Map map;
    if (failed(emitManual(op, map)))
      return failure();
    for (Value result : op->getResults())
      result.replaceAllUsesWith(map[result].front());
    op->erase();
    return success();
  }

private:
  using Map = DenseMap<Value, Values>;

  LogicalResult emitManual(sdy::ManualComputationOp inner, Map &map);
  LogicalResult emit(Block &block, Map &map);
  LogicalResult emitTogether(Operation *inner, Map &map);
  LogicalResult emitWhile(stablehlo::WhileOp loop, Map &map);
  LogicalResult emitBranches(Operation *inner, Map &map);
  void emitEach(Operation *inner, Map &map);
  Operation *cloneFor(int64_t device, Operation *inner, Map &map);

  Value assemble(sdy::TensorShardingAttr sharding, sdy::ManualAxesAttr manual,
                 ArrayRef<int64_t> peers, const Values &values,
                 SmallVector<int64_t> &at);

  /// A value of the body on each device; one from outside is the same on all.
  Values lookup(Value value, Map &map) {
    auto it = map.find(value);
    return it == map.end() ? Values(count, value) : it->second;
  }

  sdy::ManualComputationOp op;
  Devices devices;
  int64_t count;
  OpBuilder b;
};

Operation *Expander::cloneFor(int64_t device, Operation *inner, Map &map) {
  IRMapping mapping;
  forEachRead(inner, [&](Value value) {
    if (auto it = map.find(value); it != map.end())
      mapping.map(value, it->second[device]);
  });
  Operation *cloned = b.clone(*inner, mapping);
  SmallVector<Operation *> numbers;
  cloned->walk([&](Operation *nested) {
    if (isa<stablehlo::PartitionIdOp, stablehlo::ReplicaIdOp>(nested))
      numbers.push_back(nested);
  });
  for (Operation *number : numbers) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(number);
    bool partition = isa<stablehlo::PartitionIdOp>(number);
    auto type = cast<RankedTensorType>(number->getResult(0).getType());
    auto constant = stablehlo::ConstantOp::create(
        b, number->getLoc(),
        DenseElementsAttr::get(type,
                               APInt(32, partition ? devices.id(device) : 0)));
    number->replaceAllUsesWith(constant);
    if (number == cloned)
      cloned = constant;
    number->erase();
  }
  return cloned;
}

/// An operation that devices do each for itself: once, if they all do the same.
void Expander::emitEach(Operation *inner, Map &map) {
  bool same = true;
  inner->walk([&](Operation *nested) {
    same &= !isa<stablehlo::PartitionIdOp>(nested);
  });
  forEachRead(inner, [&](Value value) {
    if (auto it = map.find(value); it != map.end())
      same &= agree(it->second);
  });
  SmallVector<Operation *> copies;
  for (int64_t device = 0; device < count; ++device)
    copies.push_back(same && device ? copies[0] : cloneFor(device, inner, map));
  for (auto [number, result] : llvm::enumerate(inner->getResults())) {
    Values &values = map[result];
    values.clear();
    for (Operation *copy : copies)
      values.push_back(copy->getResult(number));
  }
}

LogicalResult Expander::emitWhile(stablehlo::WhileOp loop, Map &map) {
  // Which carried values stay the same on all devices: those that start so,
  // as long as the body leaves them so.
  unsigned carried = loop->getNumOperands();
  llvm::BitVector same(carried);
  SmallVector<Values> initial;
  for (auto [number, operand] : llvm::enumerate(loop->getOperands())) {
    initial.push_back(lookup(operand, map));
    if (agree(initial.back()))
      same.set(number);
  }
  while (true) {
    Values operands;
    for (unsigned number = 0; number < carried; ++number)
      for (int64_t device = 0; device < (same[number] ? 1 : count); ++device)
        operands.push_back(initial[number][device]);
    auto types = llvm::to_vector(ValueRange(operands).getTypes());
    auto joint = stablehlo::WhileOp::create(b, loop.getLoc(), types, operands);
    auto distribute = [&](ValueRange flat, ValueRange of, Map &inside) {
      unsigned next = 0;
      for (unsigned number = 0; number < carried; ++number) {
        Values &values = inside[of[number]];
        values.clear();
        for (int64_t device = 0; device < count; ++device)
          values.push_back(flat[next + (same[number] ? 0 : device)]);
        next += same[number] ? 1 : count;
      }
    };
    SmallVector<Location> locations(types.size(), loop.getLoc());
    Map inside = map;
    bool again = false;
    for (unsigned region = 0; region < 2; ++region) {
      OpBuilder::InsertionGuard guard(b);
      Block &from = loop->getRegion(region).front();
      Block *block =
          b.createBlock(&joint->getRegion(region), {}, types, locations);
      distribute(block->getArguments(), from.getArguments(), inside);
      if (failed(emit(from, inside)))
        return failure();
      Operation *terminator = from.getTerminator();
      Values returned;
      for (auto [number, operand] :
           llvm::enumerate(terminator->getOperands())) {
        Values values = lookup(operand, inside);
        bool single = region == 0 || same[number];
        if (single && !agree(values)) {
          if (region == 0)
            return loop.emitOpError("has collectives in its body and a "
                                    "condition that differs between devices");
          same.reset(number);
          again = true;
        }
        llvm::append_range(returned,
                           single ? ArrayRef(values).take_front() : values);
      }
      if (!again)
        stablehlo::ReturnOp::create(b, loop.getLoc(), returned);
    }
    if (!again) {
      distribute(joint->getResults(), loop->getResults(), map);
      return success();
    }
    joint->erase();
  }
}

LogicalResult Expander::emitBranches(Operation *inner, Map &map) {
  Values index = lookup(inner->getOperand(0), map);
  if (!agree(index))
    return inner->emitOpError("has collectives in its branches, and which of "
                              "them is taken differs between devices");
  SmallVector<Type> types;
  for (Type type : inner->getResultTypes())
    types.append(count, type);
  OperationState state(inner->getLoc(), inner->getName(), index[0], types);
  for (unsigned region = 0; region < inner->getNumRegions(); ++region)
    state.addRegion();
  Operation *joint = b.create(state);
  for (unsigned region = 0; region < inner->getNumRegions(); ++region) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&joint->getRegion(region));
    Block &from = inner->getRegion(region).front();
    Map inside = map;
    if (failed(emit(from, inside)))
      return failure();
    Values returned;
    for (Value operand : from.getTerminator()->getOperands())
      llvm::append_range(returned, lookup(operand, inside));
    stablehlo::ReturnOp::create(b, inner->getLoc(), returned);
  }
  for (auto [number, result] : llvm::enumerate(inner->getResults()))
    map[result] = llvm::to_vector_of<Value>(
        joint->getResults().slice(number * count, count));
  return success();
}

/// An operation in which devices meet.
LogicalResult Expander::emitTogether(Operation *inner, Map &map) {
  if (isCollective(inner)) {
    auto operands = llvm::map_to_vector(
        inner->getOperands(), [&](Value value) { return lookup(value, map); });
    FailureOr<SmallVector<Values>> results =
        emitCollective(b, inner, devices, operands);
    if (failed(results))
      return failure();
    for (auto [result, values] : llvm::zip_equal(inner->getResults(), *results))
      map[result] = values;
    return success();
  }
  if (auto manual = dyn_cast<sdy::ManualComputationOp>(inner))
    return emitManual(manual, map);
  if (auto loop = dyn_cast<stablehlo::WhileOp>(inner))
    return emitWhile(loop, map);
  if (stablehlo::isBranch(inner))
    return emitBranches(inner, map);
  return inner->emitOpError("holds collectives, which is not supported");
}

LogicalResult Expander::emit(Block &block, Map &map) {
  for (Operation &inner : block.without_terminator()) {
    auto find = [](Operation *nested) {
      return isCollective(nested) || isa<sdy::ManualComputationOp>(nested)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    };
    bool meets = inner.walk(find).wasInterrupted();
    if (!meets)
      emitEach(&inner, map);
    else if (failed(emitTogether(&inner, map)))
      return failure();
  }
  return success();
}

/// Joins the blocks of dimension at.size() and on, of those peers whose blocks
/// of the dimensions before are `at`.
Value Expander::assemble(sdy::TensorShardingAttr sharding,
                         sdy::ManualAxesAttr manual, ArrayRef<int64_t> peers,
                         const Values &values, SmallVector<int64_t> &at) {
  int64_t dim = at.size();
  if (dim == cast<RankedTensorType>(values.front().getType()).getRank()) {
    for (int64_t device : peers) {
      bool matches = true;
      for (auto [d, index] : llvm::enumerate(at))
        matches &= devices.block(device, sharding, d, manual).first == index;
      if (matches)
        return values[device];
    }
    llvm_unreachable("a block without a device");
  }
  Values parts;
  int64_t blocks = devices.block(0, sharding, dim, manual).second;
  for (int64_t index = 0; index < blocks; ++index) {
    at.push_back(index);
    parts.push_back(assemble(sharding, manual, peers, values, at));
    at.pop_back();
  }
  return concatenate(b, op.getLoc(), parts, dim);
}

/// Each device cuts its block out of its operands, and joins its results with
/// those of the devices along the manual axes.
LogicalResult Expander::emitManual(sdy::ManualComputationOp inner, Map &map) {
  FailureOr<sdy::MeshAttr> mesh = meshOf(inner);
  if (failed(mesh))
    return failure();
  if (*mesh != devices.mesh)
    return inner.emitOpError("is on another mesh than the one around it");
  sdy::ManualAxesAttr manual = inner.getManualAxes();
  for (auto [operand, argument, sharding] :
       llvm::zip_equal(inner.getTensors(), inner.getBody().getArguments(),
                       inner.getInShardings().getShardings())) {
    auto local = cast<RankedTensorType>(argument.getType());
    // Devices with the same block share the value.
    std::map<std::pair<void *, SmallVector<int64_t>>, Value> shards;
    Values from = lookup(operand, map), to;
    for (int64_t device = 0; device < count; ++device) {
      SmallVector<int64_t> at;
      for (int64_t dim = 0; dim < local.getRank(); ++dim)
        at.push_back(devices.block(device, sharding, dim, manual).first);
      Value &shard = shards[{from[device].getAsOpaquePointer(), at}];
      if (!shard) {
        shard = from[device];
        for (int64_t dim = 0; dim < local.getRank(); ++dim)
          shard =
              slice(b, op.getLoc(), shard, dim, at[dim], local.getDimSize(dim));
      }
      to.push_back(shard);
    }
    map[argument] = to;
  }
  Block &body = inner.getBody().front();
  if (failed(emit(body, map)))
    return failure();
  std::map<int64_t, SmallVector<int64_t>> groups;
  for (int64_t device = 0; device < count; ++device)
    groups[devices.firstPeer(device, manual)].push_back(device);
  for (auto [operand, result, sharding] :
       llvm::zip_equal(body.getTerminator()->getOperands(), inner->getResults(),
                       inner.getOutShardings().getShardings())) {
    Values from = lookup(operand, map), to(count);
    for (const auto &[first, peers] : groups) {
      SmallVector<int64_t> at;
      Value whole = assemble(sharding, manual, peers, from, at);
      if (whole.getType() != result.getType())
        return inner.emitOpError("gives shards that do not make up ")
               << result.getType();
      for (int64_t device : peers)
        to[device] = whole;
    }
    // Devices that computed the same have the same.
    if (agree(from))
      to.assign(count, to.front());
    map[result] = to;
  }
  return success();
}

} // namespace

LogicalResult expandManualComputations(ModuleOp module) {
  SmallVector<sdy::ManualComputationOp> found;
  module.walk<WalkOrder::PreOrder>([&](sdy::ManualComputationOp op) {
    found.push_back(op);
    return WalkResult::skip();
  });
  for (sdy::ManualComputationOp op : found) {
    FailureOr<sdy::MeshAttr> mesh = meshOf(op);
    if (failed(mesh) || failed(Expander(op, Devices{*mesh}).run()))
      return failure();
  }
  return success();
}

} // namespace whale::normalize
