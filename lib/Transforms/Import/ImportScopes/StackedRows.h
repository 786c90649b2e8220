//===- StackedRows.h - Whose the stacks of a scan are ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_STACKEDROWS_H
#define WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_STACKEDROWS_H

#include "whale/Dialect/Whale/IR/WhaleAttrs.h"

#include "llvm/ADT/DenseMap.h"

namespace whale {

/// A scan stores rows of stacks and reads them outside of all scopes. Gives
/// these operations of a loop's body the scope that reads the row, if others
/// in the loop have it too, as if it used the value itself: what the forward
/// stores for the backward is stored as that wants it.
void joinStackedRows(
    mlir::Block &body,
    llvm::DenseMap<mlir::Operation *, StrategyAttr> &strategies);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_STACKEDROWS_H
