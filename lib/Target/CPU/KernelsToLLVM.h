//===- KernelsToLLVM.h - Kernels to the LLVM dialect ---------- -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The MLIR half of the compilation of kernels.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TARGET_CPU_KERNELSTOLLVM_H
#define WHALE_LIB_TARGET_CPU_KERNELSTOLLVM_H

#include "mlir/IR/BuiltinOps.h"

namespace whale {

/// Lowers functions on memrefs to the LLVM dialect, each memref argument as one
/// pointer. Math functions become calls of libm.
llvm::LogicalResult lowerKernelsToLLVM(mlir::ModuleOp module);

} // namespace whale

#endif // WHALE_LIB_TARGET_CPU_KERNELSTOLLVM_H
