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
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/OperationWork.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace whale {

OpClass opClassOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, OpClass>(op)
      .Case<stablehlo::DotGeneralOp, MatmulOp>(
          [](auto) { return OpClass::Matmul; })
      .Case<AttentionOp, AttentionGradientOp>(
          [](auto) { return OpClass::Attention; })
      .Case<stablehlo::ConvolutionOp, ConvolutionOp>(
          [](auto) { return OpClass::Convolution; })
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

/// The work of an operation that is not control flow. What is computed element
/// by element becomes part of the kernels around it, which writes no more than
/// its results; of an index or a splat nothing is left.
static std::optional<OpCost> workInKernels(Operation *op) {
  if (isa<stablehlo::BroadcastInDimOp, stablehlo::IotaOp>(op))
    return std::nullopt;
  std::optional<OpCost> work = operationWork(op);
  if (!work || work->opClass != OpClass::Elementwise)
    return work;
  double written = 0;
  for (Type type : op->getResultTypes())
    written += double(getTensorBytes(type));
  work->bytes = std::min(work->bytes, written);
  work->startsKernel = false;
  return work;
}

double opSeconds(Operation *op, const CostModel &model, int64_t device) {
  if (auto inside = controlFlowSeconds(op, model, device, opSeconds))
    return *inside;
  std::optional<OpCost> cost = workInKernels(op);
  return cost ? model.opSeconds(*cost, device) : 0;
}

double fusedSeconds(Operation *op, const CostModel &model, int64_t device) {
  if (auto inside = controlFlowSeconds(op, model, device, fusedSeconds))
    return *inside;
  std::optional<OpCost> cost = workInKernels(op);
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
