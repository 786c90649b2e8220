//===- Trace.cpp - Timeline of a run ----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Trace.h"

#include "whale/Report/TraceNames.h"
#include "whale/System/Checksum.h"
#include "whale/System/Json.h"

#include <algorithm>
#include <map>

namespace whale::runtime {

void Trace::beginStep(const std::vector<std::string> &ranks) {
  ++steps;
  names = ranks;
  if (byRank.size() < ranks.size())
    byRank.resize(ranks.size());
}

void Trace::add(size_t rank, std::string name, Cost cost, Queue queue,
                Clock::time_point begin, Clock::time_point end) {
  byRank[rank].push_back(
      {std::move(name), std::move(cost), queue, begin, end, steps - 1});
}

static nlohmann::ordered_json argumentsOf(const Trace::Event &event,
                                          const std::string &phase) {
  nlohmann::ordered_json json = {{"step", event.step},
                                 {"instruction", event.cost.detail},
                                 {"label", event.name}};
  if (!phase.empty())
    json["phase"] = phase;
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
    json["roofline"] = std::min(1.0, event.cost.leastSeconds / seconds);
  if (!event.cost.lines.empty())
    json["lines"] = event.cost.lines;
  if (!event.cost.scope.empty())
    json["scope"] = event.cost.scope;
  if (event.cost.moment)
    json["micro_batch"] = *event.cost.moment;
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

namespace {

/// Writes the events of one rank. Viewers drop bars that reach into others of
/// their track, so times are whole nanoseconds, which add up.
class RankWriter {
public:
  RankWriter(size_t rank, Trace::Clock::time_point origin,
             nlohmann::ordered_json &list)
      : rank(rank), origin(origin), list(list) {}

  void nameProcess(const std::string &name);
  void add(const Trace::Event &event);

private:
  /// The track of starts comes behind those of the queues.
  static constexpr int startTrack = 2;

  void nameThread(int thread, const char *name);
  void addBar(const std::string &name, Queue queue, int thread,
              Trace::Clock::time_point begin, std::chrono::nanoseconds length,
              nlohmann::ordered_json arguments);
  void addArrows(const Trace::Event &event, const Trace::Cost::Exchange &what);
  double since(Trace::Clock::time_point time) const {
    return microseconds(time - origin);
  }
  static double microseconds(std::chrono::nanoseconds time) {
    return static_cast<double>(time.count()) / 1e3;
  }

  size_t rank;
  Trace::Clock::time_point origin;
  nlohmann::ordered_json &list;
  bool hasStarts = false;
  /// How often each channel was used: what both sides count alike.
  std::map<int64_t, int64_t> uses;
  std::optional<int64_t> arenaBytes;
};

} // namespace

void RankWriter::nameProcess(const std::string &name) {
  list.push_back({{"name", "process_name"},
                  {"ph", "M"},
                  {"pid", rank},
                  {"args", {{"name", name}}}});
  list.push_back({{"name", "process_sort_index"},
                  {"ph", "M"},
                  {"pid", rank},
                  {"args", {{"sort_index", rank}}}});
  nameThread(static_cast<int>(Queue::Compute), "compute");
  nameThread(static_cast<int>(Queue::Communication), "communication");
}

void RankWriter::nameThread(int thread, const char *name) {
  list.push_back({{"name", "thread_name"},
                  {"ph", "M"},
                  {"pid", rank},
                  {"tid", thread},
                  {"args", {{"name", name}}}});
}

void RankWriter::addBar(const std::string &name, Queue queue, int thread,
                        Trace::Clock::time_point begin,
                        std::chrono::nanoseconds length,
                        nlohmann::ordered_json arguments) {
  list.push_back(
      {{"name", name},
       {"cat", queue == Queue::Compute ? "compute" : "communication"},
       {"ph", "X"},
       {"pid", rank},
       {"tid", thread},
       {"ts", since(begin)},
       {"dur", microseconds(length)},
       {"args", std::move(arguments)}});
}

/// A bar for the start of what is sent, and arrows from there to the waits of
/// the receivers, which know them by the same numbers.
void RankWriter::addArrows(const Trace::Event &event,
                           const Trace::Cost::Exchange &what) {
  int64_t use = uses[what.channel]++;
  auto addEnd = [&](const char *kind, int64_t from, int64_t to, int thread,
                    Trace::Clock::time_point time) {
    // Perfetto knows arrows by hexadecimal numbers of 64 bits alone.
    std::string id = system::Checksum::of(
        std::to_string(what.channel) + "." + std::to_string(use) + "." +
        std::to_string(from) + "." + std::to_string(to));
    list.push_back({{"name", what.kind},
                    {"cat", "transfer"},
                    {"ph", kind},
                    {"id", id},
                    {"pid", rank},
                    {"tid", thread},
                    {"ts", since(time)}});
    // An arrow ends at the bar around it, not at the next one.
    if (*kind == 'f')
      list.back()["bp"] = "e";
  };
  auto self = static_cast<int64_t>(rank);
  if (!what.receivers.empty()) {
    if (!std::exchange(hasStarts, true))
      nameThread(startTrack, "starts");
    addBar("start of " + what.kind, Queue::Communication, startTrack,
           what.begin,
           std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::duration<double>(what.startSeconds)),
           {{"to", what.receivers}});
    for (int64_t receiver : what.receivers)
      addEnd("s", self, receiver, startTrack, what.begin);
  }
  for (int64_t sender : what.senders)
    addEnd("f", sender, self, static_cast<int>(event.queue), event.end);
}

void RankWriter::add(const Trace::Event &event) {
  ShownLabel shown = showLabel(
      event.name, event.cost.lines.empty() ? "" : event.cost.lines.front());
  if (event.cost.arenaBytes && event.cost.arenaBytes != arenaBytes) {
    arenaBytes = event.cost.arenaBytes;
    list.push_back({{"name", "memory of the arena in use"},
                    {"ph", "C"},
                    {"pid", rank},
                    {"ts", since(event.begin)},
                    {"args", {{"bytes", *arenaBytes}}}});
  }
  addBar(shown.name, event.queue, static_cast<int>(event.queue), event.begin,
         event.end - event.begin, argumentsOf(event, shown.phase));
  if (const char *color = colorOf(shown.phase))
    list.back()["cname"] = color;
  if (event.cost.exchange)
    addArrows(event, *event.cost.exchange);
}

std::string Trace::json(const std::vector<size_t> *ranks) const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t rank = 0; rank < byRank.size(); ++rank) {
    if (ranks && !std::ranges::count(*ranks, rank))
      continue;
    RankWriter writer(rank, origin, list);
    writer.nameProcess(rank < names.size() ? names[rank]
                                           : "rank " + std::to_string(rank));
    for (const Event &event : byRank[rank])
      writer.add(event);
  }
  return textOf(std::move(list));
}

} // namespace whale::runtime
