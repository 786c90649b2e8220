//===- AttentionKernels.h - Attention kernels of a GPU ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_GPU_ATTENTIONKERNELS_H
#define WHALE_LIB_CONVERSION_GPU_ATTENTIONKERNELS_H

#include "Gpu/AttentionTiles.h"

namespace whale {

/// Votes of a block whether masked scores count.
inline constexpr int64_t kAttentionVotes = kAttentionSide;

/// The kernels of an operation.
class Attention {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  /// Without `code`, kernels stay empty.
  Attention(mlir::PatternRewriter &rewriter, mlir::Operation *op, bool code)
      : rewriter(rewriter), op(op), code(code), loc(op->getLoc()),
        sizes(getAttentionSizes(op)), letters(getAttentionLetters(op)),
        isGradient(isa<AttentionGradientOp>(op)) {
    depth = llvm::alignTo(sizes.depth, kAttentionSide);
    features = llvm::alignTo(sizes.features, kAttentionSide);
    for (mlir::Value operand : op->getOperands())
      elements.push_back(getElementTypeOrSelf(operand));
  }

  /// Why there are no kernels for it; empty if there are.
  llvm::StringRef findReason();
  mlir::LogicalResult run();

private:
  std::optional<AttentionTileSizes> findTiles(bool isForKeys) const;
  mlir::FailureOr<KernelOp> makeBlocks(
      mlir::TypeRange results, llvm::ArrayRef<mlir::Value> inputs,
      int64_t blocks, AttentionTileSizes tiles,
      llvm::function_ref<void(AttentionTiles &, mlir::Value, mlir::Value)>
          body);
  mlir::LogicalResult makeForward();
  mlir::LogicalResult makeGradient();
  mlir::FailureOr<KernelOp> makeRowGradient(llvm::ArrayRef<mlir::Value> inputs);
  mlir::FailureOr<KernelOp> makeKeyGradient(llvm::ArrayRef<mlir::Value> inputs);

  mlir::PatternRewriter &rewriter;
  mlir::Operation *op;
  bool code;
  mlir::Location loc;
  AttentionSizes sizes;
  AttentionLetters letters;
  bool isGradient;
  int64_t depth, features;
  llvm::SmallVector<mlir::Type> elements;
};

/// A walk of a block of rows over the keys: which tiles it visits.
class KeyWalk {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  KeyWalk(AttentionTiles &t, mlir::Value firstRow);

  /// Runs `body(key, carried)` for each tile; the first values carried are the
  /// largest scores of rows.
  Values
  run(llvm::ArrayRef<mlir::Value> initial,
      llvm::function_ref<Values(mlir::Value, llvm::ArrayRef<mlir::Value>)>
          body);
  /// The keys that `run` has come to.
  mlir::Value getLimit() const { return limit; }
  /// The same tiles once more.
  Values
  repeat(llvm::ArrayRef<mlir::Value> initial,
         llvm::function_ref<Values(mlir::Value, llvm::ArrayRef<mlir::Value>)>
             body) {
    return overTiles(k.index(0), limit, initial, body);
  }

private:
  bool votes() const;
  mlir::Value vote(llvm::ArrayRef<mlir::Value> largest, mlir::Value turn);
  Values
  overTiles(mlir::Value from, mlir::Value to,
            llvm::ArrayRef<mlir::Value> initial,
            llvm::function_ref<Values(mlir::Value, llvm::ArrayRef<mlir::Value>)>
                body);

  AttentionTiles &t;
  KernelBuilder &k;
  mlir::Value firstRow, kept, limit;
  AttentionTile memory;
};

/// A row's largest score so far, from which exponentials are counted: with
/// nothing but minus infinity from 0, so that they are 0.
mlir::Value findBase(AttentionTiles &t, mlir::Value largest);

/// What the 16 threads of a row have, added up.
mlir::Value sumRow(AttentionTiles &t, mlir::Value value);

/// What the online softmax does with the scores of a tile: the new largest
/// scores of a thread's rows, what sums so far are multiplied with, and the
/// exponentials.
struct OnlineStep {
  llvm::SmallVector<mlir::Value> largest, factors, exponentials;

  OnlineStep(AttentionTiles &t, llvm::ArrayRef<mlir::Value> scores,
             llvm::ArrayRef<mlir::Value> before);
};

/// Adds patterns that make kernels for a GPU of attention whose tiles fit.
void populateAttentionBlockPatterns(mlir::RewritePatternSet &patterns,
                                    bool code);

/// Writes the result as its only user, if that transposes it, has it; with
/// `keepsFeatures` only if features stay neighbours.
void absorbTranspose(mlir::PatternRewriter &rewriter, AttentionOp op,
                     bool keepsFeatures = false);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_GPU_ATTENTIONKERNELS_H
