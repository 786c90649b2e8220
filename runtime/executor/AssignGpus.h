//===- AssignGpus.h - Which GPU each rank computes on -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_ASSIGNGPUS_H
#define WHALE_RUNTIME_EXECUTOR_ASSIGNGPUS_H

#include "cuda/Gpu.h"

#include <span>
#include <string>
#include <vector>

namespace whale::runtime {

/// What a rank's GPU has to be.
struct WantedGpu {
  int64_t rank = 0;
  /// Whether the rank runs in this process: others count, as they may share the
  /// GPUs, but need not find theirs among those that this process sees.
  bool isHere = true;
  /// For messages; empty where the program names none.
  std::string kind;
  /// Of this architecture or, unless `isExact`, of a later one; 0 for any.
  int capability = 0;
  bool isExact = false;
  /// What the kind has; 0 for any.
  int64_t memoryBytes = 0;

  bool operator==(const WantedGpu &) const = default;
};

/// The numbers of the GPUs that ranks take, in the order of `wanted`; -1 for
/// ranks of other processes that find none here. A rank takes a GPU that is
/// what it wants, of those the one that fewest others have, of those the one
/// with least memory: each has one of its own where there are enough. Throws
/// one Error, with all that ranks want and all that there is, where a rank of
/// this process finds none.
std::vector<int> assignGpus(std::span<const WantedGpu> wanted,
                            std::span<const cuda::GpuFacts> found);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_ASSIGNGPUS_H
