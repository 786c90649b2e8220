//===- FoldEmptyShares.h - Compute nothing of empty shares ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_FOLDEMPTYSHARES_H
#define WHALE_LIB_TRANSFORMS_PARTITION_FOLDEMPTYSHARES_H

#include "mlir/IR/Block.h"

namespace whale {

/// Replaces sums over no elements by zeros, and what adds such zeros by what
/// they are added to. Operations without a use disappear.
void foldEmptyShares(mlir::Block &block);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_FOLDEMPTYSHARES_H
