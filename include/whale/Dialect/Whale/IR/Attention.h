//===- Attention.h - Sizes of attention operations --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_ATTENTION_H
#define WHALE_DIALECT_WHALE_IR_ATTENTION_H

#include "whale/Dialect/Whale/IR/WhaleOps.h"

namespace whale {

/// The letters that mean the same in every attention operation.
inline constexpr char kRowLetter = 'q', kKeyLetter = 'k', kDepthLetter = 'd',
                      kFeatureLetter = 'e', kUnitLetter = '1';

/// Extents; `heads` is the product of those of all other letters.
struct AttentionSizes {
  int64_t heads = 1, rows = 1, keys = 1, depth = 1, features = 1;
};

/// The letters of an attention operation's operands, and of its results.
struct AttentionLetters {
  llvm::SmallVector<llvm::StringRef> operands, results;
};

/// Whether tensors of attention, but for a mask, may have these elements.
bool isAttentionElement(mlir::Type element);
/// Whether it is a whale.attention or a whale.attention_gradient; only for
/// those are the functions below.
bool isAttention(mlir::Operation *op);
AttentionLetters getAttentionLetters(mlir::Operation *op);
AttentionSizes getAttentionSizes(mlir::Operation *op);
/// The attribute `causal`.
std::optional<int64_t> getAttentionCausal(mlir::Operation *op);
/// Multiplications and additions of the products, without those of keys after
/// a causal row; at most the largest number.
int64_t getAttentionFlops(mlir::Operation *op);

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_ATTENTION_H
