//===- Shares.h - Which process writes what ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cost: for each leaf, its boxes are compared with one another.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CHECKPOINT_SHARES_H
#define WHALE_RUNTIME_CHECKPOINT_SHARES_H

#include "whale/Runtime/Array.h"

namespace whale::runtime {

/// A part of a leaf, which one process writes.
struct Share {
  size_t leaf;
  /// In the leaf's view.
  Box box;
  /// The shard that has it.
  size_t holder;
  int64_t process;
  bool operator==(const Share &) const = default;
};

/// How many bytes an array has, and who holds it.
struct Holding {
  Layout layout;
  int64_t elementBytes;
  /// Of the shards; null where each process has all.
  std::shared_ptr<const RankMap> ranks;
};

/// Divides each leaf into shares, no element twice. Of the processes that hold
/// a share, the one with the fewest bytes so far writes it, of equal ones the
/// first. Throws Error where no rank holds some element.
std::vector<Share> shareOut(const std::vector<Holding> &leaves,
                            int64_t processes);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_CHECKPOINT_SHARES_H
