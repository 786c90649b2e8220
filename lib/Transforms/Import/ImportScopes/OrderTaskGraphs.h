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

#include "llvm/ADT/DenseMap.h"
#include <utility>

namespace whale {

/// Of a TaskGraph that feeds another, directly or not, the rank is less; those
/// that feed each other have the same.
using TaskGraphRank = std::pair<unsigned, unsigned>;

/// Ranks the TaskGraphs by the forward operations that have a strategy, and by
/// those without that are between them.
llvm::DenseMap<StrategyAttr, TaskGraphRank> rankTaskGraphs(const Step &step,
                                                           mlir::Block *body);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_ORDERTASKGRAPHS_H
