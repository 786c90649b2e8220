//===- MomentValues.h - Cutting values into moments and joining them ------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_MICROBATCH_MOMENTVALUES_H
#define WHALE_LIB_TRANSFORMS_IMPORT_MICROBATCH_MOMENTVALUES_H

#include "mlir/IR/Builders.h"
#include "whale/Placement/Placement.h"

namespace whale {

/// The part of `value` that `device` holds under a split placement.
mlir::Value emitPart(mlir::OpBuilder &builder, mlir::Value value,
                     const Placement &placement, DeviceId device);

/// The same part where the moment that `device` stands for counts: it starts at
/// a whale.shard_offset.
mlir::Value emitOwnPart(mlir::OpBuilder &builder, mlir::Value value,
                        const Placement &placement, DeviceId device);

/// The value of this type whose parts under a split placement are `parts`, in
/// the order of devices 0, 1, ...
mlir::Value emitJoin(mlir::OpBuilder &builder, mlir::RankedTensorType type,
                     mlir::ValueRange parts, const Placement &placement);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_MICROBATCH_MOMENTVALUES_H
