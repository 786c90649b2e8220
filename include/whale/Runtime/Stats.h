//===- Stats.h - What one step cost -----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_STATS_H
#define WHALE_RUNTIME_STATS_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace whale::runtime {

/// One kind of collective on one rank during one step.
struct CollectiveStats {
  /// Collectives executed.
  int64_t count = 0;
  /// Bytes that other ranks took from this one.
  int64_t bytesSent = 0;
  /// Bytes that this rank took from others.
  int64_t bytesReceived = 0;
};

struct RankStats {
  /// Most memory in use at once: arguments, results, arena, constants, scratch.
  int64_t peakBytes = 0;
  /// What the rank holds of the arguments.
  int64_t argumentBytes = 0;
  /// Beside the peak, what it holds of arguments and results in the memory of
  /// its host.
  int64_t hostBytes = 0;
  /// Floating-point operations of matrix products and convolutions, and of
  /// generated kernels.
  double productFlops = 0;
  double kernelFlops = 0;
  double computeSeconds = 0;
  /// Time in the starts and waits of collectives, waiting for the other ranks
  /// included; and that.
  double communicationSeconds = 0;
  double waitingSeconds = 0;
  /// On a late device (LoadOptions::lateSeed): transfers that ended behind
  /// operations that are behind their starts.
  std::optional<int64_t> movedTransfers;
  /// On the first rank of a process that has saved checkpoints: the memory that
  /// it copies into, beside the peak. Left to whoever saves.
  std::optional<int64_t> stagingBytes;
  /// By kind: "all_reduce", "all_gather", ...
  std::map<std::string, CollectiveStats> collectives;
};

/// Filled anew by each run that is given one.
struct Stats {
  double stepSeconds = 0;
  /// Of several steps, from the first one's start to the end of each; left to
  /// whoever runs them.
  std::vector<double> stepEnds;
  std::vector<RankStats> ranks;

  /// {"step_time_s": s, "step_ends_s": [s], "ranks": [{"rank": 0, "peak_bytes":
  /// n, "argument_bytes": n, "flops": {"products": n, "kernels": n},
  /// "compute_s": s, "communication_s": s, "waiting_s": s, "collectives":
  /// {"all_reduce": {"count": n, "bytes_sent": n, "bytes_received": n}}}]}; on
  /// late devices also "moved_transfers": n, with checkpoints "staging_bytes":
  /// n, and with state in the hosts' memory "host_bytes": n.
  std::string json() const;

  /// Takes some of the ranks from what another process has written.
  void take(const std::string &json, const std::vector<size_t> &ranks);
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_STATS_H
