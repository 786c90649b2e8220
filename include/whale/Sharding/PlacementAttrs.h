//===- PlacementAttrs.h - Placements of values in the IR -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Between whale-propagate and whale-partition every operation carries
// `whale.placements`, one per result, and (until whale-insert-reshards has
// honoured it) `whale.operand_placements`, the placement it needs of each
// operand. Arguments of the function carry `whale.placement`; those of loop
// regions have the placement of the loop's result.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SHARDING_PLACEMENTATTRS_H
#define WHALE_SHARDING_PLACEMENTATTRS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"

namespace whale {

inline constexpr llvm::StringLiteral placementsAttrName = "whale.placements";
inline constexpr llvm::StringLiteral operandPlacementsAttrName =
    "whale.operand_placements";
inline constexpr llvm::StringLiteral placementAttrName = "whale.placement";
inline constexpr llvm::StringLiteral globalTypeAttrName = "whale.global_type";

/// The placement of a value; null if none has been given.
PlacementAttr getPlacement(mlir::Value value);

/// The placement that `operand`'s owner needs of it; null if it names none.
PlacementAttr getWantedPlacement(mlir::OpOperand &operand);

/// The terminator's operand that a task graph's result is; the value itself
/// otherwise.
mlir::Value lookThroughTaskGraph(mlir::Value value);

/// The results of the task graph or micro-batches that a yielded operand is.
llvm::SmallVector<mlir::Value> resultsOfYielded(mlir::OpOperand &operand);

/// The uses of a value, also outside of the task graphs that it leaves.
llvm::SmallVector<mlir::OpOperand *> findUses(mlir::Value value);

/// Returns a task graph with the body, and at first the results, of this one
/// that yields more values; it stands before it and has its uses. What is left
/// of this one is to be erased.
TaskGraphOp withResults(TaskGraphOp graph, llvm::ArrayRef<mlir::Value> more);

/// The bytes that a device has of a value: all where it has no placement.
int64_t getBytesOn(mlir::Value value, DeviceId device);

/// The operation that computes a value, inside of task graphs and
/// micro-batches; null for an argument.
mlir::Operation *findProducer(mlir::Value value);

/// The location of that operation, or of the argument: task graphs and
/// micro-batches have many lines, and their own is that of one of them.
mlir::Location getProducerLoc(mlir::Value value);

/// Whether the operation's regions hold values that have a place.
bool hasPlacedRegions(mlir::Operation *op);

/// The function that a pass works on: @main. Emits an error on the module if
/// there is none.
mlir::FailureOr<mlir::func::FuncOp> getMainFunction(mlir::ModuleOp module);

} // namespace whale

#endif // WHALE_SHARDING_PLACEMENTATTRS_H
