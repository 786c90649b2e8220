//===- Shardings.cpp - Which of JAX's shardings are followed --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module with meshes and shardings as JAX prints them. Out: a hint for
// whale-propagate: one mesh stays, with the shardings of @main's arguments and
// the constraints that name it; those of results become constraints. If no mesh
// can be followed everything is dropped, with a remark that gives the reason.
//
// Cost: a walk over the module for each mesh until one is kept, and two more
// over all operations. The mesh of each sharding is looked up among the
// module's operations. Attributes are set one argument at a time, each time
// with a new list of all: the square of the arguments.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/ShardingHints.h"
#include "whale/Transforms/Attributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace whale::normalize {

namespace {

/// Counts what is dropped, remembers where the first was.
struct Dropped {
  std::optional<Location> first;
  unsigned count = 0;

  void add(Operation *op) {
    if (!first)
      first = op->getLoc();
    ++count;
  }
  void report(StringRef what, const Twine &why) const {
    if (first)
      emitRemark(*first) << "dropped " << count << " " << what << ": " << why;
  }
};

/// A mesh without axes comes with every typed PRNG key, and one device leaves
/// nothing to decide.
bool saysNothing(sdy::MeshAttr mesh) { return countDevices(mesh) == 1; }

bool isSharding(NamedAttribute attr) {
  return llvm::is_contained(
      {"mhlo.sharding", "sdy.sharding", "sdy.sharding_rule"},
      attr.getName().getValue());
}

bool hasStrategies(ModuleOp module) {
  if (module->hasAttr(kDefaultStrategyAttr))
    return true;
  WalkResult result = module.walk([](Operation *op) {
    return op->hasAttr(kStrategyAttr) ? WalkResult::interrupt()
                                      : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// Why values cannot be placed on this mesh; empty if they can.
std::string findObstacle(ModuleOp module, sdy::MeshAttr mesh) {
  if (hasStrategies(module))
    return "the strategies decide where values live";
  Config config(module);
  for (auto [name, count] :
       {std::pair(StringRef(Config::kMicroBatches),
                  config.getNumMicroBatches()),
        std::pair(StringRef(Config::kTaskGraphs), config.getNumTaskGraphs())})
    if (count.value_or(1) > 1)
      return (name + " cuts the step in another way").str();
  auto clusters = module.getOps<ClusterOp>();
  if (clusters.empty())
    return "there is no cluster yet";
  int64_t devices = (*clusters.begin()).getCluster().devices.size();
  int64_t count = countDevices(mesh);
  if (count != devices)
    return ("the mesh has " + Twine(count) + " devices and the cluster " +
            Twine(devices))
        .str();
  SmallVector<int64_t> ids(mesh.getDeviceIds());
  llvm::sort(ids);
  for (auto [index, id] : llvm::enumerate(ids))
    if (id != int64_t(index))
      return "the mesh names other devices than the cluster has";
  return "";
}

class Shardings {
public:
  explicit Shardings(ModuleOp module) : module(module) {}

  void run() {
    for (auto mesh : module.getOps<sdy::MeshOp>()) {
      if (saysNothing(mesh.getMesh()) || kept)
        continue;
      std::string reason = findObstacle(module, mesh.getMesh());
      if (reason.empty())
        kept = mesh.getMesh();
      else if (why.empty())
        why = reason;
    }
    if (kept)
      why = "they are on another mesh than those that are followed";
    filterConstraints();
    for (auto function : module.getOps<func::FuncOp>())
      filterAttributes(function);
    eraseMeshes();
    constraints.report("sdy.sharding_constraint", why);
    arguments.report("sdy.sharding of arguments", why);
    results.report("sdy.sharding of results", why);
    calls.report("custom_call @Sharding", "only shardings of sdy are read");
    meshes.report("sdy.mesh", why);
  }

private:
  bool isKept(Operation *from, sdy::TensorShardingAttr sharding) const {
    return sharding && kept && findMesh(from, sharding) == kept;
  }

  void drop(Operation *op, sdy::TensorShardingAttr sharding,
            Dropped &dropped) const {
    sdy::MeshAttr mesh = findMesh(op, sharding);
    if (!mesh || !saysNothing(mesh))
      dropped.add(op);
  }

  void filterConstraints() {
    module.walk([&](Operation *op) {
      if (isa<sdy::ShardingConstraintOp, sdy::ReshardOp>(op)) {
        auto sharding = op->getAttrOfType<sdy::TensorShardingAttr>("sharding");
        // A scalar is whole everywhere.
        if (cast<ShapedType>(op->getResult(0).getType()).getRank() == 0) {
          op->replaceAllUsesWith(op->getOperands());
        } else if (isKept(op, sharding)) {
          if (isa<sdy::ShardingConstraintOp>(op))
            return;
          OpBuilder b(op);
          op->replaceAllUsesWith(sdy::ShardingConstraintOp::create(
              b, op->getLoc(), op->getOperand(0), sharding));
        } else {
          drop(op, sharding, constraints);
          op->replaceAllUsesWith(op->getOperands());
        }
        op->erase();
      } else if (isa<sdy::ShardingGroupOp>(op)) {
        op->erase();
      } else if (auto call = dyn_cast<stablehlo::CustomCallOp>(op)) {
        if (call.getCallTargetName() != "Sharding")
          return;
        calls.add(op);
        op->replaceAllUsesWith(op->getOperands());
        op->erase();
      }
    });
  }

  /// Removes shardings, but for those of arguments of @main that are on the
  /// mesh; a result on the mesh gets a constraint.
  void filterAttributes(func::FuncOp function) {
    bool isMain = function.getName() == "main" && !function.isExternal();
    auto filter = [&](DictionaryAttr attrs, bool stays) {
      NamedAttrList left;
      for (NamedAttribute attr : attrs)
        if (!isSharding(attr) || (stays && attr.getName() == shardingAttrName))
          left.push_back(attr);
      return left.getDictionary(attrs.getContext());
    };
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto sharding = function.getArgAttrOfType<sdy::TensorShardingAttr>(
          i, shardingAttrName);
      bool stays = isMain && isKept(function, sharding);
      if (isMain && sharding && !stays)
        drop(function, sharding, arguments);
      if (DictionaryAttr attrs = function.getArgAttrDict(i))
        function.setArgAttrs(i, filter(attrs, stays));
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      auto sharding = function.getResultAttrOfType<sdy::TensorShardingAttr>(
          i, shardingAttrName);
      if (isMain && isKept(function, sharding)) {
        Operation *end = function.front().getTerminator();
        OpBuilder b(end);
        end->setOperand(i, sdy::ShardingConstraintOp::create(
                               b, end->getLoc(), end->getOperand(i), sharding));
      } else if (isMain && sharding) {
        drop(function, sharding, results);
      }
      if (DictionaryAttr attrs = function.getResultAttrDict(i))
        function.setResultAttrs(i, filter(attrs, false));
    }
    function.walk([&](Operation *op) {
      for (NamedAttribute attr : llvm::to_vector(op->getDiscardableAttrs()))
        if (isSharding(attr))
          op->removeDiscardableAttr(attr.getName());
    });
  }

  void eraseMeshes() {
    for (auto mesh : llvm::make_early_inc_range(module.getOps<sdy::MeshOp>())) {
      if (mesh.getMesh() == kept)
        continue;
      if (!saysNothing(mesh.getMesh()))
        meshes.add(mesh);
      mesh.erase();
    }
  }

  ModuleOp module;
  sdy::MeshAttr kept;
  std::string why;
  Dropped constraints, arguments, results, calls, meshes;
};

} // namespace

void selectShardings(ModuleOp module) { Shardings(module).run(); }

} // namespace whale::normalize
