//===- Trace.cpp - Timeline of a run ----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Trace.h"

#include "whale/System/Json.h"

#include <algorithm>

namespace whale::runtime {

void Trace::beginStep(size_t ranks) {
  ++steps;
  if (byRank.size() < ranks)
    byRank.resize(ranks);
}

void Trace::add(size_t rank, std::string name, Cost cost, Queue queue,
                Clock::time_point begin, Clock::time_point end) {
  byRank[rank].push_back(
      {std::move(name), std::move(cost), queue, begin, end, steps - 1});
}

static nlohmann::ordered_json argumentsOf(const Trace::Event &event) {
  nlohmann::ordered_json json = {{"step", event.step},
                                 {"instruction", event.cost.detail}};
  if (!event.cost.algorithm.empty())
    json["algorithm"] = event.cost.algorithm;
  double seconds =
      std::chrono::duration<double>(event.end - event.begin).count();
  auto add = [&](const char *name, const char *rate, double amount) {
    if (amount <= 0)
      return;
    json[name] = amount;
    if (seconds > 0)
      json[rate] = amount / seconds / 1e9;
  };
  add("flops", "GFLOP/s", event.cost.flops);
  add("bytes", "GB/s", event.cost.bytes);
  if (event.cost.leastSeconds > 0 && seconds > 0)
    json["roofline"] = event.cost.leastSeconds / seconds;
  if (!event.cost.lines.empty())
    json["lines"] = event.cost.lines;
  if (!event.cost.scope.empty())
    json["scope"] = event.cost.scope;
  if (event.cost.moment)
    json["moment"] = *event.cost.moment;
  if (const auto &exchange = event.cost.exchange) {
    json["kind"] = exchange->kind;
    json["bytes_sent"] = exchange->sent;
    json["bytes_received"] = exchange->received;
    json["peers"] = exchange->peers;
    json["waiting_us"] = exchange->waitedSeconds * 1e6;
    json["transfer_us"] = (seconds - exchange->waitedSeconds) * 1e6;
    json["since_start_us"] = exchange->totalSeconds * 1e6;
  }
  return json;
}

static std::string textOf(nlohmann::ordered_json events) {
  nlohmann::ordered_json root = {{"traceEvents", std::move(events)},
                                 {"displayTimeUnit", "ms"}};
  return system::printJson(root) + "\n";
}

std::string Trace::join(const std::vector<std::string> &parts) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::string &part : parts) {
    auto parsed = system::parseJson<nlohmann::ordered_json>(part);
    for (auto &event : parsed["traceEvents"])
      all.push_back(std::move(event));
  }
  return textOf(std::move(all));
}

std::string Trace::json(const std::vector<size_t> *ranks) const {
  auto microseconds = [&](Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  };
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t rank = 0; rank < byRank.size(); ++rank) {
    if (ranks && !std::ranges::count(*ranks, rank))
      continue;
    list.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", rank},
                    {"args", {{"name", "rank " + std::to_string(rank)}}}});
    for (Queue queue : {Queue::Compute, Queue::Communication})
      list.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", rank},
                      {"tid", static_cast<int>(queue)},
                      {"args",
                       {{"name", queue == Queue::Compute ? "compute"
                                                         : "communication"}}}});
    for (const Event &event : byRank[rank])
      list.push_back(
          {{"name", event.name},
           {"cat", event.queue == Queue::Compute ? "compute" : "communication"},
           {"ph", "X"},
           {"pid", rank},
           {"tid", static_cast<int>(event.queue)},
           {"ts", microseconds(event.begin - origin)},
           {"dur", microseconds(event.end - event.begin)},
           {"args", argumentsOf(event)}});
  }
  return textOf(std::move(list));
}

} // namespace whale::runtime
