//===- TaskGraphNames.h - What TaskGraphs are called ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_TASKGRAPHNAMES_H
#define WHALE_TRANSFORMS_TASKGRAPHNAMES_H

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

namespace whale {

/// The name that the task graphs of one TaskGraph share, and no others: the
/// name of its scope; of a scope without one the line of the program where its
/// first operation is, or else its number.
class TaskGraphNames {
public:
  TaskGraphNames() = default;
  /// Knows the task graphs of a function, and reserves the names of its scopes.
  TaskGraphNames(mlir::Operation *function, StrategyAttr defaultStrategy);

  std::string nameOf(StrategyAttr strategy);

private:
  StrategyAttr defaultStrategy;
  llvm::DenseMap<mlir::Attribute, std::string> names;
  /// By the strategy of an unnamed scope: its line.
  llvm::DenseMap<mlir::Attribute, std::string> lines;
  llvm::StringSet<> used;
};

} // namespace whale

#endif // WHALE_TRANSFORMS_TASKGRAPHNAMES_H
