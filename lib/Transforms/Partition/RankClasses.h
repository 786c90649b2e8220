//===- RankClasses.h - Ranks that run the same schedule ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_RANKCLASSES_H
#define WHALE_LIB_TRANSFORMS_PARTITION_RANKCLASSES_H

#include "ResolveReshards.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace whale {

/// The ranks of each class, ascending, classes in the order of their first
/// ranks. Ranks with equal local sizes under every placement are one class, if
/// the parts of images that they hold are padded alike.
std::vector<std::vector<int64_t>>
findRankClasses(mlir::func::FuncOp main, const ResolvedReshards &reshards,
                int64_t rankCount);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_RANKCLASSES_H
