//===- ScalarOps.h - Elementwise StableHLO on scalars --------- -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What one element of an elementwise StableHLO operation is, as arith and math
// operations on signless scalars. The bodies of linalg operations and of hand-
// built kernels are made of it.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_SCALAROPS_H
#define WHALE_LIB_CONVERSION_SCALAROPS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace whale {

/// How an element of StableHLO type `type` is held in a buffer and passed
/// between operations: integers without sign and at least a byte wide, floats
/// of at most 8 bits as their bits. Null for a type that kernels do not handle.
mlir::Type getStorageType(mlir::Type type);

/// The tensor type of the same shape with `getStorageType` elements, or null.
mlir::RankedTensorType getStorageType(mlir::RankedTensorType type);

/// Bits of an element in stored form.
unsigned getStoredBits(mlir::Type storage);

/// A constant of zeros in stored or scalar form.
mlir::Value makeZero(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type);

/// How arithmetic sees an element: integers have their own width.
mlir::Type getScalarType(mlir::Type type);

/// Between the stored form of an element and the one of arithmetic.
mlir::Value fromStored(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value value, mlir::Type type);
mlir::Value toStored(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                     mlir::Type type);

/// True for unsigned integers and i1, which order and convert as 0 and 1.
bool isUnsigned(mlir::Type type);

/// Widens a stored float that arithmetic does not work on (16 bits or less) to
/// f32; other values stay as they are. `type` is the StableHLO type.
mlir::Value toCompute(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                      mlir::Type type);

/// Rounds the result of an f32 computation to the stored form of `type`.
mlir::Value fromCompute(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value value, mlir::Type type);

/// The type in which a sum of products is formed: f32 for narrower floats, at
/// least 32 bits for integers.
mlir::Type getAccumulatorType(mlir::Type type);

/// x * y + sum in such a type; of i1, whether both or the sum are true.
mlir::Value multiplyAdd(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                        mlir::Value y, mlir::Value sum);

/// Converts a stored scalar of type `from` to type `to` as XLA does: float to
/// integer saturates and maps NaN to 0, anything to i1 compares with 0.
mlir::Value convertScalar(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value value, mlir::Type from, mlir::Type to);

/// Rounds a stored float to `exponentBits` and `mantissaBits`.
mlir::Value reducePrecision(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value value, mlir::Type type,
                            unsigned exponentBits, unsigned mantissaBits);

/// A scalar constant in stored form.
mlir::Value makeConstant(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Attribute value, mlir::Type type);

/// One element of the elementwise operation `op` from one element of each
/// operand; fails, without a message, for an operation that is not elementwise
/// or whose types have no stored form.
mlir::FailureOr<mlir::Value> emitScalarOp(mlir::OpBuilder &b,
                                          mlir::Operation *op,
                                          mlir::ValueRange operands);

/// The math functions among the elementwise operations.
mlir::FailureOr<mlir::Value> emitScalarMath(mlir::OpBuilder &b,
                                            mlir::Operation *op,
                                            mlir::ValueRange operands);

/// Elementwise operations that take or give complex numbers.
mlir::FailureOr<mlir::Value> emitComplexOp(mlir::OpBuilder &b,
                                           mlir::Operation *op,
                                           mlir::ValueRange operands);

/// True if `emitScalarOp` knows `op`.
bool isElementwise(mlir::Operation *op);

/// The results of a block of scalar (0-d tensor) StableHLO, such as the body
/// of a reduction, for the given arguments. Fails with an error at the
/// operation at fault.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
emitScalarBlock(mlir::OpBuilder &b, mlir::Block &block,
                mlir::ValueRange arguments);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_SCALAROPS_H
