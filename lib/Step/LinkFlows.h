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

namespace whale {

/// The transfers that go on, and when the next of them is over.
class LinkFlows {
public:
  explicit LinkFlows(const SharedLinks &links) : links(links) {}

  /// Whether a transfer carries anything over a link that is not free.
  bool carries(size_t transfer) const;
  /// Adds a transfer that carries something.
  void begin(size_t transfer, double now);
  /// When the first of them is over if none is added; nullopt without any.
  std::optional<double> nextEnd() const;
  /// Removes those that are over at `now`, which is what nextEnd() says, and
  /// returns them in the order of their begins.
  std::vector<size_t> takeEnded(double now);

private:
  struct Flow {
    size_t transfer = 0;
    /// The part that is still to come, and how much of it comes in a second.
    double left = 1, rate = 0;
    double end = 0;
    /// Its rate alone.
    double alone = 0;
    bool isFixed = false;
  };

  void advance(double now);
  void share();

  const SharedLinks &links;
  std::vector<Flow> flows;
  double time = 0;
  /// By link, in `share`: what is taken, and what those take that may have
  /// more.
  std::vector<double> taken, wanted;
};

} // namespace whale

#endif // WHALE_LIB_STEP_LINKFLOWS_H
