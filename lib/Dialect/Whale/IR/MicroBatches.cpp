//===- MicroBatches.cpp - Constraints of whale.micro_batches --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a whale.micro_batches. Out: success, or the error of the first constraint
// that is violated: the numbers and types of operands, arguments, yielded
// values and results, and the order of a pipeline.
//
// Cost: linear in the number of values times moments, and in the steps of the
// order.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include <set>

using namespace mlir;
using namespace whale;

int64_t MicroBatchesOp::getNumMoments(Region *body) {
  return llvm::count(getVariants(), int64_t(body->getRegionNumber()));
}

YieldOp MicroBatchesOp::getYield(int64_t moment) {
  return cast<YieldOp>(getBody(moment).getTerminator());
}

std::pair<unsigned, std::optional<int64_t>>
MicroBatchesOp::getYielded(unsigned result) {
  if (result < getNumReduced())
    return {result, std::nullopt};
  unsigned single = result - getNumReduced();
  return {getNumReduced() + single / getNumMoments(), single % getNumMoments()};
}

/// Checks that must pass before the accessors above are safe.
static LogicalResult verifyCounts(MicroBatchesOp op) {
  ArrayRef<int64_t> variants = op.getVariants();
  size_t bodies = op.getBodies().size();
  if (variants.empty())
    return op.emitOpError("has no moments");
  for (int64_t variant : variants)
    if (variant < 0 || variant >= int64_t(bodies))
      return op.emitOpError("variant ") << variant << " has no region";
  for (Region &body : op.getBodies()) {
    unsigned number = body.getRegionNumber();
    if (op.getNumMoments(&body) == 0)
      return op.emitOpError("region ") << number << " has no moment";
    if (!isa<YieldOp>(body.front().getTerminator()))
      return op.emitOpError("region ")
             << number << " ends without 'whale.yield'";
    if (body.getNumArguments() != op.getNumSlicedArguments())
      return op.emitOpError("region ")
             << number << " has " << body.getNumArguments()
             << " arguments, the first has " << op.getNumSlicedArguments();
    unsigned yields = body.front().getTerminator()->getNumOperands();
    unsigned expected = op.getYield(0)->getNumOperands();
    if (yields != expected)
      return op.emitOpError("region ") << number << " yields " << yields
                                       << " values, the first " << expected;
  }
  size_t moments = variants.size();
  if (op.getSlices().size() != op.getNumSlicedArguments() * moments)
    return op.emitOpError("has ") << op.getSlices().size() << " operands for "
                                  << op.getNumSlicedArguments()
                                  << " arguments at " << moments << " moments";
  unsigned yields = op.getYield(0)->getNumOperands();
  if (op.getNumReduced() > yields)
    return op.emitOpError("reduces ")
           << op.getNumReduced() << " values but yields " << yields;
  size_t results = op.getNumReduced() + (yields - op.getNumReduced()) * moments;
  if (op.getNumResults() != results)
    return op.emitOpError("has ")
           << op.getNumResults() << " results, expected " << results;
  if (!op.getBatchDims().empty() &&
      op.getBatchDims().size() != op.getNumSlicedArguments())
    return op.emitOpError("has batch dimensions for ")
           << op.getBatchDims().size() << " of " << op.getNumSlicedArguments()
           << " arguments";
  return success();
}

/// Checks that no device has two lists, and that all steps are of existing
/// moments.
static LogicalResult verifyLists(MicroBatchesOp op) {
  llvm::SmallDenseSet<int64_t> seen;
  for (auto list : op.getOrders()) {
    for (int64_t device : list.getDevices())
      if (!seen.insert(device).second)
        return op.emitOpError("order has two lists for device ") << device;
    for (const ScheduleStep &step : list.getSteps())
      if (step.microBatch >= op.getNumMoments())
        return op.emitOpError("order has a step of micro-batch ")
               << step.microBatch << ", and there are " << op.getNumMoments();
  }
  return success();
}

LogicalResult MicroBatchesOp::verify() {
  if (failed(verifyCounts(*this)))
    return failure();
  for (unsigned i = 0; i < getNumSlicedArguments(); ++i)
    for (int64_t moment = 0; moment < getNumMoments(); ++moment) {
      Type inside = getBody(moment).getArgument(i).getType();
      Type outside = getSlice(i, moment).get().getType();
      if (inside != outside)
        return emitOpError("argument ")
               << i << " is " << inside << " but its piece at moment " << moment
               << " is " << outside;
    }
  for (auto [index, result] : llvm::enumerate(getResults())) {
    auto [yielded, moment] = getYielded(index);
    for (int64_t m = 0; m < getNumMoments(); ++m) {
      Type inside = getYield(m)->getOperand(yielded).getType();
      if ((!moment || *moment == m) && inside != result.getType())
        return emitOpError("result ")
               << index << " is " << result.getType() << " but moment " << m
               << " yields " << inside;
    }
  }
  for (auto [index, dim] : llvm::enumerate(getBatchDims())) {
    auto type = cast<RankedTensorType>(getBody(0).getArgument(index).getType());
    if (dim < -1 || dim >= type.getRank())
      return emitOpError("batch dimension ")
             << dim << " is not a dimension of argument " << index << ", "
             << type;
  }
  if ((*this)->getParentOfType<MicroBatchesOp>() ||
      (*this)->getParentOfType<TaskGraphOp>())
    return emitOpError("is inside another part of the step");
  return verifyLists(*this);
}

/// Checks that each device computes all its task graphs for every micro-batch.
/// A list contains no step twice, so each is computed once.
LogicalResult
MicroBatchesOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  if (!getOrder())
    return success();
  std::vector<std::set<ScheduleStep>> steps;
  llvm::DenseMap<int64_t, size_t> listOf;
  for (auto list : getOrders()) {
    for (int64_t device : list.getDevices())
      listOf[device] = steps.size();
    steps.emplace_back(list.getSteps().begin(), list.getSteps().end());
  }
  for (int64_t moment = 0; moment < getNumMoments(); ++moment)
    for (auto graph : getBody(moment).getOps<TaskGraphOp>()) {
      FlatSymbolRefAttr name = graph.getVirtualDeviceAttr();
      auto devices =
          name ? symbolTable.lookupNearestSymbolFrom<VirtualDeviceOp>(graph,
                                                                      name)
               : VirtualDeviceOp();
      if (!devices)
        continue;
      std::optional<size_t> last;
      for (int64_t device : devices.getDevices()) {
        auto list = listOf.find(device);
        if (list != listOf.end() && last == list->second)
          continue;
        if (list == listOf.end() ||
            !steps[list->second].contains(graph.getStep(moment)))
          return emitOpError("order: device ")
                 << device << " never computes TaskGraph '" << graph.getName()
                 << "' for micro-batch " << moment;
        last = list->second;
      }
    }
  return success();
}
