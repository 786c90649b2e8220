//===- ShardingPattern.h - What a split of a parameter means ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ways to split an operation over its parameter have names in the field:
// column and row parallelism, vocabulary parallelism and so on. Nothing is
// decided by them, for propagation reads rules; they explain to a user what
// was decided.
//

#ifndef WHALE_SHARDING_SHARDINGPATTERN_H
#define WHALE_SHARDING_SHARDINGPATTERN_H

#include "mlir/IR/Value.h"
#include "whale/Sharding/OpRule.h"

namespace whale {

struct ShardingPattern {
  /// `column`, `row`, `expert`, `vocabulary`, `embedding`, `input channels`,
  /// `output channels`, `groups`, `spatial`.
  llvm::StringRef name;
  /// What has to be communicated for the operation itself.
  llvm::StringRef communication;
};

/// The pattern of a product, convolution or lookup that computes with
/// `parameter`, moved or not, when it is split along `piece`: one of the
/// forward pass if there is one. Nothing if the piece reaches none.
std::optional<ShardingPattern> findPattern(mlir::Value parameter,
                                           const DimPiece &piece);

/// That of a convolution whose image is split, and its parameter only stored
/// so.
ShardingPattern getSpatialPattern();

} // namespace whale

#endif // WHALE_SHARDING_SHARDINGPATTERN_H
