//===- StepState.cpp - What replicas share out of the state ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a step whose configuration has zero.level. Out: what replicas are to hold
// in parts, as seeds of the propagation, which finds the rest: gradients are
// scattered as what they are added to is split.
//
// ZeRO (Rajbhandari et al., 2020): stage 1 (v0) splits the state of the
// optimizer, stage 2 (v1) also sums of gradients over micro-batches, stage 3
// (v2) also parameters, which each use gathers. Cost: linear in operations and
// uses.
//
//===----------------------------------------------------------------------===//

#include "StepLayouts.h"

#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Sharding/PlacementAttrs.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// The axis along which an operation's replicas are: inside of a group, or else
/// the groups themselves.
unsigned StepLayouts::replicaAxis(Operation *op) const {
  return meshes.meshOf(op)->getNumParts(1) > 1;
}

/// Whether an operation is computed by replicas, along an axis.
bool StepLayouts::isReplicated(Operation *op, unsigned axis) const {
  return graphOf(op) && isa_and_nonnull<ReplicateAttr>(strategyOf(op)) &&
         replicaAxis(op) == axis && meshes.meshOf(op)->getNumParts(axis) > 1;
}

/// Whether replicas share out, along an axis, what an operation computes of the
/// optimizer.
bool StepLayouts::sharesState(Operation *op, unsigned axis) const {
  return zeroLevel != ZeroLevel::None && isReplicated(op, axis) &&
         graphOf(op).getPhase() == Phase::Apply;
}

/// Whether a value is computed element by element from others of its shape: not
/// the sums over rows or columns that Adafactor keeps, for which gradients
/// would have to be cut in several ways.
static bool isElementwise(Value root) {
  ArrayRef<int64_t> shape = cast<ShapedType>(root.getType()).getShape();
  llvm::SetVector<Value> values;
  values.insert(root);
  for (size_t i = 0; i < values.size(); ++i) {
    auto result = dyn_cast<OpResult>(values[i]);
    if (!result)
      continue;
    Operation *op = result.getOwner();
    if (auto graph = dyn_cast<TaskGraphOp>(op)) {
      if (graph.getPhase() == Phase::Apply)
        values.insert(graph.getBody().front().getTerminator()->getOperand(
            result.getResultNumber()));
      continue;
    }
    // Gradients are not the optimizer's.
    if (TaskGraphOp graph = graphOf(op);
        !graph || graph.getPhase() != Phase::Apply)
      continue;
    if (isa<hlo::ReduceOp>(op))
      return false;
    for (Value operand : op->getOperands())
      if (auto type = dyn_cast<ShapedType>(operand.getType());
          type && type.getShape() == shape)
        values.insert(operand);
  }
  return true;
}

/// By type of the stacks that loops take apart or put together, the dimensions
/// along which they do: a part of a replica's must have some of each layer.
static llvm::DenseMap<Type, llvm::SmallBitVector>
findStackedDims(func::FuncOp function) {
  llvm::DenseMap<Type, llvm::SmallBitVector> found;
  auto add = [&](Value stack, ArrayRef<int64_t> sizes) {
    auto type = cast<RankedTensorType>(stack.getType());
    llvm::SmallBitVector &dims = found[type];
    dims.resize(type.getRank());
    for (auto [dim, size] : llvm::enumerate(sizes))
      if (size != type.getDimSize(dim))
        dims.set(dim);
  };
  function.walk([&](Operation *op) {
    if (!op->getParentOfType<hlo::WhileOp>())
      return;
    if (auto slice = dyn_cast<hlo::DynamicSliceOp>(op))
      add(slice.getOperand(), slice.getType().getShape());
    if (auto update = dyn_cast<hlo::DynamicUpdateSliceOp>(op))
      add(update.getOperand(),
          cast<RankedTensorType>(update.getUpdate().getType()).getShape());
  });
  return found;
}

/// Why replicas don't share out an argument that a result feeds; an empty text
/// if they do, along the axis that it is then in the seeds of.
std::string StepLayouts::shareOut(
    BlockArgument argument, Value next, Factorization &factorization,
    const llvm::DenseMap<Type, llvm::SmallBitVector> &stackedDims) {
  Operation *first =
      argument.use_empty() ? nullptr : *argument.getUsers().begin();
  if (!first || batchSeeds.contains(argument))
    return "it is no state";
  bool isApplied = true;
  for (Operation *op : argument.getUsers()) {
    TaskGraphOp graph = graphOf(op);
    if (!graph)
      return "it is returned as it is";
    isApplied &= graph.getPhase() == Phase::Apply;
    if (!isa_and_nonnull<ReplicateAttr>(strategyOf(op)))
      return "its TaskGraph is split";
    if (meshes.meshOf(op) != meshes.meshOf(first))
      return "several TaskGraphs use it on other devices";
  }
  unsigned axis = replicaAxis(first);
  const Mesh *mesh = meshes.meshOf(first);
  if (mesh->getNumParts(axis) <= 1)
    return "its TaskGraph has one replica";
  bool isUpdatedInLoop =
      isa_and_nonnull<hlo::WhileOp>(lookThroughTaskGraph(next).getDefiningOp());
  if (isUpdatedInLoop)
    return "a loop updates it: call the step once for each update, without a "
           "loop around the optimizer";
  if (!isApplied && zeroLevel != ZeroLevel::Parameters)
    return "not only the optimizer reads it";
  if (!isElementwise(next))
    return "it is a sum over rows";
  // Of the first piece of which each replica can have a part, but of one that
  // loops take layers of only if there is no other.
  SmallVector<DimPiece> pieces = factorization.getPieces(argument);
  auto stacked = stackedDims.find(argument.getType());
  auto find = [&](bool mayBeStacked) {
    return llvm::find_if(pieces, [&](const DimPiece &piece) {
      return piece.extent >= mesh->getNumParts(axis) &&
             (mayBeStacked || stacked == stackedDims.end() ||
              !stacked->second.test(piece.dim));
    });
  };
  auto *piece = find(/*mayBeStacked=*/false);
  if (piece == pieces.end())
    piece = find(/*mayBeStacked=*/true);
  if (piece == pieces.end())
    return "it has no dimension with a row for each replica";
  stateSeeds[axis][argument] = AxisState::split(*piece);
  if (!isApplied)
    storedParameters[axis].insert(argument);
  return "";
}

