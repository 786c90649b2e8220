//===- ShardingHints.h - Shardings that JAX prints, as layouts -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A program without strategies may say itself on which mesh it runs
// (`sdy.mesh`) and how its arguments and some values are sharded. This reads
// the axes of the mesh and turns shardings into layouts along each.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SHARDING_SHARDINGHINTS_H
#define WHALE_SHARDING_SHARDINGHINTS_H

#include "whale/Dialect/Shardy/IR/ShardyOps.h"
#include "whale/Placement/Placement.h"
#include "whale/Sharding/AxisPropagation.h"
#include "whale/Sharding/Factorization.h"

namespace whale {

/// The mesh that `sharding` of `from` or something above it refers to; null if
/// there is none.
mlir::sdy::MeshAttr findMesh(mlir::Operation *from,
                             mlir::sdy::TensorShardingAttr sharding);

/// The number of devices of a mesh.
int64_t countDevices(mlir::sdy::MeshAttr mesh);

/// What `sdy.sharding` is called on arguments of functions.
inline constexpr llvm::StringLiteral shardingAttrName = "sdy.sharding";

class ShardingHints {
public:
  /// The axes of `mesh` that have more than one device. Where a dimension of a
  /// sharding in `function` is split over several, they are in its order.
  ShardingHints(mlir::sdy::MeshAttr mesh, mlir::func::FuncOp function);

  /// Sizes of the axes, outermost first, and the devices in row-major order.
  llvm::ArrayRef<int64_t> getSizes() const { return sizes; }
  llvm::ArrayRef<DeviceId> getDevices() const { return devices; }

  /// The layout of `value` along each axis as the sharding asks for it: free
  /// where it leaves it open. Where a dimension has too few grains for an axis
  /// (the pieces of `factorization`), the axis is left open and named in
  /// `dropped`.
  llvm::SmallVector<AxisState>
  getStates(mlir::Value value, mlir::sdy::TensorShardingAttr sharding,
            Factorization &factorization,
            llvm::SmallVectorImpl<llvm::StringRef> &dropped) const;

private:
  llvm::SmallVector<llvm::StringRef> names;
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<DeviceId> devices;
};

} // namespace whale

#endif // WHALE_SHARDING_SHARDINGHINTS_H
