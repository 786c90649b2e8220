//===- Unsupported.cpp - What Whale drops and what it refuses -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "whale/Dialect/Shardy/IR/ShardyOps.h"
#include "whale/Dialect/StableHLO/IR/LinearAlgebraCalls.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace whale::normalize {

namespace {

/// Counts what is dropped, remembers where the first stood.
struct Dropped {
  std::optional<Location> first;
  unsigned count = 0;

  void add(Operation *op) {
    if (!first)
      first = op->getLoc();
    ++count;
  }
  void report(StringRef what) const {
    if (first)
      emitRemark(*first) << "dropped " << count << " " << what
                         << ": the strategies decide where values live";
  }
};

/// A mesh without axes comes with every typed PRNG key and says nothing.
bool saysNothing(sdy::MeshOp mesh) { return mesh.getMesh().getAxes().empty(); }

bool saysNothing(sdy::ShardingConstraintOp constraint) {
  auto symbol =
      dyn_cast<FlatSymbolRefAttr>(constraint.getSharding().getMeshOrRef());
  auto mesh = symbol ? SymbolTable::lookupNearestSymbolFrom<sdy::MeshOp>(
                           constraint, symbol)
                     : sdy::MeshOp();
  return mesh && saysNothing(mesh);
}

bool isSharding(NamedAttribute attr) {
  return llvm::is_contained(
      {"mhlo.sharding", "sdy.sharding", "sdy.sharding_rule"},
      attr.getName().getValue());
}

/// Removes the attributes of `function` and its operations that say where
/// values live or name a mesh.
void dropShardingAttributes(func::FuncOp function) {
  auto keep = [](DictionaryAttr attrs) {
    NamedAttrList kept;
    for (NamedAttribute attr : attrs)
      if (!isSharding(attr))
        kept.push_back(attr);
    return kept.getDictionary(attrs.getContext());
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (DictionaryAttr attrs = function.getArgAttrDict(i))
      function.setArgAttrs(i, keep(attrs));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (DictionaryAttr attrs = function.getResultAttrDict(i))
      function.setResultAttrs(i, keep(attrs));
  function.walk([&](Operation *op) {
    for (NamedAttribute attr : llvm::to_vector(op->getDiscardableAttrs()))
      if (isSharding(attr))
        op->removeDiscardableAttr(attr.getName());
  });
}

} // namespace

void dropShardings(ModuleOp module) {
  Dropped constraints, calls, meshes;
  module.walk([&](Operation *op) {
    if (auto constraint = dyn_cast<sdy::ShardingConstraintOp>(op)) {
      if (!saysNothing(constraint))
        constraints.add(op);
      op->replaceAllUsesWith(op->getOperands());
      op->erase();
    } else if (auto call = dyn_cast<stablehlo::CustomCallOp>(op)) {
      if (call.getCallTargetName() != "Sharding" ||
          op->getOperandTypes() != op->getResultTypes())
        return;
      calls.add(op);
      op->replaceAllUsesWith(op->getOperands());
      op->erase();
    }
  });
  for (auto mesh : llvm::make_early_inc_range(module.getOps<sdy::MeshOp>())) {
    if (!saysNothing(mesh))
      meshes.add(mesh);
    mesh.erase();
  }
  for (auto function : module.getOps<func::FuncOp>())
    dropShardingAttributes(function);
  constraints.report("sdy.sharding_constraint");
  calls.report("custom_call @Sharding");
  meshes.report("sdy.mesh");
}

LogicalResult verifySupported(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    if (auto call = dyn_cast<stablehlo::CustomCallOp>(op)) {
      StringRef target = call.getCallTargetName();
      if (getLapackRoutine(target))
        return WalkResult::advance();
      bool isCallback = target.contains("callback");
      op->emitError("custom_call @")
          << target << " is not supported"
          << (isCallback ? ": a step can't call back into Python" : "");
      return WalkResult::interrupt();
    }
    if (isa<stablehlo::AllGatherOp, stablehlo::AllReduceOp,
            stablehlo::AllToAllOp, stablehlo::CollectiveBroadcastOp,
            stablehlo::CollectivePermuteOp, stablehlo::PartitionIdOp,
            stablehlo::ReduceScatterOp, stablehlo::ReplicaIdOp>(op)) {
      op->emitOpError("is not supported: Whale partitions the program itself");
      return WalkResult::interrupt();
    }
    if (isa<stablehlo::RngOp>(op)) {
      op->emitOpError("is not supported: it draws from a hardware generator; "
                      "jax.random draws from keys");
      return WalkResult::interrupt();
    }
    StringRef name = op->getName().stripDialect();
    if (isa<stablehlo::StablehloDialect>(op->getDialect()) &&
        (name == "infeed" || name == "outfeed" || name == "send" ||
         name == "recv")) {
      op->emitOpError("is not supported: a step can't talk to its host");
      return WalkResult::interrupt();
    }
    for (Type type : op->getResultTypes())
      if (auto shaped = dyn_cast<ShapedType>(type);
          shaped && !shaped.hasStaticShape()) {
        op->emitOpError("has a result of dynamic shape ")
            << type << "; only static shapes are supported";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace whale::normalize
