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

#ifndef WHALE_LIB_CONVERSION_KERNEL_SCALAROPS_H
#define WHALE_LIB_CONVERSION_KERNEL_SCALAROPS_H

#include "Kernel/StoredScalars.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Operation.h"

namespace whale {

/// Widens a stored float that arithmetic does not work on (16 bits or less) to
/// f32; other values stay as they are. `type` is the StableHLO type.
mlir::Value toCompute(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                      mlir::Type type);

/// Rounds the result of an f32 computation to the stored form of `type`.
mlir::Value fromCompute(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value value, mlir::Type type);

/// Converts a stored scalar of type `from` to type `to` as XLA does: float to
/// integer saturates and maps NaN to 0, anything to i1 compares with 0.
mlir::Value convertScalar(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value value, mlir::Type from, mlir::Type to);

/// Rounds a stored float to `exponentBits` and `mantissaBits`.
mlir::Value reducePrecision(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value value, mlir::Type type,
                            unsigned exponentBits, unsigned mantissaBits);

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
/// of a reduction, for the given arguments, and with `outside` what stands for
/// values of its surroundings. Fails with an error at the operation at fault.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
emitScalarBlock(mlir::OpBuilder &b, mlir::Block &block,
                mlir::ValueRange arguments,
                const mlir::IRMapping *outside = nullptr);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_KERNEL_SCALAROPS_H
