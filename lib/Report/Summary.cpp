//===- Summary.cpp - A plan in ten lines ----------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a plan. Out: at most ten lines of text, a word for what each answers and
// the answer. Of devices and TaskGraphs the busiest are named, the others
// counted. Cost: linear in the plan, and a sort of its devices.
//
//===----------------------------------------------------------------------===//

#include "PlanRead.h"
#include "whale/Report/PlanText.h"
#include "whale/Report/TextTable.h"
#include "whale/System/Printable.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <numeric>

namespace whale {

using namespace report;

namespace {

class Summary {
public:
  explicit Summary(Plan given) : plan(std::move(given)) {
    std::ranges::sort(plan.devices, {}, [](const Devices &devices) {
      return std::pair(devices.idleSeconds, devices.ranks);
    });
  }
  std::string run();

private:
  void add(const std::string &question, const std::string &answer) {
    rows.push_back({question, answer});
  }
  void addStep();
  void addDevices();
  void addMemory();
  void addWork();
  void addTimes();
  void addExchanges();
  void addLimit();
  /// A part of the step, in percent.
  std::string share(double seconds) const;

  /// The devices that wait least come first.
  Plan plan;
  std::vector<std::vector<std::string>> rows;
};

/// Rows for what devices spend their time with, and names in a list.
constexpr size_t mostTimes = 3, mostNames = 3;

} // namespace

static std::string percent(double part, double whole) {
  std::array<char, 16> text = {};
  double value = whole > 0 ? 100 * part / whole : 0;
  std::snprintf(text.data(), text.size(), value < 0.95 ? "%.1f %%" : "%.0f %%",
                std::clamp(value, 0.0, 100.0));
  return text.data();
}

std::string Summary::share(double seconds) const {
  return percent(seconds, plan.stepSeconds);
}

/// "devices 0-3", or how many there are if that is long.
static std::string shortDevices(const std::vector<int64_t> &numbers) {
  constexpr size_t widest = 40;
  std::string text = describeDevices(numbers);
  return text.size() <= widest ? text
                               : std::to_string(numbers.size()) + " devices";
}

/// "a, b, c and 2 more".
static std::string joinSome(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), mostNames); ++i)
    text += (i ? ", " : "") + names[i];
  if (names.size() > mostNames)
    text += " and " + std::to_string(names.size() - mostNames) + " more";
  return text;
}

void Summary::addStep() {
  if (plan.stepSeconds <= 0)
    return;
  std::string text = "about " + describeSeconds(plan.stepSeconds);
  if (plan.samples > 0)
    text +=
        " for " + std::to_string(plan.samples) + " samples, " +
        withPrefix(static_cast<double>(plan.samples) / plan.stepSeconds, "") +
        " samples/s";
  add("step", text + "; by the cost model, not measured");
}

void Summary::addDevices() {
  std::map<std::string, std::vector<int64_t>> kinds;
  size_t count = 0;
  for (const Devices &devices : plan.devices) {
    std::vector<int64_t> &ranks = kinds[devices.kind];
    ranks.insert(ranks.end(), devices.ranks.begin(), devices.ranks.end());
    count += devices.ranks.size();
  }
  std::vector<std::string> names;
  for (auto &[kind, ranks] : kinds) {
    std::ranges::sort(ranks);
    names.push_back(shortDevices(ranks) + " are " + kind);
    if (ranks.size() == 1)
      names.back() = shortDevices(ranks) + " is " + kind;
  }
  if (count > 0)
    add("devices", std::to_string(count) + ": " + joinSome(names));
}

void Summary::addMemory() {
  auto fill = [](const Devices &devices) {
    return devices.memoryBytes > 0 ? devices.neededBytes / devices.memoryBytes
                                   : 0;
  };
  auto fullest = std::ranges::max_element(plan.devices, {}, fill);
  if (fullest == plan.devices.end() || fullest->neededBytes <= 0)
    return;
  std::string text = fill(*fullest) <= 1 ? "yes: " : "no: ";
  text += shortDevices(fullest->ranks) +
          (fullest->ranks.size() == 1 ? " is" : " are") + " fullest, " +
          describeBytes(fullest->neededBytes) + " of " +
          describeBytes(fullest->memoryBytes) +
          (fullest->ranks.size() == 1 ? " (" : " each (") +
          percent(fullest->neededBytes, fullest->memoryBytes) + ")";
  auto largest = std::ranges::max_element(fullest->held, {}, &Held::bytes);
  if (largest != fullest->held.end() && largest->bytes > 0)
    text += ", mostly " + largest->what;
  add("fits", text);
}

