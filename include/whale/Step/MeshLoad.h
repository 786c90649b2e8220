//===- MeshLoad.h - Time and memory of the devices of a mesh -----*- C++ -*===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seconds and bytes by the share that they are proportional to, before any
// share is decided: none, the share of the mini-batch, or that of a parameter.
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

/// The share that an amount is proportional to.
enum class LoadKind {
  /// None: every device has all of it.
  Whole,
  /// The device's share of the mini-batch.
  Batch,
  /// The group's share of the mini-batch, on each device of the group.
  Group,
  /// The device's share of its group's amount.
  Inner,
  /// Product of Inner and Group.
  GroupInner,
};
inline constexpr size_t kNumLoadKinds = 5;

/// Seconds or bytes by the share that they are proportional to.
struct LoadAmounts {
  std::array<double, kNumLoadKinds> amounts = {};

  double &operator[](LoadKind kind) { return amounts[size_t(kind)]; }
  double operator[](LoadKind kind) const { return amounts[size_t(kind)]; }
  LoadAmounts &operator+=(const LoadAmounts &other) {
    for (size_t kind = 0; kind < kNumLoadKinds; ++kind)
      amounts[kind] += other.amounts[kind];
    return *this;
  }
  /// Returns the part that is proportional to a group's share of the
  /// mini-batch.
  double ofGroup() const {
    return (*this)[LoadKind::Group] + (*this)[LoadKind::GroupInner];
  }
  /// Returns the part that is proportional to a share of the mini-batch.
  double ofSamples() const { return (*this)[LoadKind::Batch] + ofGroup(); }
};

/// The shares that a device takes, each between 0 and 1.
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
  /// By speed class, seconds of a step (forward and backward) on a device that
  /// takes all of it.
  std::vector<LoadAmounts> seconds;
  /// The seconds of what is cut inside a group, by the number of pieces.
  std::map<int64_t, std::vector<double>> innerSeconds;
  /// Returns the number of pieces whose work takes the longest; nullopt if
  /// nothing is cut inside a group.
  std::optional<int64_t> costliestCut() const;
  /// Bytes of arguments, which are kept from start to end.
  LoadAmounts argumentBytes;
  /// The change of all other bytes before each operation.
  std::map<unsigned, LoadAmounts> changes;
  /// The part of `changes` that a micro-batch of a loop keeps for its backward:
  /// by the loop (the number of an operation) and by the name of the TaskGraph
  /// whose forward produced it.
  std::map<unsigned, std::map<llvm::StringRef, LoadAmounts>> kept;
  /// The part of `changes` that a loop's sums over micro-batches are, by the
  /// loop and by the name of the TaskGraph that makes the terms.
  std::map<unsigned, std::map<llvm::StringRef, LoadAmounts>> sums;
};

} // namespace whale

#endif // WHALE_STEP_MESHLOAD_H
