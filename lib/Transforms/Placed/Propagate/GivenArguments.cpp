//===- GivenArguments.cpp - Arguments that lie somewhere already ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: arguments with the placements that another program has them in. Out:
// seeds of the propagation, so that what uses them follows.
//
// Of all layouts that an argument could have on the devices of its first use,
// that is taken whose parts have most in common with the given ones: sizes may
// differ, where devices are balanced for another step. Cost: for each placement
// and type a placement for each pair of pieces.
//
//===----------------------------------------------------------------------===//

#include "StepLayouts.h"

#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Sharding/GivenPlacements.h"
#include "whale/Sharding/PlacementAttrs.h"

using namespace mlir;

namespace whale {

/// How many elements devices have of one placement and not of the other.
static int64_t countOthers(const Placement &given, const Placement &wanted) {
  int64_t count = 0;
  for (const Shard &shard : given.shards()) {
    std::optional<Box> box = wanted.box(shard.device);
    std::optional<Box> same =
        box ? convertBox(*box, wanted.view(), given.view()) : std::nullopt;
    if (!same) {
      count += shard.box.volume() + (box ? box->volume() : 0);
      continue;
    }
    std::optional<Box> common = shard.box.intersect(*same);
    count += shard.box.volume() + same->volume() -
             2 * (common ? common->volume() : 0);
  }
  for (const Shard &shard : wanted.shards())
    if (!given.contains(shard.device))
      count += shard.box.volume();
  return count;
}

static int64_t countElements(const Placement &placement) {
  int64_t count = 0;
  for (const Shard &shard : placement.shards())
    count += shard.box.volume();
  return count;
}

std::optional<std::array<AxisState, 2>>
StepLayouts::findStates(const Mesh &mesh, Value value, const Placement &given,
                        Factorization &factorization) const {
  SmallVector<AxisState> choices{AxisState::replicated()};
  for (const DimPiece &piece : factorization.getPieces(value))
    choices.push_back(AxisState::split(piece));
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  std::optional<std::array<AxisState, 2>> best;
  // Where more than half is elsewhere, another one cut is no likeness.
  int64_t least = countElements(given) / 2;
  for (const AxisState &outer : choices)
    for (const AxisState &inner : choices) {
      if ((outer.isSplit() && mesh.getNumParts(0) == 1) ||
          (inner.isSplit() && mesh.getNumParts(1) == 1))
        continue;
      // Pieces of one dimension are equal or disjoint.
      if (outer.isSplit() && inner.isSplit() && !(outer == inner) &&
          outer.piece.dim == inner.piece.dim)
        continue;
      int64_t others =
          countOthers(given, mesh.place(shape, {outer, inner}, std::nullopt));
      if (others < least || (others == 0 && least == 0 && !best)) {
        least = others;
        best = {outer, inner};
      }
    }
  return best;
}

void StepLayouts::findGiven(Factorization &factorization) {
  int64_t bytes = 0;
  unsigned count = 0;
  for (BlockArgument argument : function.getArguments()) {
    PlacementAttr given = getGivenPlacement(argument);
    if (!given)
      continue;
    ++count;
    bytes += getTensorBytes(argument.getType());
    if (batchSeeds.contains(argument))
      continue;
    const Mesh *mesh = meshes.meshOfValue(argument);
    std::optional<std::array<AxisState, 2>> states =
        findStates(*mesh, argument, given.getValue(), factorization);
    if (!states)
      continue;
    for (unsigned axis : {0, 1})
      givenSeeds[axis][argument] = (*states)[axis];
  }
  if (count > 0)
    emitRemark(function.getLoc())
        << "given: " << count << " arguments of " << bytes
        << " bytes lie where another program has them";
}

void StepLayouts::seedGiven(AxisPropagation::Options &options,
                            unsigned axis) const {
  for (auto [argument, state] : givenSeeds[axis]) {
    options.seeds[argument] = state;
    if (!state.isSplit())
      continue;
    // Replicas gather what they have a part of where they use it; what a split
    // TaskGraph uses is a parameter as others are.
    bool isShared = llvm::any_of(argument.getUsers(), [&](Operation *user) {
      return isReplicated(user, axis);
    });
    if (isShared)
      options.stored.insert(argument);
    else
      options.parameters.insert(argument);
  }
}

void StepLayouts::leaveOutGiven(SmallVectorImpl<ParameterGroup> &groups) const {
  for (ParameterGroup &group : groups)
    llvm::erase_if(group.parameters, [&](BlockArgument parameter) {
      return givenSeeds[1].contains(parameter);
    });
  llvm::erase_if(groups, [](const ParameterGroup &group) {
    return group.parameters.empty();
  });
}

} // namespace whale
