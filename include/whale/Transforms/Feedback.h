//===- Feedback.h - Which result is an argument's next value ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_FEEDBACK_H
#define WHALE_TRANSFORMS_FEEDBACK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace whale {

/// For each argument of `main`, the result that is its value in the next step:
/// what `whale.fed_by` says if any argument has it, else the first
/// order-preserving match of arguments and results. JAX's names of arguments
/// and results (`params['w']`, `result[0]['w']`) group the leaves of one tree;
/// a tree only matches a tree of equal leaves. Text without such names is
/// matched leaf by leaf, by types.
llvm::SmallVector<std::optional<unsigned>>
findFeedback(mlir::func::FuncOp main);

/// The same by results: for each, the argument whose next value it is, or -1.
llvm::SmallVector<int64_t> findFedArguments(mlir::func::FuncOp main);

} // namespace whale

#endif // WHALE_TRANSFORMS_FEEDBACK_H
