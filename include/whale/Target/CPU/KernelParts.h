//===- KernelParts.h - Kernels compiled in parallel -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels of a program are compiled in parts, several at the same time. The
// parts follow from the kernels alone, so that a program has the same bytes
// however many processors the machine that compiles it has.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TARGET_CPU_KERNELPARTS_H
#define WHALE_TARGET_CPU_KERNELPARTS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace whale {

/// Modules with copies of about the same number of operations each of the
/// functions of `kernels`: one module for each four functions, at most eight.
/// Each function is in one of them; in a program for GPUs those of each
/// architecture, and those of the processor, are in modules of their own, by
/// the same rule.
llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>
divideKernels(mlir::ModuleOp kernels);

/// Copies of those of the processor in a program for GPUs, or of those for GPUs
/// of the architecture `arch`.
mlir::OwningOpRef<mlir::ModuleOp> selectKernels(mlir::ModuleOp kernels,
                                                bool isForProcessor,
                                                llvm::StringRef arch = "");

/// Compiles each part of `kernels`, numbered from 0, to an object file by
/// `compile`, which may change the part and emits a diagnostic if it fails, and
/// links them to the shared library `path`.
llvm::LogicalResult compileParts(
    mlir::ModuleOp kernels, llvm::StringRef path,
    llvm::function_ref<llvm::LogicalResult(mlir::ModuleOp part, size_t number,
                                           llvm::StringRef object)>
        compile);

} // namespace whale

#endif // WHALE_TARGET_CPU_KERNELPARTS_H
