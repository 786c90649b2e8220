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
#include "whale/Conversion/Target.h"
#include "llvm/ADT/BitVector.h"

namespace whale {

/// The devices whose ranks are on the processor: none where all are alike.
llvm::BitVector findProcessors(const Cluster &cluster);

/// Calls `lower`, which makes kernels of a partitioned module, once for each
/// target that ranks have, with their classes alone. Where there are several
/// targets, classes and kernels of the processor get `whale.for_processor`,
/// those of a GPU `whale.gpu_arch`.
llvm::LogicalResult
lowerByTarget(mlir::ModuleOp module,
              llvm::function_ref<Target(int64_t rank)> targetOf,
              llvm::function_ref<llvm::LogicalResult(mlir::ModuleOp module,
                                                     const Target &target)>
                  lower);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_MIXEDTARGETS_H
