//===- ResolveReshards.cpp - Reshards as collectives ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ResolveReshards.h"

#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/PlacementAttrs.h"

#include <map>

using namespace mlir;

namespace whale {

/// The loop, branch or function that holds an operation: task graphs are
/// flattened, so what one of them has moved is there for all that follow. But
/// an argument that a task graph gathers by itself (whale-insert-reshards) is
/// there for that one alone.
static Operation *getScope(ReshardOp reshard) {
  Operation *scope = reshard->getParentOp();
  auto argument = dyn_cast<BlockArgument>(reshard.getInput());
  if (argument && isa<TaskGraphOp>(scope) &&
      isa<func::FuncOp>(argument.getOwner()->getParentOp()))
    return scope;
  while (isa<TaskGraphOp>(scope))
    scope = scope->getParentOp();
  return scope;
}

static std::vector<Step> resolve(ReshardOp reshard, const Topology &topology) {
  auto type = cast<RankedTensorType>(reshard.getType());
  return resolve(type.getShape(), reshard.getFromAttr().getValue(),
                 reshard.getToAttr().getValue(), topology);
}

/// Whether devices have all that they had, or need it no more. Where a value
/// becomes partial, one replica keeps it and the others get an identity.
static bool isNothing(const Step &step) {
  return step.kind == StepKind::LocalSlice && !step.to.isPartial() &&
         llvm::all_of(step.to.devices(), [&](DeviceId device) {
           std::optional<Box> from = step.from.box(device);
           std::optional<Box> to = step.to.box(device);
           return from && to && from->volume() == to->volume();
         });
}

ResolvedReshards resolveReshards(Operation *function,
                                 const Topology &topology) {
  ResolvedReshards reshards;
  int64_t channel = 0;
  // By value, placement and scope: what has brought it there.
  std::map<std::tuple<const void *, const void *, Operation *>, Operation *>
      done;
  // Layers repeat the same few resharding steps.
  using Case = std::tuple<Attribute, Attribute, Type>;
  llvm::DenseMap<Case, ResolvedReshard> known;
  function->walk([&](ReshardOp reshard) {
    ResolvedReshard &resolved = reshards[reshard];
    Value source = lookThroughTaskGraph(reshard.getInput());
    auto [first, isFirst] = done.try_emplace(
        {source.getAsOpaquePointer(), reshard.getToAttr().getAsOpaquePointer(),
         getScope(reshard)},
        reshard);
    if (!isFirst) {
      resolved.earlier = first->second;
      return;
    }
    auto [it, isNew] = known.try_emplace(
        Case(reshard.getFromAttr(), reshard.getToAttr(), reshard.getType()));
    ResolvedReshard &same = it->second;
    if (isNew) {
      same.steps = resolve(reshard, topology);
      for (const Step &step : same.steps)
        same.isNothing.push_back(isNothing(step));
    }
    resolved = same;
    resolved.firstChannel = channel;
    channel += resolved.steps.size();
  });
  return reshards;
}

} // namespace whale
