//===- DeviceValues.h - Values on the devices of a mesh ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_NORMALIZE_DEVICEVALUES_H
#define WHALE_LIB_TRANSFORMS_IMPORT_NORMALIZE_DEVICEVALUES_H

#include "whale/Dialect/Shardy/IR/ShardyOps.h"

namespace whale::normalize {

/// A value on each device of a mesh.
using Values = llvm::SmallVector<mlir::Value>;

inline bool agree(llvm::ArrayRef<mlir::Value> values) {
  return llvm::all_equal(values);
}

/// The mesh of a manual computation, its devices in row-major order.
struct Devices {
  mlir::sdy::MeshAttr mesh;

  int64_t count() const;

  /// The number that programs know the device at `position` by.
  int64_t id(int64_t position) const;

  /// Which block of dimension `dim` a device holds, of how many. Axes that are
  /// not `manual` leave the dimension whole.
  std::pair<int64_t, int64_t> block(int64_t position,
                                    mlir::sdy::TensorShardingAttr sharding,
                                    int64_t dim,
                                    mlir::sdy::ManualAxesAttr manual) const;

  /// The first device that differs from this one along manual axes alone.
  int64_t firstPeer(int64_t position, mlir::sdy::ManualAxesAttr manual) const;

private:
  /// (coordinate, size) of a device along an axis, or a part of one.
  std::pair<int64_t, int64_t> along(int64_t position,
                                    mlir::sdy::AxisRefAttr ref) const;
};

/// The mesh that all shardings of a computation name.
mlir::FailureOr<mlir::sdy::MeshAttr> meshOf(mlir::sdy::ManualComputationOp op);

/// Block number `index` of dimension `dim`, in blocks of `size`.
mlir::Value slice(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                  int64_t dim, int64_t index, int64_t size);

/// Values of one type behind each other along `dim`.
mlir::Value concatenate(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::ArrayRef<mlir::Value> values, int64_t dim);

} // namespace whale::normalize

#endif // WHALE_LIB_TRANSFORMS_IMPORT_NORMALIZE_DEVICEVALUES_H
