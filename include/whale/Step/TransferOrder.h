//===- TransferOrder.h - When transfers start and end -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: what each rank class computes, in order, with where the transfers between
// them could start and must be over. Out: one order of all transfers, and where
// each class starts them in that order and waits for them.
//
// The order is that in which the transfers become ready on a simulated
// timeline. Each class starts its transfers in this order, and waits only for
// what it has started. So nothing deadlocks, even where a transfer begins only
// at the head of the queues of all its participants. Take the first unfinished
// transfer of the order: a class that had not started it would have to wait for
// a later one, which it starts only afterwards; so all have started it.
//
// Costs O((instructions + uses) log classes).
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_TRANSFERORDER_H
#define WHALE_STEP_TRANSFERORDER_H

#include <cstddef>
#include <optional>
#include <vector>

namespace whale {

/// A class's part in a transfer. Positions are instructions before which
/// something happens; the number of instructions is the end.
struct TransferUse {
  size_t transfer = 0;
  /// What its transfers on one channel have in common.
  size_t channel = 0;
  /// From where on the class can send; nothing if it only receives.
  std::optional<size_t> ready;
  /// Where what is received is first used, or the end.
  size_t needed = 0;
  /// What is sent must stay as it is until the transfer is over, so that the
  /// wait comes after that and after the class's next start, not only where it
  /// is needed.
  bool keepsSource = false;
  /// Started and waited for where it is needed, by an instruction of its own (a
  /// loop) or since it must be.
  bool isFixed = false;
};

/// What the ranks of one class do.
struct ClassTimeline {
  /// Of each instruction.
  std::vector<double> seconds;
  /// By `needed`; at one position in the order in which they are needed.
  std::vector<TransferUse> uses;
};

/// Where a class starts a transfer and waits for it: before which instructions.
struct TransferTimes {
  size_t start = 0;
  size_t wait = 0;
};

struct TransferOrder {
  /// All transfers, as they begin.
  std::vector<size_t> order;
  /// By class and use. At one position starts, in the order above, come before
  /// waits.
  std::vector<std::vector<TransferTimes>> times;
  /// When the last class is done, in seconds.
  double seconds = 0;
};

/// `transferSeconds` are those of each transfer alone. Nothing if the classes
/// wait for one another in a cycle.
std::optional<TransferOrder>
orderTransfers(const std::vector<ClassTimeline> &classes,
               const std::vector<double> &transferSeconds);

} // namespace whale

#endif // WHALE_STEP_TRANSFERORDER_H