/// Finds the state of the optimizer: what only it reads, and a result feeds;
/// under stage 3 also parameters.
void StepLayouts::findState(Factorization &factorization) {
  if (zeroLevel == ZeroLevel::None)
    return;
  llvm::DenseMap<Type, llvm::SmallBitVector> stackedDims =
      findStackedDims(function);
  Operation *end = function.front().getTerminator();
  for (auto [index, fed] : llvm::enumerate(feeds)) {
    if (fed < 0)
      continue;
    BlockArgument argument = function.getArgument(fed);
    std::string reason =
        shareOut(argument, end->getOperand(index), factorization, stackedDims);
    if (reason.empty())
      continue;
    // The largest is the one to explain.
    if (!unshared || getTensorBytes(unshared.getType()) <
                         getTensorBytes(argument.getType())) {
      unshared = argument;
      whyUnshared = reason;
    }
  }
}

/// Has the optimizer's state split, and what goes into it.
void StepLayouts::seedState(AxisPropagation::Options &options,
                            unsigned axis) const {
  for (auto [argument, state] : stateSeeds[axis]) {
    options.seeds[argument] = state;
    options.shared.insert(argument);
  }
  options.stored = storedParameters[axis];
  options.scattersSums = zeroLevel >= ZeroLevel::Gradients;
}

/// Says what is shared out; an error where nothing is.
LogicalResult StepLayouts::explainState() {
  if (zeroLevel == ZeroLevel::None)
    return success();
  int64_t bytes = 0, parameterBytes = 0;
  for (unsigned axis : {0, 1})
    for (auto [argument, state] : stateSeeds[axis]) {
      bool isStored = storedParameters[axis].contains(argument);
      (isStored ? parameterBytes : bytes) += getTensorBytes(argument.getType());
    }
  // What is read where a training step has it has been shared out there.
  if (bytes == 0 && parameterBytes == 0 && !givenSeeds[0].empty())
    return success();
  if (bytes == 0 && parameterBytes == 0) {
    InFlightDiagnostic error = function.emitError(
        "zero.level: no replicas have state of the optimizer that they could "
        "share out; leave it out");
    if (unshared)
      error.attachNote(unshared.getLoc())
          << "argument " << unshared.getArgNumber()
          << " is not shared out: " << whyUnshared;
    return error;
  }
  InFlightDiagnostic remark = emitRemark(function.getLoc());
  remark << "zero: " << bytes << " bytes of optimizer state ";
  if (parameterBytes > 0)
    remark << "and " << parameterBytes << " bytes of parameters ";
  remark << "are shared out among replicas, which scatter gradients and gather "
         << (parameterBytes > 0 ? "parameters where they use them"
                                : "changed parameters");
  remark.report();
  explainSums();
  return success();
}

/// Says what it costs to scatter sums over micro-batches one by one.
void StepLayouts::explainSums() {
  if (zeroLevel < ZeroLevel::Gradients)
    return;
  for (auto loop : function.getOps<MicroBatchesOp>()) {
    int64_t bytes = 0;
    double held = 0, seconds = 0;
    for (unsigned i = 0; i < loop.getNumReduced(); ++i) {
      Value sum = loop.getResult(i);
      const Mesh *mesh = meshes.meshOfValue(sum);
      for (unsigned axis : {0, 1}) {
        if (!axes[axis]->getState(sum).isSplit() ||
            mesh->getNumParts(axis) <= 1)
          continue;
        int64_t own = getTensorBytes(sum.getType());
        bytes += own;
        held += double(own) / double(mesh->getNumParts(axis));
        seconds += costs.exchange(Exchange::Kind::ReduceScatter, double(own),
                                  *mesh, axis);
      }
    }
    if (bytes == 0)
      continue;
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format(
        "zero: gradients are scattered in each of %lld micro-batches: replicas "
        "hold %.0f of %lld bytes of their sums, and exchange for %.4g s more",
        (long long)loop.getNumMoments(), held, (long long)bytes,
        seconds * double(loop.getNumMoments() - 1));
    emitRemark(function.getLoc()) << text;
  }
}

} // namespace whale
