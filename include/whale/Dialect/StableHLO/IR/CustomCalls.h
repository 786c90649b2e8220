//===- CustomCalls.h - Custom calls that are known by name ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_CUSTOMCALLS_H
#define WHALE_DIALECT_STABLEHLO_IR_CUSTOMCALLS_H

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include <optional>

namespace whale {

/// Returns the LAPACK routine of a custom call to `target`, under its name for
/// real matrices ("syevd" also for lapack_zheevd_ffi); nullopt if it is not
/// such a call. On the CPU, JAX uses LAPACK for factorizations and eigenvalues.
std::optional<llvm::StringRef> getLapackRoutine(llvm::StringRef target);

/// Whether a custom call to `target` is how JAX prints a call of a Python
/// function, `index` in its configuration.
bool isPythonCallback(llvm::StringRef target);

/// Returns the operation of chlo that a custom call to `target` stands for,
/// without its dialect ("top_k" for mhlo.topk); nullopt if it is not such a
/// call. Exported texts spell operations so.
std::optional<llvm::StringRef> getChloOperation(llvm::StringRef target);

/// Returns what a call of a known target is configured with; empty if it has
/// no configuration.
mlir::DictionaryAttr getConfiguration(mlir::stablehlo::CustomCallOp call);

/// Checks a call of a known target against the signature of the target:
/// operands, results, their layouts, and the configuration. Any call of another
/// target is right.
llvm::LogicalResult verifySignature(mlir::stablehlo::CustomCallOp call);

} // namespace whale

#endif // WHALE_DIALECT_STABLEHLO_IR_CUSTOMCALLS_H
