//===- WritePlacements.h - Layouts and shares as attributes -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_WRITEPLACEMENTS_H
#define WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_WRITEPLACEMENTS_H

#include "StepLayouts.h"

namespace whale {

/// Writes where every value is made and wanted: on arguments, operations and
/// what enters and leaves micro-batches.
void writePlacements(mlir::func::FuncOp function, const StepMeshes &meshes,
                     const StepLayouts &layouts);

/// Gives only these operations of it, at least one, their placements.
void writePlacements(llvm::ArrayRef<mlir::Operation *> ops,
                     const StepMeshes &meshes, const StepLayouts &layouts);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_WRITEPLACEMENTS_H
