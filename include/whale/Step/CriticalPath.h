//===- CriticalPath.h - What a step's time consists of ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The chain of work and transfers that a step takes as long as: each begins
// when the one before it ends. Linear in the pieces of the chain, with a look
// at the participants of each transfer in it.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_CRITICALPATH_H
#define WHALE_STEP_CRITICALPATH_H

#include "whale/Step/ProgramModel.h"

namespace whale {

struct PathPiece {
  /// Index in ModelledStep::ranks.
  size_t ranks = 0;
  /// Of an item that computes, or else of a part.
  std::optional<size_t> item, part;
  double seconds = 0;
};

/// Returns the chain, from its begin on. Its seconds are those of the step.
std::vector<PathPiece> findCriticalPath(const ModelledStep &step);

} // namespace whale

#endif // WHALE_STEP_CRITICALPATH_H
