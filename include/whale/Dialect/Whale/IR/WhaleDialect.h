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
#include "whale/Step/MemoryFit.h"
#include "llvm/ADT/DenseSet.h"

#include <functional>
#include <mutex>

namespace whale {
struct Cluster;
} // namespace whale

#include "whale/Dialect/Whale/IR/WhaleDialect.h.inc"

namespace whale {
/// Returns what is known of memory in the compilation that the operation is
/// part of: a context is used for one. Passes that run at the same time must
/// not change it.
inline MemoryFit &getMemoryFit(mlir::Operation *op) {
  return op->getContext()->getOrLoadDialect<WhaleDialect>()->memoryFit;
}
inline WhaleDialect::ScratchFinder &getScratchFinder(mlir::Operation *op) {
  return op->getContext()->getOrLoadDialect<WhaleDialect>()->findScratch;
}
} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_WHALEDIALECT_H
