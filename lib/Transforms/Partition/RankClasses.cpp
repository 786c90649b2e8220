//===- RankClasses.cpp - Ranks that run the same function -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankClasses.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/Localize.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// For each rank the padding of its parts of images in every convolution.
static std::vector<std::vector<int64_t>> collectPaddings(func::FuncOp main,
                                                         int64_t deviceCount) {
  std::vector<std::vector<int64_t>> paddings(deviceCount);
  main.walk([&](hlo::ConvolutionOp op) {
    std::optional<OpRule> rule = getOpRule(op);
    if (!rule || rule->windows.empty())
      return;
    SmallVector<Placement> operands;
    for (Value operand : op->getOperands())
      operands.push_back(getPlacement(operand).getValue());
    for (auto [rank, list] : llvm::enumerate(paddings)) {
      SmallVector<int64_t> own = getLocalPadding(
          op, *rule, operands, getPlacement(op).getValue(), rank);
      list.push_back(int64_t(own.size()));
      llvm::append_range(list, own);
    }
  });
  return paddings;
}

/// Every placement that a value has in the step, between the steps of a reshard
/// too.
static llvm::SetVector<Attribute>
collectPlacements(func::FuncOp main, const ResolvedReshards &reshards) {
  llvm::SetVector<Attribute> placements;
  main.walk([&](ReshardOp reshard) {
    for (const Step &step : reshards.at(reshard).steps)
      for (const Placement &placement : {step.from, step.to})
        placements.insert(PlacementAttr::get(main.getContext(), placement));
  });
  for (BlockArgument argument : main.getArguments())
    placements.insert(getPlacement(argument));
  main.walk([&](Operation *op) {
    if (auto list = op->getAttrOfType<ArrayAttr>(placementsAttrName))
      placements.insert(list.begin(), list.end());
  });
  return placements;
}

std::vector<std::vector<int64_t>>
findRankClasses(func::FuncOp main, const ResolvedReshards &reshards,
                int64_t rankCount) {
  llvm::SetVector<Attribute> placements = collectPlacements(main, reshards);
  std::vector<std::vector<int64_t>> paddings = collectPaddings(main, rankCount);
  std::map<std::vector<int64_t>, size_t> classOf;
  std::vector<std::vector<int64_t>> classes;
  for (int64_t rank = 0; rank < rankCount; ++rank) {
    std::vector<int64_t> key;
    for (Attribute attribute : placements) {
      std::optional<Box> box =
          cast<PlacementAttr>(attribute).getValue().box(rank);
      key.push_back(box ? int64_t(box->size.size()) : -1);
      if (box)
        llvm::append_range(key, box->size);
    }
    llvm::append_range(key, paddings[rank]);
    auto [it, isNew] = classOf.try_emplace(std::move(key), classes.size());
    if (isNew)
      classes.emplace_back();
    classes[it->second].push_back(rank);
  }
  return classes;
}

} // namespace whale
