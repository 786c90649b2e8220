//===- BalanceMeshes.h - How much each device takes -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Balances every mesh: speeds from the cost model and the operations that the
// mesh computes, limits from the memory that they leave. Where one micro-batch
// is too coarse, shares change from one to the next.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_BALANCEMESHES_H
#define WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_BALANCEMESHES_H

#include "StepLoads.h"
#include "whale/Planner/Plan.h"
#include "whale/Step/MemoryFit.h"
#include "whale/Step/MemoryRoom.h"

namespace whale {

class MeshBalancer {
public:
  /// `fit` says what is known of the devices' needs, `scratch` what libraries
  /// use on each in addition to buffers; it may be empty.
  /// Meshes that `planned` has take the shares that it says.
  MeshBalancer(const StepLoads &loads, const Cluster &cluster,
               const MemoryFit &fit, std::vector<ScratchLine> scratch,
               llvm::ArrayRef<PlannedShares> planned);

  /// Balances the meshes. With up to `mostVariants` kinds of micro-batches,
  /// shares rotate where that makes the step faster.
  void balance(llvm::ArrayRef<Mesh *> meshes, int64_t mostVariants);

  /// The balance of those of the meshes that have work.
  std::vector<PlannedShares> getShares(llvm::ArrayRef<Mesh *> meshes) const;

  /// Has devices with the shares that were decided use so much scratch.
  void setScratch(llvm::ArrayRef<int64_t> bytes);
  /// Whether these shares fit.
  bool isWithinMemory() const;
  /// A device's part of the work of a mesh.
  double getPart(int64_t device) const { return room->getPart(device); }

  /// For each micro-batch the first one with the same shares on all meshes.
  llvm::SmallVector<int64_t> findVariants(llvm::ArrayRef<Mesh *> meshes) const;

  /// Describes the shares, their times, and the memory they need.
  /// `nameOf` says of whom.
  void explain(mlir::Location loc, llvm::ArrayRef<Mesh *> meshes,
               llvm::function_ref<std::string(const Mesh *)> nameOf) const;

  /// Bytes that each device will need, as far as is known.
  MemoryFit::Estimate estimate(llvm::ArrayRef<Mesh *> meshes) const;
  /// For each device the first one of its kind with the same shares of samples
  /// and of what takes its group the longest.
  std::vector<int64_t> findAlike() const;
  /// Those of micro-batches, for each device.
  std::vector<LoopBytes> loopBytes(MicroBatchesOp loop) const;

private:
  bool takePlanned(llvm::ArrayRef<Mesh *> meshes);
  MeshBalance speedsOf(const Mesh &mesh, const MeshLoad &load) const;
  void keepReplicasApart(llvm::ArrayRef<Mesh *> meshes);
  std::vector<MeshShares> idealShares(llvm::ArrayRef<Mesh *> meshes) const;
  std::vector<MeshShares> realShares(llvm::ArrayRef<Mesh *> meshes) const;
  /// How estimates are taken: the part of them that is kept free besides, and
  /// the least factor by which they are corrected.
  struct Caution {
    double reserve, leastScale;
  };
  void useShares(std::vector<MeshShares> taken, Caution caution = {0, 0});
  void limit(llvm::ArrayRef<Mesh *> meshes);
  void limitWithCaution(llvm::ArrayRef<Mesh *> meshes);
  void rotate(llvm::ArrayRef<Mesh *> meshes, int64_t mostVariants);
  void rotateTogether(llvm::ArrayRef<Mesh *> stages,
                      llvm::ArrayRef<Mesh *> meshes, int64_t mostVariants);
  double finishOf(const Mesh &mesh) const;
  std::string describe(const Mesh &mesh, const MeshLoad &load, size_t group,
                       size_t index, llvm::ArrayRef<Extents> samples,
                       double groupSamples) const;
  /// Samples of a step that each device of the mesh takes.
  std::vector<Extents> samplesOf(const Mesh &mesh) const;
  std::vector<MemoryFit::Estimate::Group> takersOf(const Mesh &mesh,
                                                   const MeshLoad &load) const;

  const StepLoads &loads;
  const Cluster &cluster;
  const MemoryFit &fit;
  std::vector<ScratchLine> scratch;
  llvm::ArrayRef<PlannedShares> planned;
  /// Of each mesh; null for those that do nothing.
  std::vector<const MeshLoad *> loadOf;
  /// With the shares that were looked at last.
  std::optional<MemoryRoom> room;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_BALANCEMESHES_H