void Summary::addWork() {
  double all = 0;
  for (const Work &work : plan.work)
    all += work.allFlops();
  std::vector<const Work *> order;
  for (const Work &work : plan.work)
    order.push_back(&work);
  // Of equal ones in the order of the plan.
  std::ranges::sort(order, {}, [](const Work *work) {
    return std::pair(-work->allFlops(), work);
  });
  std::vector<std::string> names;
  for (const Work *work : order) {
    std::string text = work->name;
    if (!work->strategy.empty())
      text += " (" + work->strategy + ")";
    text += " " + percent(work->allFlops(), all);
    if (std::vector<int64_t> devices = work->devices(); !devices.empty())
      text += " on " + shortDevices(devices);
    names.push_back(text);
  }
  if (!names.empty())
    add("work", "of the FLOPs " + joinSome(names));
}

void Summary::addTimes() {
  if (plan.stepSeconds <= 0)
    return;
  auto addRow = [&](const std::string &who, const Devices &devices) {
    add(rows.back()[0] == "time" || rows.back()[0].empty() ? "" : "time",
        who + ": computing " + share(devices.computeSeconds) +
            ", communicating " + share(devices.communicationSeconds) +
            ", idle " + share(devices.idleSeconds));
  };
  size_t named =
      plan.devices.size() <= mostTimes ? plan.devices.size() : mostTimes - 1;
  for (size_t i = 0; i < named; ++i)
    addRow(shortDevices(plan.devices[i].ranks), plan.devices[i]);
  if (named == plan.devices.size())
    return;
  Devices others;
  for (size_t i = named; i < plan.devices.size(); ++i) {
    const Devices &one = plan.devices[i];
    others.ranks.insert(others.ranks.end(), one.ranks.begin(), one.ranks.end());
    auto count = static_cast<double>(one.ranks.size());
    others.computeSeconds += count * one.computeSeconds;
    others.communicationSeconds += count * one.communicationSeconds;
    others.idleSeconds += count * one.idleSeconds;
  }
  auto count = static_cast<double>(others.ranks.size());
  others.computeSeconds /= count;
  others.communicationSeconds /= count;
  others.idleSeconds /= count;
  addRow(std::to_string(others.ranks.size()) + " others, on average", others);
}

void Summary::addExchanges() {
  if (plan.devices.empty() && plan.collectives.empty())
    return;
  std::vector<Exchange> order = plan.collectives;
  std::ranges::sort(order, {}, [](const Exchange &exchange) {
    return std::pair(-exchange.bytes, exchange.name);
  });
  std::vector<std::string> names;
  for (const Exchange &exchange : order)
    // A device that takes a part of what it has exchanges nothing, and neither
    // does one that copies from its host.
    if (exchange.name != "local_slice" && exchange.name != "host_to_device" &&
        exchange.name != "device_to_host")
      names.push_back(std::to_string(exchange.count) + " " + exchange.name +
                      " " + describeBytes(exchange.bytes));
  if (names.empty()) {
    add("exchanges", "none");
    return;
  }
  add("exchanges", joinSome(names) + " a step, in total of all devices");
  if (plan.links.empty())
    return;
  const Exchange &slowest =
      *std::ranges::max_element(plan.links, {}, &Exchange::seconds);
  std::string name = slowest.name == "network"
                         ? "the network between nodes"
                         : "inside node '" + slowest.name + "'";
  add("slowest link",
      slowest.seconds > 0
          ? name + ": " + describeSeconds(slowest.seconds) + " of transfers, " +
                describeBytes(slowest.bytes) + " in total"
          : "none: exchanges cost nothing on links without a bandwidth");
}

void Summary::addLimit() {
  if (plan.devices.empty() || plan.stepSeconds <= 0)
    return;
  const Devices &busiest = plan.devices.front();
  std::string who = shortDevices(busiest.ranks);
  std::string text;
  if (busiest.idleSeconds > plan.stepSeconds / 2)
    text = "waiting: even " + who +
           (busiest.ranks.size() == 1 ? " is" : " are") + " idle for " +
           share(busiest.idleSeconds) +
           " of a step; more micro-batches let stages overlap";
  else if (busiest.communicationSeconds > busiest.computeSeconds)
    text = "exchanges: they block " + who + " for " +
           share(busiest.communicationSeconds) + " of a step";
  else
    text = "computing on " + who + ", " + share(busiest.computeSeconds) +
           " of a step";
  add("limit", text);
}

std::string Summary::run() {
  addStep();
  addDevices();
  addMemory();
  addWork();
  addTimes();
  addExchanges();
  addLimit();
  return rows.empty() ? "the plan says nothing\n" : alignColumns(rows);
}

std::string makeSummary(std::string_view plan) {
  return Summary(readPlan(plan)).run();
}

} // namespace whale
