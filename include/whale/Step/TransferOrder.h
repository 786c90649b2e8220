//===- TransferOrder.h - When transfers start and end -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the instructions of each rank class, in order, and for each transfer
// between classes the earliest start and the latest end. Out: one order of all
// transfers, and the positions at which each class starts them in that order
// and waits for them.
//
// The order is that in which the transfers become ready on a simulated
// timeline. Each class starts its transfers in this order, and waits only for
// those that it has started. Therefore nothing deadlocks, even if a transfer
// begins only at the head of the queues of all its participants. Proof:
// consider the first unfinished transfer of the order. A class that had not
// started it would have to be blocked waiting for a later one, but it starts
// later ones only afterwards. So all participants have started it.
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

/// Where a class may start its part in a transfer.
enum class TransferStart {
  /// From where it can send on, or anywhere if it only receives.
  Free,
  /// Where it is needed.
  Fixed,
  /// In the instruction where it is needed (a loop, or what stays one), maybe
  /// with others: what starts later starts behind that.
  Inside,
};

/// A class's part in a transfer. Positions are instructions before which
/// something happens; the number of instructions denotes the end.
struct TransferUse {
  size_t transfer = 0;
  /// Transfers of a class with the same number use one channel.
  size_t channel = 0;
  /// The position from which the class can send; nullopt if it only receives.
  std::optional<size_t> ready;
  /// The position at which the received value is first used, or the end.
  size_t needed = 0;
  /// The sent value must not change until the transfer is over. So the wait is
  /// after the end of the transfer and after the class's next start, not only
  /// where the value is needed.
  bool keepsSource = false;
  TransferStart start = TransferStart::Free;

  /// Whether it is started and waited for at `needed`.
  bool isFixed() const { return start != TransferStart::Free; }
  bool isInstruction() const { return start == TransferStart::Inside; }
};

/// The computation and transfers of the ranks of one class.
struct ClassTimeline {
  /// Seconds of each instruction.
  std::vector<double> seconds;
  /// Ordered by `needed`; at one position in the order in which they are
  /// needed.
  std::vector<TransferUse> uses;
};

/// The instructions before which a class starts a transfer and waits for it.
struct TransferTimes {
  size_t start = 0;
  size_t wait = 0;
};

struct TransferOrder {
  /// All transfers in the order of their starts.
  std::vector<size_t> order;
  /// By class and use. At one position, starts (in the order above) precede
  /// waits.
  std::vector<std::vector<TransferTimes>> times;
  /// Seconds until the last class is done.
  double seconds = 0;
};

/// Returns the order of the transfers; `transferSeconds` are the durations of
/// each transfer alone. nullopt if the classes wait for one another in a cycle.
std::optional<TransferOrder>
orderTransfers(const std::vector<ClassTimeline> &classes,
               const std::vector<double> &transferSeconds);

} // namespace whale

#endif // WHALE_STEP_TRANSFERORDER_H
