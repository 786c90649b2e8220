//===- OrderTaskGraphs.h - Which TaskGraph feeds which ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order in which a sample goes through the TaskGraphs of scopes, which need
// not be that of their first operations.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_ORDERTASKGRAPHS_H
#define WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_ORDERTASKGRAPHS_H

#include "StepAnalysis.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include <vector>

namespace whale {

/// Which TaskGraphs samples leave before which: those that feed another,
/// directly or not, and are not fed by it.
class TaskGraphOrder {
public:
  /// Of no TaskGraphs.
  TaskGraphOrder() = default;
  /// By the forward operations that have a strategy, and those without that
  /// are between them.
  TaskGraphOrder(const Step &step, mlir::Block *body);

  /// Whether samples leave `one` before `other`. False where neither feeds the
  /// other, and where each does.
  bool isBefore(StrategyAttr one, StrategyAttr other) const;

  /// Notes that an operation of `to` reads what one of `from` makes.
  void addFeed(StrategyAttr from, StrategyAttr to);

private:
  void close();

  llvm::DenseMap<StrategyAttr, unsigned> indices;
  /// For each TaskGraph those that feed it.
  std::vector<llvm::BitVector> feeders;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_ORDERTASKGRAPHS_H
