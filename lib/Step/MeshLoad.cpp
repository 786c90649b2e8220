//===- MeshLoad.cpp - Time and memory of the devices of a mesh ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/MeshLoad.h"
#include "llvm/Support/ErrorHandling.h"

namespace whale {

double LoadShares::of(LoadKind kind) const {
  switch (kind) {
  case LoadKind::Whole:
    return 1;
  case LoadKind::Batch:
    return batch;
  case LoadKind::Group:
    return group;
  case LoadKind::Inner:
    return inner;
  case LoadKind::GroupInner:
    return group * inner;
  }
  llvm_unreachable("unknown kind of load");
}

double LoadShares::of(const LoadAmounts &amounts) const {
  double sum = 0;
  for (size_t kind = 0; kind < kNumLoadKinds; ++kind)
    sum += amounts[LoadKind(kind)] * of(LoadKind(kind));
  return sum;
}

std::optional<int64_t> MeshLoad::costliestCut() const {
  std::optional<int64_t> pieces;
  double most = 0;
  for (const auto &[extent, seconds] : innerSeconds)
    if (!seconds.empty() && seconds.front() > most) {
      most = seconds.front();
      pieces = extent;
    }
  return pieces;
}

} // namespace whale
