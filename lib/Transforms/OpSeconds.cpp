//===- OpSeconds.cpp - How long operations take ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Step/CostModel.h"
#include "whale/Transforms/OpCost.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace whale {

OpClass opClassOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, OpClass>(op)
      .Case<stablehlo::DotGeneralOp>([](auto) { return OpClass::Matmul; })
      .Case<AttentionOp, AttentionGradientOp>(
          [](auto) { return OpClass::Attention; })
      .Case<stablehlo::ConvolutionOp>([](auto) { return OpClass::Convolution; })
      .Case<stablehlo::ReduceOp, stablehlo::ReduceWindowOp,
            stablehlo::SelectAndScatterOp>(
          [](auto) { return OpClass::Reduction; })
      .Case<stablehlo::CholeskyOp, stablehlo::CustomCallOp, stablehlo::FftOp,
            stablehlo::GatherOp, stablehlo::RngBitGeneratorOp,
            stablehlo::ScatterOp, stablehlo::SortOp,
            stablehlo::TriangularSolveOp>([](auto) { return OpClass::Other; })
      .Default([](auto) { return OpClass::Elementwise; });
}

using Seconds = double (*)(Operation *, const CostModel &, int64_t);

static double regionSeconds(Region &region, const CostModel &model,
                            int64_t device, Seconds secondsOf) {
  double sum = 0;
  for (Block &block : region)
    for (Operation &op : block.without_terminator())
      sum += secondsOf(&op, model, device);
  return sum;
}

/// The branch that takes longest, and its seconds: each branch is looked at
/// once, as branches nest.
static std::pair<Region *, double> findLongestBranch(Operation *branch,
                                                     const CostModel &model,
                                                     int64_t device,
                                                     Seconds secondsOf) {
  Region *longest = nullptr;
  double most = 0;
  for (Region &region : branch->getRegions()) {
    double seconds = regionSeconds(region, model, device, secondsOf);
    if (longest && seconds <= most)
      continue;
    longest = &region;
    most = seconds;
  }
  return {longest, most};
}

Region &longestBranch(Operation *branch, const CostModel &model,
                      int64_t device) {
  return *findLongestBranch(branch, model, device, opSeconds).first;
}

/// Of a matrix product's three extents; 0 where one of them is.
static double smallestExtent(stablehlo::DotGeneralOp dot) {
  auto lhs = cast<ShapedType>(dot.getLhs().getType());
  auto rhs = cast<ShapedType>(dot.getRhs().getType());
  auto numbers = dot.getDotDimensionNumbers();
  double batch = 1, contracted = 1;
  for (int64_t dim : numbers.getLhsBatchingDimensions())
    batch *= double(lhs.getDimSize(dim));
  for (int64_t dim : numbers.getLhsContractingDimensions())
    contracted *= double(lhs.getDimSize(dim));
  double shared = batch * contracted;
  if (shared == 0)
    return 0;
  return std::min({contracted, double(lhs.getNumElements()) / shared,
                   double(rhs.getNumElements()) / shared});
}

double windowPlaces(Value filter, ArrayRef<int64_t> filterDims, Value result,
                    ArrayRef<int64_t> resultDims) {
  auto placesOf = [](Value value, ArrayRef<int64_t> dims) {
    double places = 1;
    for (int64_t dim : dims)
      places *= double(cast<ShapedType>(value.getType()).getDimSize(dim));
    return places;
  };
  return std::min(placesOf(filter, filterDims), placesOf(result, resultDims));
}

/// Of a loop or branch, from those of what is inside; none for all others.
static std::optional<double> controlFlowSeconds(Operation *op,
                                                const CostModel &model,
                                                int64_t device,
                                                Seconds secondsOf) {
  if (auto loop = dyn_cast<stablehlo::WhileOp>(op))
    return repeatCost(
        double(tripCount(loop).value_or(1)),
        regionSeconds(loop.getCond(), model, device, secondsOf) +
            regionSeconds(loop.getBody(), model, device, secondsOf));
  if (stablehlo::isBranch(op))
    return findLongestBranch(op, model, device, secondsOf).second;
  return std::nullopt;
}

/// The work of an operation without regions of steps, whose element type's name
/// `dtype` keeps; none where nothing is left of it but an index or a splat.
static std::optional<OpCost> costOf(Operation *op, std::string &dtype) {
  if (op->getNumResults() == 0 || op->hasTrait<OpTrait::ConstantLike>() ||
      isa<stablehlo::BroadcastInDimOp, stablehlo::IotaOp,
          stablehlo::OptimizationBarrierOp, stablehlo::ReshapeOp>(op))
    return std::nullopt;
  OpCost cost;
  cost.opClass = opClassOf(op);
  // It is fused with others.
  cost.startsKernel = cost.opClass != OpClass::Elementwise;
  cost.flops = double(opFlops(op));
  cost.bytes = cost.opClass == OpClass::Elementwise
                   ? double(getTensorBytes(op->getResult(0).getType()))
                   : double(opBytes(op));
  if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op))
    cost.extent = smallestExtent(dot);
  if (auto convolution = dyn_cast<stablehlo::ConvolutionOp>(op)) {
    auto numbers = convolution.getDimensionNumbers();
    cost.extent = windowPlaces(
        convolution.getRhs(), numbers.getKernelSpatialDimensions(),
        convolution.getResult(), numbers.getOutputSpatialDimensions());
  }
  Type type = op->getNumOperands() ? op->getOperand(0).getType()
                                   : op->getResult(0).getType();
  if (auto shaped = dyn_cast<ShapedType>(type))
    dtype = getDTypeName(shaped.getElementType());
  cost.dtype = dtype;
  return cost;
}

double opSeconds(Operation *op, const CostModel &model, int64_t device) {
  if (auto inside = controlFlowSeconds(op, model, device, opSeconds))
    return *inside;
  std::string dtype;
  std::optional<OpCost> cost = costOf(op, dtype);
  return cost ? model.opSeconds(*cost, device) : 0;
}

double fusedSeconds(Operation *op, const CostModel &model, int64_t device) {
  if (auto inside = controlFlowSeconds(op, model, device, fusedSeconds))
    return *inside;
  std::string dtype;
  std::optional<OpCost> cost = costOf(op, dtype);
  if (!cost)
    return 0;
  if (cost->opClass == OpClass::Elementwise ||
      cost->opClass == OpClass::Reduction) {
    cost->bytes = 0;
    cost->startsKernel = false;
  }
  return model.opSeconds(*cost, device);
}

} // namespace whale
