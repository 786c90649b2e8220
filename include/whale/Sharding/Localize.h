//===- Localize.h - One operation on one rank's shards -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Rebuilds an operation on local shapes: the same operation with the
// attributes that mention sizes adjusted, and with the offset of the shard
// where positions matter (iota, and lookups into a split dimension).
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SHARDING_LOCALIZE_H
#define WHALE_SHARDING_LOCALIZE_H

#include "mlir/IR/Builders.h"
#include "whale/Sharding/OpRule.h"

namespace whale {

struct LocalOperation {
  /// The operation on global shapes, with the placements of its operands (as
  /// it requires them) and of its results.
  mlir::Operation *op;
  llvm::ArrayRef<Placement> operandPlacements;
  llvm::ArrayRef<Placement> resultPlacements;
  /// The rank's shards of the operands, and the device whose shapes they have.
  llvm::ArrayRef<mlir::Value> operands;
  DeviceId device;
};

/// The low and high padding along each window of the rule with which the
/// operation's positions on a device read the rows that it holds; nothing if
/// the device has none. Ranks that share a class must agree about it.
llvm::SmallVector<int64_t>
getLocalPadding(mlir::Operation *op, const OpRule &rule,
                llvm::ArrayRef<Placement> operandPlacements,
                llvm::ArrayRef<Placement> resultPlacements, DeviceId device);

/// Emits the operation for one rank; returns its results, or nothing after an
/// error at the operation.
llvm::FailureOr<llvm::SmallVector<mlir::Value>>
localize(mlir::OpBuilder &builder, const LocalOperation &local);

} // namespace whale

#endif // WHALE_SHARDING_LOCALIZE_H
