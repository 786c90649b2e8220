//===- MeshLoad.h - What the devices of a mesh have to do --------*- C++ -*===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seconds and bytes by what they are proportional to, before any share is
// decided: nothing, the share of the mini-batch, or that of a parameter.
// Operations are numbered in the order of the program.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_MESHLOAD_H
#define WHALE_STEP_MESHLOAD_H

#include "llvm/ADT/StringRef.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace whale {

/// What an amount is proportional to.
enum class LoadKind {
  /// Every device has all of it.
  Whole,
  /// A device has its share of the mini-batch.
  Batch,
  /// Each device of a group has the group's share of the mini-batch.
  Group,
  /// A device has its share of what its group has.
  Inner,
  /// The same, of the group's share of the mini-batch.
  GroupInner,
};
inline constexpr size_t kNumLoadKinds = 5;

/// Seconds or bytes by what they are proportional to.
struct LoadAmounts {
  std::array<double, kNumLoadKinds> amounts = {};

  double &operator[](LoadKind kind) { return amounts[size_t(kind)]; }
  double operator[](LoadKind kind) const { return amounts[size_t(kind)]; }
  LoadAmounts &operator+=(const LoadAmounts &other) {
    for (size_t kind = 0; kind < kNumLoadKinds; ++kind)
      amounts[kind] += other.amounts[kind];
    return *this;
  }
  /// What follows a group's share of the mini-batch.
  double ofGroup() const {
    return (*this)[LoadKind::Group] + (*this)[LoadKind::GroupInner];
  }
  /// What follows a share of the mini-batch.
  double ofSamples() const { return (*this)[LoadKind::Batch] + ofGroup(); }
};

/// The parts that a device takes, between 0 and 1.
struct LoadShares {
  double batch = 1, group = 1, inner = 1;
  bool operator<(const LoadShares &other) const {
    return std::tie(batch, group, inner) <
           std::tie(other.batch, other.group, other.inner);
  }

  double of(LoadKind kind) const;
  double of(const LoadAmounts &amounts) const;
};

/// The loads of one mesh.
struct MeshLoad {
  /// Seconds of a step, forward and backward, on a device of each speed class
  /// that takes all of it.
  std::vector<LoadAmounts> seconds;
  /// The same of what is cut into so many pieces inside of a group.
  std::map<int64_t, std::vector<double>> innerSeconds;
  /// Into how many pieces that is cut which takes the longest; none where
  /// nothing is cut inside of a group.
  std::optional<int64_t> costliestCut() const;
  /// Bytes of arguments, which are there from the start to the end.
  LoadAmounts argumentBytes;
  /// By how much the bytes of everything else change before each operation.
  std::map<unsigned, LoadAmounts> changes;
  /// Of these, what a micro-batch of a loop keeps for its backward: by the
  /// loop, which is the number of an operation, and the name of the TaskGraph
  /// whose forward made it.
  std::map<unsigned, std::map<llvm::StringRef, LoadAmounts>> kept;
};

} // namespace whale

#endif // WHALE_STEP_MESHLOAD_H
