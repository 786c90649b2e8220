//===- GivenPlacements.h - Where the input wants values ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Annotated text may say where an argument of @main lies, or where a result is
// wanted, as another program has them: `whale.given_placement`. Passes up to
// whale-insert-reshards read it, which drops it.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SHARDING_GIVENPLACEMENTS_H
#define WHALE_SHARDING_GIVENPLACEMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"

namespace whale {

inline constexpr llvm::StringLiteral kGivenPlacementAttr =
    "whale.given_placement";

/// Where the input says that an argument lies; null where it doesn't.
PlacementAttr getGivenPlacement(mlir::BlockArgument argument);
/// Where it wants a result of `main`.
PlacementAttr getGivenPlacement(mlir::func::FuncOp main, unsigned result);
/// Whether it wants any result anywhere: the program then has no strategies,
/// and follows from where its results are wanted.
bool hasGivenResults(mlir::func::FuncOp main);
/// Removes them from arguments and results.
void dropGivenPlacements(mlir::func::FuncOp main);

} // namespace whale

#endif // WHALE_SHARDING_GIVENPLACEMENTS_H
