//===- CarryAttributes.h - Keep strategies across rewrites ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_CARRYATTRIBUTES_H
#define WHALE_LIB_TRANSFORMS_IMPORT_CARRYATTRIBUTES_H

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetVector.h"

namespace whale {

/// Gives `to` the strategy and phase of `from`, where it has none of its own.
void carryAttributes(mlir::Operation *from, mlir::Operation *to);

/// Gives the operations that a pattern creates the strategy and phase of the
/// operation that they replace.
class CarryAttributes : public mlir::RewriterBase::Listener {
public:
  void notifyOperationInserted(mlir::Operation *op,
                               mlir::OpBuilder::InsertPoint previous) override;
  void notifyOperationReplaced(mlir::Operation *op,
                               mlir::ValueRange replacement) override;
  void notifyOperationErased(mlir::Operation *op) override;

  /// What has been created up to now stands for `op`.
  void carryFrom(mlir::Operation *op);

private:
  /// Created by the pattern that is running.
  llvm::SetVector<mlir::Operation *> fresh;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_CARRYATTRIBUTES_H
