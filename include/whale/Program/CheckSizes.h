//===- CheckSizes.h - Sizes that can be counted -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAM_CHECKSIZES_H
#define WHALE_PROGRAM_CHECKSIZES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"

namespace whale {

/// Whether the bytes of a tensor of static shape are far below 2^63, whatever
/// its element type becomes.
bool hasCountableBytes(mlir::RankedTensorType type);

/// Fails with an error at the first value in `root` whose dimensions, bytes, or
/// bytes together with those of the values before it, are too many: everything
/// that runs on a program takes sizes for numbers of 64 bits.
mlir::LogicalResult checkSizes(mlir::Operation *root);

/// The same as a pass.
std::unique_ptr<mlir::Pass> createCheckSizesPass();

} // namespace whale

#endif // WHALE_PROGRAM_CHECKSIZES_H
