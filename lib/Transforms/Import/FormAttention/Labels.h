//===- Labels.h - Dimensions across operations ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which dimension of the scores a dimension of another tensor is.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_FORMATTENTION_LABELS_H
#define WHALE_LIB_TRANSFORMS_IMPORT_FORMATTENTION_LABELS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace whale::attention {

/// For each dimension of a tensor: the dimension of the scores that it is, or
/// one of the following.
using Labels = llvm::SmallVector<int, 6>;
/// A dimension of one element.
inline constexpr int kUnit = -1;
/// All elements along the dimension are equal.
inline constexpr int kAny = -2;
/// The features of queries and keys, and those of values.
inline constexpr int kDepth = 1000, kFeature = 1001;

/// A tensor with the labels of its dimensions.
struct Labeled {
  mlir::Value value;
  Labels labels;

  bool operator==(const Labeled &other) const = default;
  explicit operator bool() const { return bool(value); }
  bool has(int label) const { return llvm::is_contained(labels, label); }
};

llvm::ArrayRef<int64_t> shapeOf(mlir::Value value);

/// The labels 0, 1, …, of all dimensions of more than one element.
Labels numberDims(mlir::Value value);

/// What a broadcast, transposition, conversion of floats, or reshape that only
/// adds or drops dimensions of one element has as its operand; none for another
/// operation.
std::optional<Labeled> stepBack(const Labeled &from);

/// The labels of the result of such an operation, for those of its operand.
std::optional<Labels> stepForward(mlir::Operation *op, const Labels &labels);

/// Without transpositions, and without conversions from halves to f32.
Labeled stripTransposes(Labeled from);

/// Where they agree, what both say; none if they don't.
std::optional<Labels> unite(const Labels &a, const Labels &b);

/// The number that every element is, computed from constants.
std::optional<double> getConstant(mlir::Value value);

} // namespace whale::attention

#endif // WHALE_LIB_TRANSFORMS_IMPORT_FORMATTENTION_LABELS_H
