//===- ScopePatterns.h - Strategies by names in name paths ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `whale.scopes = {"transformer/layer_[0-5]" = #whale.replicate<devices = 1>}`
// on the module: what has these names in its name path is in a scope of this
// strategy, as if it had been traced inside of one.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_SCOPEPATTERNS_H
#define WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_SCOPEPATTERNS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace whale {

/// On the module: a strategy for each pattern of names.
inline constexpr llvm::StringLiteral kScopesAttr = "whale.scopes";

/// Puts a scope into the name path of each operation that a pattern of
/// `whale.scopes` matches, behind the names that it matches, and removes the
/// attribute. Fails, with an error that lists the names, where a pattern
/// matches nothing, where two of different strategies match the same names, and
/// where one is in a split.
mlir::LogicalResult insertPatternScopes(mlir::ModuleOp module,
                                        mlir::func::FuncOp main);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_SCOPEPATTERNS_H
