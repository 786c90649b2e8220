//===- SourceLines.h - Lines of the user's program --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_SOURCELINES_H
#define WHALE_TRANSFORMS_SOURCELINES_H

#include "mlir/IR/Location.h"

#include <optional>
#include <string>

namespace whale {

/// The innermost file position in a location, through names, calls and fusions.
std::optional<mlir::FileLineColLoc> findPosition(mlir::Location loc);

/// Where the user's code calls the installed Python package that the innermost
/// position is in; nothing for one that is in none.
std::optional<mlir::FileLineColLoc> findCaller(mlir::Location loc);

/// The line of the user's own code that an operation comes from, without
/// folders: "model.py:12"; empty where it has none.
std::string getUserLine(mlir::Location loc);

/// Those of all that was fused into an operation, each once.
llvm::SmallVector<std::string> getUserLines(mlir::Location loc);

} // namespace whale

#endif // WHALE_TRANSFORMS_SOURCELINES_H
