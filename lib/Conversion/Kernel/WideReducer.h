//===- WideReducer.h - Reducers in the type they accumulate in --*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is accumulated is held in a wider type than its terms, and rounded once,
// when all are there.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_KERNEL_WIDEREDUCER_H
#define WHALE_LIB_CONVERSION_KERNEL_WIDEREDUCER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Region.h"

namespace whale {

/// Whether `value` is the sum, the product, the maximum or the like of these
/// two.
bool isCombined(mlir::Value value, mlir::Value lhs, mlir::Value rhs);

class WideReducer {
public:
  /// The type to accumulate in what has a StableHLO element type; equal to that
  /// or wider.
  using Widen = llvm::function_ref<mlir::Type(mlir::Type)>;

  /// Floats of 16 bits and less in f32.
  static mlir::Type toF32(mlir::Type element);
  /// These too, and f32 in f64: for sums without an order to choose.
  static mlir::Type toWider(mlir::Type element);

  /// Whether `body` gives one of the numbers that it gets, or a constant, so
  /// that nothing is ever rounded.
  static bool isChoice(mlir::Block &body);

  /// The reducer `body` in the types that `widen` says, or in its own where its
  /// operations depend on them.
  WideReducer(mlir::Block &body, Widen widen);

  /// The StableHLO element type in which it accumulates operand `number`.
  mlir::Type getType(unsigned number) const;
  /// Whether that is not the operand's.
  bool isWide(unsigned number) const;
  /// Whether floats are rounded to the precision of the terms each time: the
  /// error then grows with their number, unless blocks are accumulated apart.
  bool roundsTerms() const;
  /// Whether each result is the sum, the product or the like of what it
  /// accumulates and its term: loops can then form such sums in an order of
  /// their own.
  bool isCombiner() const;

  /// The reducer in these types.
  mlir::Region &getBody() { return region; }

  /// A stored scalar of operand `number` as the reducer takes it, and back.
  mlir::Value widen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                    unsigned number) const;
  mlir::Value narrow(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                     unsigned number) const;

  /// The results for what is accumulated and then the terms, all wide. Fails
  /// with an error at an operation that is not supported.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  emit(mlir::OpBuilder &b, mlir::ValueRange arguments);
  /// The same; where it fails, `good` becomes false and the result is `before`,
  /// so that what is built around it stays well formed.
  llvm::SmallVector<mlir::Value> join(mlir::OpBuilder &b,
                                      mlir::ValueRange before,
                                      mlir::ValueRange more, bool &good);

private:
  mlir::Region region;
  llvm::SmallVector<mlir::Type> elements; // Of the operands.
};

} // namespace whale

#endif // WHALE_LIB_CONVERSION_KERNEL_WIDEREDUCER_H
