//===- SavingSearch.h - How much a device asks to be saved ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recomputation is told how many bytes a device lacks, and saves about as many:
// what it saves at the peak of all that the device holds is known once buffers
// are planned. So what is asked for is corrected by what came of it, as little
// as suffices, because each byte costs time. Uses no IR.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLANNER_SAVINGSEARCH_H
#define WHALE_PLANNER_SAVINGSEARCH_H

#include <cstdint>
#include <vector>

namespace whale {

/// The search of one device for the least number of bytes to ask for with which
/// what it needs fits its memory. All numbers are bytes.
class SavingSearch {
public:
  /// A device of so much memory, and what it needs where nothing is asked for.
  SavingSearch(int64_t memoryBytes, int64_t neededBytes);

  /// What is asked for now.
  int64_t getAsked() const { return asked; }
  /// Tells what the device needs with what is asked for now.
  void tell(int64_t neededBytes);
  /// Decides what is asked for next. False where nothing else is worth it: then
  /// that is the least that fits, and saves hardly more than it has to, or what
  /// came nearest, if no more can be saved. Where something is known to fit,
  /// that costs at most `kMostRefinements` further calls.
  bool next();

  static constexpr int kMostRefinements = 3;
  /// What a device that needs so much asks for at most.
  static int64_t mostAsked(int64_t neededBytes);

private:
  struct Try {
    int64_t asked, needed;
  };

  bool refine(size_t fitting);
  bool askForMore();
  bool lookBetween();
  bool ask(int64_t bytes);

  int64_t memory, first;
  int64_t asked = 0;
  /// What has been asked for, ascending, and what came of it.
  std::vector<Try> tries;
  int refinements = 0;
};

} // namespace whale

#endif // WHALE_PLANNER_SAVINGSEARCH_H
