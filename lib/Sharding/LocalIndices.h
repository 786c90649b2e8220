//===- LocalIndices.h - Positions in a whole tensor, in a shard -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The index vectors of a gather or scatter mean positions in the whole
// operand. Where a dimension that they look up is split, a rank needs to know
// which of them fall into its shard, and where.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_SHARDING_LOCALINDICES_H
#define WHALE_LIB_SHARDING_LOCALINDICES_H

#include "mlir/IR/Builders.h"
#include "whale/Placement/Placement.h"

namespace whale {

struct LocalIndices {
  /// Index vectors into the shard; those of positions outside of it mean
  /// nothing.
  mlir::Value indices;
  /// For each index vector, whether the shard holds its position.
  mlir::Value isMine;
};

/// The operand of a gather or scatter, and how index vectors look it up.
struct Lookup {
  /// The whole operand's shape, where it lives and whose shard is meant.
  llvm::ArrayRef<int64_t> shape;
  const Placement &placement;
  DeviceId device;
  /// The dimensions that are looked up row by row.
  llvm::ArrayRef<int64_t> rowDims;
  /// The dimension that each component of an index vector means, and the
  /// dimension of `indices` that these components are along.
  llvm::ArrayRef<int64_t> indexMap;
  int64_t indexVectorDim;
};

/// Whether a dimension is split that is looked up row by row.
bool looksUpSplit(const Lookup &lookup);

/// Rewrites `indices` for a lookup of split dimensions. Values may be out of
/// bounds: no device holds those.
LocalIndices emitLocalIndices(mlir::OpBuilder &builder, mlir::Location loc,
                              mlir::Value indices, const Lookup &lookup);

/// Where the box of this rank starts along a view dimension, as a scalar.
mlir::Value emitShardOffset(mlir::OpBuilder &builder, mlir::Location loc,
                            const Placement &placement, unsigned viewDim,
                            mlir::Type elementType);

} // namespace whale

#endif // WHALE_LIB_SHARDING_LOCALINDICES_H
