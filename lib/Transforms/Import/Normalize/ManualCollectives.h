//===- ManualCollectives.h - Collectives of manual computations -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_NORMALIZE_MANUALCOLLECTIVES_H
#define WHALE_LIB_TRANSFORMS_IMPORT_NORMALIZE_MANUALCOLLECTIVES_H

#include "DeviceValues.h"

namespace whale::normalize {

bool isCollective(mlir::Operation *op);

/// Writes out what a collective gives on each device: `operands` and the result
/// hold a list of devices' values for each operand and result.
mlir::FailureOr<llvm::SmallVector<Values>>
emitCollective(mlir::OpBuilder &b, mlir::Operation *op, const Devices &devices,
               llvm::ArrayRef<Values> operands);

} // namespace whale::normalize

#endif // WHALE_LIB_TRANSFORMS_IMPORT_NORMALIZE_MANUALCOLLECTIVES_H
