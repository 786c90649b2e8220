//===- MixedTargets.h - Ranks on GPUs and on processors ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_MIXEDTARGETS_H
#define WHALE_LIB_PROGRAM_MIXEDTARGETS_H

#include "mlir/IR/BuiltinOps.h"
#include "whale/Cluster/Cluster.h"
#include "llvm/ADT/BitVector.h"

namespace whale {

/// The devices whose ranks are on the processor: none where all are alike.
llvm::BitVector findProcessors(const Cluster &cluster);

/// Calls `lower`, which makes kernels of a partitioned module, with the classes
/// of ranks on GPUs, then, where there are some, with those of ranks on the
/// processor: their devices are of kind `cpu`, and others are not. These, and
/// their kernels, get `whale.for_processor`.
llvm::LogicalResult
lowerByTarget(mlir::ModuleOp module, const Cluster &cluster,
              llvm::function_ref<llvm::LogicalResult(mlir::ModuleOp module,
                                                     bool isForProcessor)>
                  lower);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_MIXEDTARGETS_H
