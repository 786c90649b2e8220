//===- StepMeshes.h - Which devices compute what ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meshes of a step: one for each virtual device, one for the whole cluster,
// or the one that the program names. What has no virtual device of its own is
// computed by the whole cluster.
//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_STEPMESHES_H
#define WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_STEPMESHES_H

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/Mesh.h"
#include "whale/Sharding/ShardingHints.h"
#include "llvm/ADT/DenseMap.h"

namespace whale {

/// The task graph that an operation is or belongs to, if any.
TaskGraphOp graphOf(mlir::Operation *op);

/// How an operation is parallelized: as its task graph, or in a loop or branch
/// as its own scope says.
StrategyAttr strategyOf(mlir::Operation *op);

class StepMeshes {
public:
  /// The cluster must outlive this.
  StepMeshes(mlir::func::FuncOp function, const Cluster &cluster);

  /// Takes the mesh that the program names for all of it.
  const Mesh *useHints(const ShardingHints &hints);

  llvm::SmallVector<Mesh *> getMeshes() const;
  const Mesh *getWholeCluster() const { return wholeCluster; }
  /// The devices that an operation computes on.
  const Mesh *meshOf(mlir::Operation *op) const;

  /// Has arguments live on the devices of the first operation that uses them.
  /// The questions below are about arguments too.
  void findArgumentMeshes();
  /// The devices that make a value, or store an argument.
  const Mesh *meshOfValue(mlir::Value value) const;
  /// The devices that first use a piece of the mini-batch, an operand of
  /// micro-batches.
  const Mesh *meshOfPiece(mlir::OpOperand &piece) const;

  /// The TaskGraphs on a mesh, for people.
  std::string namesOn(const Mesh *mesh) const;

private:
  mutable mlir::func::FuncOp function;
  std::map<std::vector<std::vector<DeviceId>>, std::unique_ptr<Mesh>> meshes;
  llvm::DenseMap<mlir::Attribute, const Mesh *> meshOfSymbol;
  llvm::DenseMap<mlir::Value, const Mesh *> argumentMesh;
  const Mesh *wholeCluster = nullptr;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_STEPMESHES_H
