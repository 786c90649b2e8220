//===- LinkFlows.h - Transfers that share links -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_STEP_LINKFLOWS_H
#define WHALE_LIB_STEP_LINKFLOWS_H

#include "whale/Step/QueueModel.h"

#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace whale {

/// The transfers that go on, and when the next of them is over.
class LinkFlows {
public:
  explicit LinkFlows(const SharedLinks &links);

  /// Whether a transfer carries anything over a link that is not free.
  bool carries(size_t transfer) const;
  /// Adds a transfer that carries something.
  void begin(size_t transfer, double now);
  /// Whether one was added or removed since the last nextEnd().
  bool isChanged() const { return changed; }
  /// When the first of them is over if none is added; nullopt without any.
  std::optional<double> nextEnd();
  /// Removes those that are over at `now`, which is what nextEnd() said, and
  /// returns them in the order of their begins.
  std::vector<size_t> takeEnded(double now);

private:
  /// Of a link that is not free: the seconds that a load takes on it alone.
  struct Use {
    size_t link;
    double seconds;
  };
  struct Flow {
    std::span<const Use> uses;
    size_t transfer = 0;
    /// The part that is still to come, and how much of it comes in a second.
    double left = 1, rate = 0;
    double end = std::numeric_limits<double>::infinity();
    /// Its rate alone.
    double alone = 0;
    bool isFixed = false;
  };

  std::span<const Use> usesOf(size_t transfer) const;
  void advance(double now);
  void share();

  const SharedLinks &links;
  /// Of all transfers, one after the other, and where each one's begin.
  std::vector<Use> uses;
  std::vector<size_t> firstUse = {0};
  std::vector<Flow> flows;
  double time = 0;
  bool changed = false;
  /// Those that flows use, in `share`.
  std::vector<size_t> usedLinks;
  /// By link, in `share`: what is taken, and what those take that may have
  /// more.
  std::vector<double> taken, wanted;
};

} // namespace whale

#endif // WHALE_LIB_STEP_LINKFLOWS_H
