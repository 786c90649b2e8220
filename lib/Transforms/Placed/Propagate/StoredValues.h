//===- StoredValues.h - Which values are written to memory ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What whale-fuse-kernels will make of a step, as far as is known before
// there are kernels.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_STOREDVALUES_H
#define WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_STOREDVALUES_H

#include "StepMeshes.h"

namespace whale {

/// Whether an operation runs its regions.
bool isLoop(mlir::Operation *op);

/// What a kernel computes for an operation's result.
struct Computed {
  /// Nothing if some of it takes long.
  std::optional<unsigned> arithmetic;
  /// The stored values that it reads.
  llvm::SmallDenseSet<mlir::Value, 8> reads;
};

/// Whether an operation's result is written to memory: what is computed element
/// by element becomes part of the kernel that uses it, or of each of several if
/// it is cheap (FusionRule.h); but not of one in another function
/// (`isUsedElsewhere`).
bool isStored(mlir::Operation *op, const StepMeshes &meshes,
              const Computed &computed, bool isUsedElsewhere);

/// The same of an argument of micro-batches: a slice of the mini-batch that is
/// taken when it is needed, for one micro-batch. Other pieces are stored
/// outside.
bool isStoredSlice(mlir::BlockArgument argument);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_STOREDVALUES_H
