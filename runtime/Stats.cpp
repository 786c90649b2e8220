//===- Stats.cpp - What one step cost ---------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Stats.h"

#include "whale/System/Json.h"

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
    if (ranks[rank].hostBytes)
      list.back()["host_bytes"] = ranks[rank].hostBytes;
    if (ranks[rank].stagingBytes)
      list.back()["staging_bytes"] = *ranks[rank].stagingBytes;
  }
  nlohmann::ordered_json root = {{"step_time_s", stepSeconds},
                                 {"step_ends_s", stepEnds},
                                 {"ranks", std::move(list)}};
  return system::printJson(root, 2) + "\n";
}

void Stats::take(const std::string &json, const std::vector<size_t> &taken) {
  nlohmann::json list = system::parseJson<nlohmann::json>(json).at("ranks");
  for (size_t rank : taken) {
    const nlohmann::json &from = list.at(rank);
    RankStats &to = ranks.at(rank);
    to = RankStats();
    to.peakBytes = from.at("peak_bytes");
    to.argumentBytes = from.at("argument_bytes");
    to.productFlops = from.at("flops").at("products");
    to.kernelFlops = from.at("flops").at("kernels");
    to.computeSeconds = from.at("compute_s");
    to.communicationSeconds = from.at("communication_s");
    to.waitingSeconds = from.at("waiting_s");
    for (const auto &[kind, stats] : from.at("collectives").items())
      to.collectives[kind] = {stats.at("count"), stats.at("bytes_sent"),
                              stats.at("bytes_received")};
    if (auto moved = from.find("moved_transfers"); moved != from.end())
      to.movedTransfers = moved->get<int64_t>();
    to.hostBytes = from.value("host_bytes", int64_t(0));
    if (auto staging = from.find("staging_bytes"); staging != from.end())
      to.stagingBytes = staging->get<int64_t>();
  }
}

} // namespace whale::runtime
