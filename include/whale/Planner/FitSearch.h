//===- FitSearch.h - Options that let a step fit ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which of several options, each with levels, let a step fit into the memory of
// its devices in the least time. Planning a step with a combination of them is
// what costs, so few are tried. Uses no IR.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLANNER_FITSEARCH_H
#define WHALE_PLANNER_FITSEARCH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace whale {

/// What a plan comes to.
struct FitOutcome {
  /// Bytes that the device lacks which lacks most; negative where all have more
  /// than they need.
  int64_t lackBytes = 0;
  /// Of a step.
  double seconds = 0;

  bool fits() const { return lackBytes <= 0; }
};

/// An option with levels 1, 2, ..., of which each needs no more memory, and
/// takes no less time, than the one before it. Level 0 is without the option.
struct FitOption {
  /// What a level is expected to change.
  struct Level {
    int64_t savedBytes = 0;
    double seconds = 0;
  };
  /// The first one is level 1.
  std::vector<Level> levels;
  /// Whether it saves only what is lacking, so that it takes less time beside
  /// options that save something.
  bool savesWhatLacks = false;
};

/// A level for each option.
using FitCombination = std::vector<unsigned>;

/// A combination that was tried, and its outcome.
struct FitTrial {
  FitCombination levels;
  /// Nothing if the step has no plan with it.
  std::optional<FitOutcome> outcome;
};

/// Plans the step with a combination.
using TryCombination =
    llvm::function_ref<std::optional<FitOutcome>(const FitCombination &)>;

/// Returns the combinations that were tried, `without` any option first, at
/// most `mostTries` besides. Among them is the fastest that fits, if tries
/// suffice: branch and bound over all combinations, in the order in which they
/// are expected to be fast enough and to fit. A combination needs no more
/// memory than one with lower levels, and takes no less time; so neither below
/// one that does not fit nor above one that is slower than the best is
/// anything tried. What would be faster by less than a 200th of a step is not
/// looked for, but what is as fast without an option is. A level without a plan
/// of its own is left out. Cost: tries, and for each a pass over all
/// combinations and trials.
std::vector<FitTrial> searchFit(llvm::ArrayRef<FitOption> options,
                                const FitOutcome &without, size_t mostTries,
                                TryCombination tryOut);

/// Returns the trial that fits in the least time; where none fits, the one that
/// lacks least. Of equal ones that with fewer options. Null if none has an
/// outcome.
const FitTrial *findBest(llvm::ArrayRef<FitTrial> trials);

} // namespace whale

#endif // WHALE_PLANNER_FITSEARCH_H
