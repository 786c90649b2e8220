//===- RankClasses.cpp - Ranks that run the same function -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankClasses.h"

#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/Localize.h"
#include "whale/Sharding/PlacementAttrs.h"

#include <map>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

void LocalSizes::addSteps(const ResolvedReshard &reshard,
                          MLIRContext *context) {
  for (const Step &step : reshard.steps)
    for (const Placement &placement : {step.from, step.to})
      addPlacement(PlacementAttr::get(context, placement));
}

void LocalSizes::addConvolution(hlo::ConvolutionOp op) {
  std::optional<OpRule> rule = getOpRule(op);
  if (!rule || rule->windows.empty())
    return;
  auto operands = llvm::map_to_vector(op->getOperands(), [](Value operand) {
    return getPlacement(operand).getValue();
  });
  convolutions.push_back({op, std::move(*rule), std::move(operands)});
}

std::vector<int64_t> LocalSizes::of(int64_t rank) const {
  std::vector<int64_t> sizes;
  for (Attribute placement : placements) {
    std::optional<Box> box =
        cast<PlacementAttr>(placement).getValue().box(rank);
    sizes.push_back(box ? int64_t(box->size.size()) : -1);
    if (box)
      llvm::append_range(sizes, box->size);
  }
  for (const Convolution &convolution : convolutions) {
    hlo::ConvolutionOp op = convolution.op;
    SmallVector<int64_t> padding =
        getLocalPadding(op, convolution.rule, convolution.operands,
                        getPlacement(op).getValue(), rank);
    sizes.push_back(int64_t(padding.size()));
    llvm::append_range(sizes, padding);
  }
  return sizes;
}

/// The sizes under every placement that a value has in the step, between the
/// steps of a reshard too.
static LocalSizes collectSizes(func::FuncOp main,
                               const ResolvedReshards &reshards) {
  LocalSizes sizes;
  main.walk([&](ReshardOp reshard) {
    sizes.addSteps(reshards.at(reshard), main.getContext());
  });
  for (BlockArgument argument : main.getArguments())
    sizes.addPlacement(getPlacement(argument));
  main.walk([&](Operation *op) {
    if (auto list = op->getAttrOfType<ArrayAttr>(placementsAttrName))
      llvm::for_each(
          list, [&](Attribute placement) { sizes.addPlacement(placement); });
    if (auto convolution = dyn_cast<hlo::ConvolutionOp>(op))
      sizes.addConvolution(convolution);
  });
  return sizes;
}

std::vector<std::vector<int64_t>>
findRankClasses(func::FuncOp main, const ResolvedReshards &reshards,
                int64_t rankCount) {
  LocalSizes sizes = collectSizes(main, reshards);
  std::map<std::vector<int64_t>, size_t> classOf;
  std::vector<std::vector<int64_t>> classes;
  for (int64_t rank = 0; rank < rankCount; ++rank) {
    auto [it, isNew] = classOf.try_emplace(sizes.of(rank), classes.size());
    if (isNew)
      classes.emplace_back();
    classes[it->second].push_back(rank);
  }
  return classes;
}

} // namespace whale
