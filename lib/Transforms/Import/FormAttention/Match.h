//===- Match.h - Attention as it is written ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_FORMATTENTION_MATCH_H
#define WHALE_LIB_TRANSFORMS_IMPORT_FORMATTENTION_MATCH_H

#include "AttentionMask.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "llvm/ADT/SetVector.h"

#include <string>

namespace whale::attention {

/// The operations of one softmax, from the product of queries and keys to the
/// exponentials. Labels are the dimensions of the exponentials.
struct Scores {
  mlir::stablehlo::ExpOp exponential;
  mlir::stablehlo::DotGeneralOp product;
  Labeled query, key;
  /// Of the dimension that the softmax is over.
  int keyLabel = -1;
  double scale = 1;
  /// What masked scores are; with a mask only.
  std::optional<double> fill;
  Mask mask;
  /// Added to the scaled scores or, if `subtractsBias`, subtracted.
  Labeled bias;
  bool subtractsBias = false;
  /// All operations but those of the mask, of constants and of the bias.
  llvm::SetVector<mlir::Operation *> operations;

  bool isMasked() const { return fill.has_value(); }
};

/// A product with the labels of its result; null where there is none.
struct Product {
  mlir::stablehlo::DotGeneralOp op;
  Labels labels;

  explicit operator bool() const { return bool(op); }
};

/// The products that use probabilities or their gradient. Each may be missing,
/// but not all.
struct Uses {
  Product result;
  Labeled value;
  /// The cotangent of the result, and its product with the values; that is
  /// missing if only the values have a gradient.
  Labeled cotangent;
  mlir::stablehlo::DotGeneralOp probabilityCotangent;
  Product queryGradient, keyGradient, valueGradient;
  /// All operations in between, and these.
  llvm::SetVector<mlir::Operation *> operations;

  bool hasGradient() const {
    return queryGradient || keyGradient || valueGradient;
  }
};

/// Why something is no attention, as a clause; empty where it doesn't look like
/// it at all.
using Reason = std::string;

/// The operation's name, quoted, without that of its dialect.
std::string nameOf(mlir::Operation *op);

/// Finds what the exponentials are of. There is a reason if they are those of a
/// softmax, but not of scores.
bool matchScores(mlir::stablehlo::ExpOp op, Scores &found, Reason &reason);

/// Finds what uses the exponentials.
std::optional<Uses> matchUses(const Scores &scores, Reason &reason);

/// Whether exponentials of what was made of a product are made part of another
/// one, with an operand that is none of the first: in a classifier and its
/// gradient, there is no such operand.
bool looksLikeAttention(mlir::stablehlo::ExpOp exponential);

/// The labels of a product's operand, for those of its result. `contracted` is
/// the label of its contracted dimension.
Labeled labelOperand(mlir::stablehlo::DotGeneralOp op, bool isLeft,
                     const Labels &result, int contracted);

} // namespace whale::attention

#endif // WHALE_LIB_TRANSFORMS_IMPORT_FORMATTENTION_MATCH_H
