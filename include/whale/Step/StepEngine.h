//===- StepEngine.h - Simulates the queues of a step ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one simulation of a step, by the rules of QueueModel.h. In: the ranks'
// parts in transfers, and a source of their items. Out: when each rank does
// what. Who only wants the times of items that are known asks timeQueues; who
// looks for an order (of micro-batches, of transfers) is a source, and is asked
// for a rank's next item when the rank has ended the one before.
//
// Costs O((items + parts of transfers) log ranks), and where transfers go on
// at once a look at the links of these for each that begins or ends. Ranks that
// are idle are asked at each time at which something happens.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_STEPENGINE_H
#define WHALE_STEP_STEPENGINE_H

#include "whale/Step/QueueModel.h"
#include <memory>

namespace whale {

class StepEngine;

/// Chooses what ranks do next.
class QueueSource {
public:
  virtual ~QueueSource() = default;
  /// Returns the rank's next item, which it takes now; nullopt if it is done.
  /// Ranks that can take an item at the same time are asked in their order,
  /// when all that happens at this time has happened.
  virtual std::optional<QueueItem> next(size_t rank, StepEngine &engine) = 0;
};

class StepEngine {
public:
  /// `queues` and `links` must outlive it; of the queues only the parts and
  /// taxes are read.
  StepEngine(const std::vector<RankQueue> &queues, const SharedLinks &links);
  explicit StepEngine(const std::vector<RankQueue> &queues);
  ~StepEngine();

  /// Takes all items from the source. False if ranks wait for one another in a
  /// circle, or are idle and nothing happens any more.
  bool run(QueueSource &source);

  /// Seconds from the step's begin.
  double now() const;
  /// When the computation with this signal is over; infinite if it has not
  /// begun.
  double endOf(size_t signal) const;
  /// Starts a part of any rank, as an item Start would that the rank took now.
  void start(size_t rank, size_t part);

  /// What is known so far of each rank.
  const std::vector<RankTimes> &times() const;
  std::vector<RankTimes> takeTimes();

private:
  class Simulation;
  std::unique_ptr<Simulation> simulation;
};

} // namespace whale

#endif // WHALE_STEP_STEPENGINE_H
