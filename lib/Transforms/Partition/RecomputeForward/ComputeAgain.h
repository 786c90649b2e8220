//===- ComputeAgain.h - Copies of a forward in its backward -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_RECOMPUTEFORWARD_COMPUTEAGAIN_H
#define WHALE_LIB_TRANSFORMS_PARTITION_RECOMPUTEFORWARD_COMPUTEAGAIN_H

#include "ForwardChain.h"

namespace whale {

/// Whether a value that the backward needs can be computed again behind a
/// gradient: one is there by then in each task graph that uses it.
bool hasGradients(const ForwardChain &chain, mlir::Value value);

/// Gives each backward task graph of the chain copies of these operations,
/// instead of what they have made in the forward. Returns how many it has made.
int64_t computeAgain(const ForwardChain &chain,
                     const llvm::SetVector<mlir::Operation *> &again);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_RECOMPUTEFORWARD_COMPUTEAGAIN_H
