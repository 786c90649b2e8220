//===- Stats.cpp - What one step cost ---------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Stats.h"

#include <nlohmann/json.hpp>

namespace whale::runtime {

std::string Stats::json() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    nlohmann::ordered_json collectives = nlohmann::ordered_json::object();
    for (const auto &[kind, stats] : ranks[rank].collectives)
      collectives[kind] = {{"count", stats.count},
                           {"bytes_sent", stats.bytesSent},
                           {"bytes_received", stats.bytesReceived}};
    list.push_back({{"rank", rank},
                    {"peak_bytes", ranks[rank].peakBytes},
                    {"argument_bytes", ranks[rank].argumentBytes},
                    {"flops",
                     {{"products", ranks[rank].productFlops},
                      {"kernels", ranks[rank].kernelFlops}}},
                    {"compute_s", ranks[rank].computeSeconds},
                    {"communication_s", ranks[rank].communicationSeconds},
                    {"waiting_s", ranks[rank].waitingSeconds},
                    {"collectives", std::move(collectives)}});
    if (ranks[rank].movedTransfers)
      list.back()["moved_transfers"] = *ranks[rank].movedTransfers;
  }
  nlohmann::ordered_json root = {{"step_time_s", stepSeconds},
                                 {"ranks", std::move(list)}};
  return root.dump(2) + "\n";
}

} // namespace whale::runtime
