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

#ifndef WHALE_LIB_TRANSFORMS_PROPAGATE_BALANCEMESHES_H
#define WHALE_LIB_TRANSFORMS_PROPAGATE_BALANCEMESHES_H

#include "StepLoads.h"

namespace whale {

class MeshBalancer {
public:
  /// `scale` corrects, for each device, the estimate of what it needs besides
  /// its arguments; empty for none.
  MeshBalancer(const StepLoads &loads, const Cluster &cluster,
               llvm::ArrayRef<double> scale);

  /// Balances the meshes. With up to `mostVariants` kinds of micro-batches,
  /// shares rotate where that makes the step faster.
  void balance(llvm::ArrayRef<Mesh *> meshes, int64_t mostVariants);

  /// For each micro-batch the first one with the same shares on all meshes.
  llvm::SmallVector<int64_t> findVariants(llvm::ArrayRef<Mesh *> meshes) const;

  /// Says who takes how much, how long it takes, and what it needs.
  /// `nameOf` says of whom.
  void explain(mlir::Location loc, llvm::ArrayRef<Mesh *> meshes,
               llvm::function_ref<std::string(const Mesh *)> nameOf) const;

  /// Bytes that each device will need, as far as can be told, and those of its
  /// arguments alone.
  std::vector<int64_t> estimateBytes(llvm::ArrayRef<Mesh *> meshes) const;
  std::vector<int64_t> argumentBytes(llvm::ArrayRef<Mesh *> meshes) const;

private:
  struct Seat {
    size_t mesh;
    LoadShares shares;
    bool operator<(const Seat &other) const {
      return std::tie(mesh, shares) < std::tie(other.mesh, other.shares);
    }
  };
  using Seats = std::vector<Seat>;
  /// A peak, as it depends on one of the shares of one mesh.
  struct Slope {
    double fixed = 0, bytes = 0;
  };

  MeshBalance speedsOf(const Mesh &mesh) const;
  void keepReplicasApart(llvm::ArrayRef<Mesh *> meshes);
  void setIdealShares(llvm::ArrayRef<Mesh *> meshes);
  void setRealShares(llvm::ArrayRef<Mesh *> meshes);
  void limit(size_t index, Mesh &mesh, MeshBalance &balance);
  double roomFor(int64_t device, size_t mesh, bool inner) const;
  double peakOf(const Seats &seats, double scale, unsigned *at = nullptr) const;
  Slope slopeAt(const Seats &seats, double scale, size_t mesh, bool inner,
                unsigned at) const;
  double scaleOf(int64_t device) const {
    return scale.empty() ? 1 : scale[device];
  }
  void rotate(llvm::ArrayRef<Mesh *> meshes, int64_t mostVariants);
  double finishOf(const Mesh &mesh) const;
  /// Samples of a step that each device of the mesh takes.
  std::vector<int64_t> samplesOf(const Mesh &mesh) const;

  const StepLoads &loads;
  const Cluster &cluster;
  llvm::ArrayRef<double> scale;
  std::vector<const MeshLoad *> loadOf;
  /// What each device does on the meshes that it belongs to.
  std::vector<Seats> seats;
  mutable std::map<std::pair<Seats, double>, std::pair<double, unsigned>> peaks;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PROPAGATE_BALANCEMESHES_H
