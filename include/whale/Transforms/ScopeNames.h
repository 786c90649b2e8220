//===- ScopeNames.h - What patterns of names stand for ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_SCOPENAMES_H
#define WHALE_TRANSFORMS_SCOPENAMES_H

#include "llvm/ADT/StringRef.h"

namespace whale {

/// On a module, where patterns of names have given strategies: for each
/// pattern the names that it stands for.
inline constexpr llvm::StringLiteral kScopeNamesAttr = "whale.scope_names";

} // namespace whale

#endif // WHALE_TRANSFORMS_SCOPENAMES_H
