//===- Reducers.h - What a reduction's region computes -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SHARDING_REDUCERS_H
#define WHALE_SHARDING_REDUCERS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "whale/Placement/Placement.h"
#include <optional>

namespace whale {

/// The reduction that the body of a reduce, scatter or window operation
/// applies to two scalars, if it is a single commutative one that devices can
/// combine.
std::optional<Reduction> getReductionKind(mlir::Region &body);

/// Whether a number combined with itself is that number.
inline bool isIdempotent(Reduction kind) {
  return kind != Reduction::Sum && kind != Reduction::Product;
}

/// Whether the operation combines its operands element by element by a
/// reduction that is idempotent: terms of it then follow from terms of one or
/// more operands and whole values of the others.
bool combinesTerms(mlir::Operation *op, Reduction kind);

/// `a` and `b` combined by the reduction.
mlir::Value emitCombination(mlir::OpBuilder &builder, mlir::Location loc,
                            Reduction kind, mlir::Value a, mlir::Value b);

/// What combines with any number of this type to that number: 0 for a sum, -inf
/// or the least integer for a maximum. Null where there is none.
mlir::Attribute getIdentity(Reduction kind, mlir::Type element);

/// The same, such that every value keeps all of its bits: 0.0 + -0.0 is 0.0,
/// and so -0.0 is the one for sums.
mlir::Attribute getExactIdentity(Reduction kind, mlir::Type element);

/// Whether `value` is a constant every element of which is the identity of the
/// reduction.
bool isIdentity(Reduction kind, mlir::Value value);

/// Whether every element of `value` is known to be (positive or negative) 0:
/// such a value may stand for a partial sum. Looks through broadcasts,
/// reshapes and converts.
bool isZero(mlir::Value value);

/// Whether every element of `value` is known to be 0.0, or the integer 0.
bool isPlusZero(mlir::Value value);

/// Whether `value` is a scatter that adds updates to 0.0, in integers or in at
/// least 32 bits: it can add them to a sum instead, without a table of zeros.
/// In half precision each update would be rounded to the sum's last digit.
bool isSumOfUpdates(mlir::Value value);

/// Whether no element can be -0.0, because 0.0 is among its terms: to add 0.0
/// changes none of its bits. Looks one addition deep.
bool isNeverMinusZero(mlir::Value value);

} // namespace whale

#endif // WHALE_SHARDING_REDUCERS_H
