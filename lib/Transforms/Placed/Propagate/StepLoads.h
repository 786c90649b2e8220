//===- StepLoads.h - What a step asks of each device ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Time and memory that the devices of each mesh need, by what they are
// proportional to: nothing, the share of the mini-batch, or that of a
// parameter. Read from the layouts that propagation has decided, before any
// share is.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_STEPLOADS_H
#define WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_STEPLOADS_H

#include "StepLayouts.h"
#include "whale/Step/MeshLoad.h"
#include "llvm/ADT/MapVector.h"

namespace whale {

class StepLoads {
public:
  /// `inFlight` returns how many micro-batches the devices of an operation keep
  /// at a time.
  StepLoads(mlir::func::FuncOp function, const Cluster &cluster,
            const StepMeshes &stepMeshes, const StepLayouts &layouts,
            llvm::function_ref<int64_t(mlir::Operation *)> inFlight);

  const llvm::MapVector<const Mesh *, MeshLoad> &getMeshes() const {
    return meshes;
  }
  /// The speed class of a device, an index into MeshLoad::seconds.
  unsigned getSpeedClass(int64_t device) const { return classOf[device]; }
  /// The positions of an operation and those inside of it, first and last.
  std::pair<unsigned, unsigned> getRange(mlir::Operation *op) const {
    return {positions.lookup(op), ends.lookup(op)};
  }
  /// What is shared out of each micro-batch, or of the mini-batch, in grains.
  llvm::ArrayRef<int64_t> getMoments() const { return moments; }
  /// How many samples the program keeps together, as one that is shared out.
  int64_t getGrain() const { return grain; }

private:
  void findSpeedClasses();
  void findMoments();
  void number();
  /// The number of an operation, and of one of its results.
  using Maker = std::pair<unsigned, unsigned>;
  std::vector<Maker> findLastMakers() const;
  bool isDivided(MicroBatchesOp loop) const;
  bool isSummedUp(mlir::Value value, const Mesh *mesh) const;
  void findStored();
  void waitForReaders(llvm::MutableArrayRef<Maker> makers) const;
  void waitForBackward(llvm::MutableArrayRef<Maker> makers) const;
  void orderUpdates();
  void addWork();
  void addMemory();

  /// The positions from which and up to which a mesh holds a value.
  struct LiveRange {
    unsigned first = std::numeric_limits<unsigned>::max(), last = 0;

    void extend(unsigned position);
  };
  /// By value, and by mesh and layout in which it is held.
  using LiveRanges =
      llvm::MapVector<std::tuple<mlir::Value, const Mesh *, LoadKind>,
                      LiveRange>;
  LoadKind heldAs(mlir::OpOperand &operand, mlir::Value value,
                  const Mesh *reader) const;
  void addUses(mlir::Operation *op, LiveRanges &ranges);
  void addGather(mlir::OpOperand &operand, mlir::Value value, unsigned last);
  bool isAddedInPlace(mlir::Value value) const;
  bool isTakenOver(mlir::Value value, const LiveRange &range);
  void addRange(mlir::Value value, const Mesh *mesh, LoadKind kind,
                const LiveRange &range);
  void addInFlight(mlir::Operation *op, bool isMadeHere, const Mesh *mesh,
                   LoadKind kind, double bytes, unsigned last);
  void addCopies();
  void addSum(mlir::Value value, const Mesh *mesh, LoadKind kind, double bytes);
  void addBytes(const Mesh *mesh, LoadKind kind, double bytes, unsigned first,
                unsigned last);
  LoadKind kindOf(const Mesh *mesh, const AxisState &outer,
                  const AxisState &inner) const;
  LoadKind ownKind(mlir::Value value, const Mesh *mesh) const;
  unsigned useOf(mlir::Operation *user, mlir::Value value) const;

  mlir::func::FuncOp function;
  const Cluster &cluster;
  const StepMeshes &stepMeshes;
  const AxisPropagation &batch, &inner;
  llvm::function_ref<int64_t(mlir::Operation *)> inFlight;
  /// Whether TaskGraphs gather parameters which replicas share out, and where
  /// each of them has one.
  bool gathersParameters;
  llvm::MapVector<std::tuple<mlir::Value, mlir::Operation *, LoadKind>,
                  LiveRange>
      gathers;
  /// A device of each speed class.
  std::vector<int64_t> speedClasses;
  std::vector<unsigned> classOf;
  std::vector<int64_t> moments;
  int64_t grain = 1;
  /// All operations whose values have a place, in the order of the program, but
  /// updates in that in which their gradients are there.
  std::vector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, unsigned> positions, ends;
  /// Operations whose results are written to memory.
  llvm::DenseSet<mlir::Operation *> stored;
  /// Results that are written over the donated arguments that they feed.
  llvm::DenseSet<unsigned> updatedInPlace;
  /// Operations whose results are where one of their operands was.
  llvm::DenseSet<mlir::Operation *> takers;
  llvm::MapVector<const Mesh *, MeshLoad> meshes;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_STEPLOADS_H
