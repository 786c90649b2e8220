//===- ShardScratch.h - What products use besides buffers -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_SHARDSCRATCH_H
#define WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_SHARDSCRATCH_H

#include "mlir/IR/BuiltinOps.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"

namespace whale {

/// Returns the bytes that each device uses, in addition to buffers, for its
/// shards of products and convolutions that have their placements, as `find`
/// says of one device's; there is at least one. `alike` names for each device
/// the first one with the same shards.
std::vector<int64_t>
findShardScratch(llvm::ArrayRef<mlir::Operation *> products,
                 llvm::ArrayRef<int64_t> alike, const Cluster &cluster,
                 const WhaleDialect::ScratchFinder &find);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_SHARDSCRATCH_H
