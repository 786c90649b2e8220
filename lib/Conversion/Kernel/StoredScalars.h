//===- StoredScalars.h - Types and constants of kernels ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In which types kernels keep the elements of StableHLO's tensors, compute with
// them and sum them up.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_KERNEL_STOREDSCALARS_H
#define WHALE_LIB_CONVERSION_KERNEL_STOREDSCALARS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace whale {

/// How an element of StableHLO type `type` is held in a buffer and passed
/// between operations: integers without sign and at least a byte wide, floats
/// of at most 8 bits as their bits. Null for a type that kernels do not handle.
mlir::Type getStorageType(mlir::Type type);

/// The tensor type of the same shape with `getStorageType` elements, or null.
mlir::RankedTensorType getStorageType(mlir::RankedTensorType type);

/// Bits of an element in stored form.
unsigned getStoredBits(mlir::Type storage);
/// The bytes that it takes in memory; of a tensor, each of its elements.
int64_t getStoredBytes(mlir::Type storage);

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

/// A scalar constant in stored form.
mlir::Value makeConstant(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Attribute value, mlir::Type type);

/// The type in which a sum of products is formed: f32 for narrower floats, at
/// least 32 bits for integers.
mlir::Type getAccumulatorType(mlir::Type type);

/// x + y in such a type; of i1, whether one is true.
mlir::Value addScalars(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                       mlir::Value y);

/// x * y + sum in such a type; of i1, whether both or the sum are true.
mlir::Value multiplyAdd(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                        mlir::Value y, mlir::Value sum);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_KERNEL_STOREDSCALARS_H
