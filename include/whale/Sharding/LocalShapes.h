//===- LocalShapes.h - Shapes of shards ----------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SHARDING_LOCALSHAPES_H
#define WHALE_SHARDING_LOCALSHAPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "whale/Placement/Placement.h"
#include "whale/Sharding/RowWindow.h"

namespace whale {

/// For each dimension of `shape`: the run [first, last) of view dimensions
/// whose product it is. The view refines the shape dimension by dimension.
llvm::SmallVector<std::pair<unsigned, unsigned>>
getViewRuns(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> view);

/// The type of the shard that `device` holds of a tensor; nothing if it has no
/// place in the placement, or an empty share of a scalar.
std::optional<mlir::RankedTensorType> getLocalType(mlir::RankedTensorType type,
                                                   const Placement &placement,
                                                   DeviceId device);

/// The element type in which sums and products of this one are formed: f32 for
/// floats of 16 bits and fewer, so that they are rounded once.
mlir::Type getWideType(mlir::Type element);

/// Whether sums that are formed in the wide type can be beyond the range of
/// this one: bf16 has that of f32.
bool hasSmallRange(mlir::Type element);

/// The element type of these shards. Partial sums and products have that of
/// `getWideType`.
mlir::Type getLocalElementType(mlir::RankedTensorType type,
                               const Placement &placement);

/// The type that stands for "nothing of it" in a rank's signature: every
/// dimension 0, and at least one.
mlir::RankedTensorType getAbsentType(mlir::RankedTensorType type);

/// What a device holds of a value along one of its dimensions; nothing if it
/// holds no element, or no run of it.
std::optional<RowRange> getLocalRange(mlir::Value value,
                                      const Placement &placement, unsigned dim,
                                      DeviceId device);

} // namespace whale

#endif // WHALE_SHARDING_LOCALSHAPES_H
