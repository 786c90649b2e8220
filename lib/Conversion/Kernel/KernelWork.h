//===- KernelWork.h - What kernels do ---------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Notes at kernels and calls what the cost model asks of them: their FLOPs and
// bytes, the class of these and the type that they are computed in. They are
// made by who knows what they compute; who prices instructions sees only them.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_KERNEL_KERNELWORK_H
#define WHALE_LIB_CONVERSION_KERNEL_KERNELWORK_H

#include "whale/Cluster/OpClass.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "llvm/ADT/MapVector.h"

#include <array>

namespace whale {

/// The sum of what a kernel's parts do.
class KernelWork {
public:
  /// `type` is that of the numbers that are computed, or null.
  void add(OpClass opClass, mlir::Type type, int64_t flops);
  /// Of several classes and types a kernel has those with the most FLOPs.
  void note(KernelOp kernel, int64_t bytes) const;

private:
  std::array<int64_t, kNumOpClasses> flopsOf = {};
  llvm::MapVector<mlir::Type, int64_t> flopsIn;
};

/// Notes that a kernel is `op`, or one of several that together are; `flops` is
/// then its part. It reads and writes all its buffers, but of what it updates
/// no more than it has to update it with.
void noteWork(KernelOp kernel, mlir::Operation *op);
void noteWork(KernelOp kernel, mlir::Operation *op, int64_t flops);
/// The same of a call.
void noteWork(LibraryCallOp call, mlir::Operation *op);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_KERNEL_KERNELWORK_H
