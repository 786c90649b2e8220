//===- WhaleDialect.h - The whale dialect -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_WHALEDIALECT_H
#define WHALE_DIALECT_WHALE_IR_WHALEDIALECT_H

#include "mlir/IR/Dialect.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/DenseSet.h"

#include <mutex>

namespace whale {
struct MemoryFit;
} // namespace whale

#include "whale/Dialect/Whale/IR/WhaleDialect.h.inc"

namespace whale {
/// Returns the MemoryFit of the compilation that the operation is part of; null
/// if passes are run without the driver.
inline MemoryFit *getMemoryFit(mlir::Operation *op) {
  return op->getContext()->getOrLoadDialect<WhaleDialect>()->memoryFit;
}
} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_WHALEDIALECT_H
