//===- StepMeshes.cpp - Which devices compute what ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepMeshes.h"

#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"

using namespace mlir;

namespace whale {

TaskGraphOp graphOf(Operation *op) {
  if (auto graph = dyn_cast<TaskGraphOp>(op))
    return graph;
  return op->getParentOfType<TaskGraphOp>();
}

StrategyAttr strategyOf(Operation *op) {
  for (; op; op = op->getParentOp()) {
    if (auto graph = dyn_cast<TaskGraphOp>(op))
      return graph.getStrategyAttr();
    if (auto own = op->getAttrOfType<StrategyAttr>(kStrategyAttr))
      return own;
  }
  return {};
}

StepMeshes::StepMeshes(func::FuncOp function, const Cluster &cluster)
    : function(function) {
  std::vector<DeviceId> all(cluster.devices.size());
  std::iota(all.begin(), all.end(), 0);
  std::unique_ptr<Mesh> &whole = meshes[{all}];
  whole =
      std::make_unique<Mesh>(std::vector<std::vector<DeviceId>>{all}, cluster);
  wholeCluster = whole.get();
  auto module = function->getParentOfType<ModuleOp>();
  for (VirtualDeviceOp device : module.getOps<VirtualDeviceOp>()) {
    std::vector<std::vector<DeviceId>> groups;
    for (size_t i = 0; i < device.getNumGroups(); ++i) {
      ArrayRef<int64_t> group = device.getGroup(i);
      groups.emplace_back(group.begin(), group.end());
    }
    // Task graphs on the same devices share a mesh, so that values stay where
    // they are between them.
    std::unique_ptr<Mesh> &mesh = meshes[groups];
    if (!mesh)
      mesh = std::make_unique<Mesh>(groups, cluster);
    meshOfSymbol[device.getSymNameAttr()] = mesh.get();
  }
}

const Mesh *StepMeshes::useHints(const ShardingHints &hints) {
  std::unique_ptr<Mesh> &mesh = meshes[{}];
  mesh = std::make_unique<Mesh>(hints.getSizes(), hints.getDevices());
  return wholeCluster = mesh.get();
}

SmallVector<Mesh *> StepMeshes::getMeshes() const {
  SmallVector<Mesh *> list;
  for (const auto &[groups, mesh] : meshes)
    list.push_back(mesh.get());
  return list;
}

const Mesh *StepMeshes::meshOf(Operation *op) const {
  TaskGraphOp graph = graphOf(op);
  if (graph && graph.getVirtualDeviceAttr())
    if (const Mesh *mesh =
            meshOfSymbol.lookup(graph.getVirtualDeviceAttr().getAttr()))
      return mesh;
  return wholeCluster;
}

void StepMeshes::findArgumentMeshes() {
  llvm::DenseMap<Operation *, unsigned> position;
  function.walk<WalkOrder::PreOrder>(
      [&](Operation *op) { position.try_emplace(op, position.size()); });
  for (BlockArgument argument : function.getArguments()) {
    Operation *first = nullptr;
    for (Operation *user : argument.getUsers())
      if (user != function.front().getTerminator() &&
          (!first || position.lookup(user) < position.lookup(first)))
        first = user;
    argumentMesh[argument] = first ? meshOf(first) : wholeCluster;
  }
}

const Mesh *StepMeshes::meshOfValue(Value value) const {
  if (Operation *producer = findProducer(value))
    return meshOf(producer);
  return argumentMesh.lookup(lookThroughTaskGraph(value));
}

const Mesh *StepMeshes::meshOfPiece(OpOperand &piece) const {
  auto loop = cast<MicroBatchesOp>(piece.getOwner());
  unsigned argument = piece.getOperandNumber() / loop.getNumMoments();
  int64_t moment = piece.getOperandNumber() % loop.getNumMoments();
  for (Operation &op : loop.getBody(moment))
    for (Operation *user :
         loop.getBody(moment).getArgument(argument).getUsers())
      if (op.isAncestor(user))
        return meshOf(user);
  return wholeCluster;
}

std::string StepMeshes::namesOn(const Mesh *mesh) const {
  llvm::SetVector<StringRef> names;
  function.walk([&](TaskGraphOp graph) {
    if (graph.getStrategyAttr() && meshOf(graph) == mesh)
      names.insert(graph.getName());
  });
  std::string text;
  for (auto [index, name] : llvm::enumerate(names)) {
    if (index == 4) // The rest goes without saying.
      return text + ", ...";
    text += (index == 0 ? " of '" : ", '") + name.str() + "'";
  }
  return text;
}

} // namespace whale
