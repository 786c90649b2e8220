//===- LinalgToKernel.h - One linalg operation as a loop nest - -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns a linalg.generic on tensors into a whale.kernel: loops over flat
// buffers, ordered and merged so that the innermost one runs over neighbours in
// memory.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_LOOPNEST_LINALGTOKERNEL_H
#define WHALE_LIB_CONVERSION_LOOPNEST_LINALGTOKERNEL_H

#include "LoopNest/KernelCache.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"

namespace whale {

/// The slice update that stores result `number` and nothing else uses it, if
/// the loops of `op` can write into the tensor that is updated.
mlir::stablehlo::DynamicUpdateSliceOp findStore(mlir::linalg::GenericOp op,
                                                unsigned number);

/// Whether a slice could as well be stored at `place`, before `store`.
bool canStoreAt(mlir::stablehlo::DynamicUpdateSliceOp store,
                mlir::Operation *place);

/// Where an operation comes from and all that was fused into it.
mlir::Location getAllLocations(mlir::linalg::GenericOp op);

/// Replaces `op` by a kernel, together with the operations that fill its
/// initial values and those that store its results in slices (both are left
/// without a use). All index maps must be linear. A kernel that equals one of
/// the cache is left without a body.
KernelOp convertToLoops(mlir::RewriterBase &rewriter,
                        mlir::linalg::GenericOp op, KernelCache &cache);

/// The same for a GPU, as EmitBlocks.cpp says: one kernel or two. An iteration
/// of the kernel's extent is what a thread runs or, if it has
/// kThreadsAttrName, so many threads.
KernelOp convertToBlocks(mlir::RewriterBase &rewriter,
                         mlir::linalg::GenericOp op, KernelCache &cache);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_LOOPNEST_LINALGTOKERNEL_H
