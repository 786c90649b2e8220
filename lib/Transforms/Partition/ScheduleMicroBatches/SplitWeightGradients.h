//===- SplitWeightGradients.h - What no other stage waits for ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PARTITION_SPLITWEIGHTGRADIENTS_H
#define WHALE_LIB_PARTITION_SPLITWEIGHTGRADIENTS_H

#include "mlir/IR/Block.h"

namespace whale {

/// Splits each backward task graph of a micro-batch in two: what other task
/// graphs wait for, and what only leaves the micro-batch (the gradients of
/// weights), which gets `whale.weight_gradient` and can be computed later.
void splitWeightGradients(mlir::Block &microBatch);

} // namespace whale

#endif // WHALE_LIB_PARTITION_SPLITWEIGHTGRADIENTS_H
