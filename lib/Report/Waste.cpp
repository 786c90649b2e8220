//===- Waste.cpp - What a plan wastes -------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a plan. Out: texts about devices without work. Cost: the devices times
// the TaskGraphs of the plan.
//
//===----------------------------------------------------------------------===//

#include "whale/Report/Waste.h"
#include "PlanRead.h"
#include "whale/Report/TextTable.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

namespace whale {

using namespace report;

namespace {

/// A stage with less than this part of a device's mean work is not worth one.
constexpr double smallStage = 1e-3;

class Waste {
public:
  explicit Waste(const Plan &plan) : plan(plan) {}
  std::vector<std::string> find();

private:
  void addIdle();
  void addEmpty();
  void addSmallStages();
  std::string describe(const std::vector<int64_t> &devices) const;

  const Plan &plan;
  std::map<int64_t, std::string> kinds;
  /// The devices that some TaskGraph is on.
  std::set<int64_t> busy;
  std::vector<std::string> texts;
};

/// "'front', 'back'": those TaskGraphs of which `isOne` holds.
template <typename Predicate>
std::string joinNames(const Plan &plan, Predicate isOne) {
  std::string text;
  for (const Work &work : plan.work)
    if (isOne(work))
      text += (text.empty() ? "'" : ", '") + work.name + "'";
  return text;
}

} // namespace

/// "device 3 (T4) has", or "devices 2-3 (2 × T4) have".
std::string Waste::describe(const std::vector<int64_t> &devices) const {
  std::string text = describeDevices(devices) + " (";
  if (devices.size() == 1)
    return text + kinds.at(devices.front()) + ") has";
  std::map<std::string, size_t> counts;
  for (int64_t device : devices)
    ++counts[kinds.at(device)];
  const char *between = "";
  for (const auto &[kind, count] : counts) {
    text += between + std::to_string(count) + " \u00d7 " + kind;
    between = ", ";
  }
  return text + ") have";
}

void Waste::addIdle() {
  std::vector<int64_t> idle;
  for (const auto &[device, kind] : kinds)
    if (!busy.contains(device))
      idle.push_back(device);
  if (!idle.empty())
    texts.push_back(describe(idle) +
                    " no work, as no part of the step is placed there: give "
                    "the scopes more devices, or the cluster fewer");
}

void Waste::addEmpty() {
  // Where a mini-batch has too few samples, only the optimizer is left.
  std::set<int64_t> withShare, withNone;
  for (const Work &work : plan.work)
    if (!work.shares.empty())
      for (int64_t device : work.devices())
        (work.shareOf(device) > 0 ? withShare : withNone).insert(device);
  std::vector<int64_t> empty;
  for (const Devices &devices : plan.devices)
    std::ranges::copy_if(
        devices.ranks, std::back_inserter(empty), [&](int64_t rank) {
          return busy.contains(rank) &&
                 (devices.computeSeconds <= 0 ||
                  (withNone.contains(rank) && !withShare.contains(rank)));
        });
  if (empty.empty())
    return;
  std::ranges::sort(empty);
  std::string names = joinNames(plan, [&](const Work &work) {
    return std::ranges::any_of(work.devices(), [&](int64_t device) {
      return std::ranges::binary_search(empty, device);
    });
  });
  texts.push_back(describe(empty) + " no work in " + names +
                  ": its share of what is there is empty; give it fewer "
                  "devices, or a larger mini-batch");
}

void Waste::addSmallStages() {
  // By group of devices, what is computed on it.
  std::map<std::vector<int64_t>, double> groups;
  double all = 0;
  for (const Work &work : plan.work) {
    // What is on none is wherever its operands are, and computes nothing.
    if (std::vector<int64_t> place = work.devices(); !place.empty())
      groups[std::move(place)] += work.allFlops();
    all += work.allFlops();
  }
  double mean = all / static_cast<double>(std::max<size_t>(busy.size(), 1));
  for (const auto &[place, flops] : groups) {
    bool isAlone = std::ranges::none_of(groups, [&](const auto &other) {
      std::vector<int64_t> common;
      std::ranges::set_intersection(place, other.first,
                                    std::back_inserter(common));
      return !common.empty() && other.first != place;
    });
    if (!isAlone ||
        flops / static_cast<double>(place.size()) >= smallStage * mean)
      continue;
    char part[32];
    std::snprintf(part, sizeof(part), "%.2g", flops / all);
    texts.push_back(
        describe(place) + " little to do: " +
        joinNames(plan,
                  [&](const Work &work) { return work.devices() == place; }) +
        " has " + part +
        " of the step's arithmetic; put it in the scope before, "
        "or after");
  }
}

std::vector<std::string> Waste::find() {
  for (const Devices &devices : plan.devices)
    for (int64_t rank : devices.ranks)
      kinds[rank] = devices.kind;
  for (const Work &work : plan.work) {
    // What nothing is said of is wherever its operands are.
    bool isPlaced = !work.groups.empty();
    if (!isPlaced && work.flops[0] + work.flops[1] > 0)
      return {};
    for (int64_t device : work.devices())
      busy.insert(device);
  }
  if (busy.empty() || kinds.size() < 2)
    return {};
  addIdle();
  addEmpty();
  addSmallStages();
  return std::move(texts);
}

std::vector<std::string> findIdleDevices(std::string_view plan) {
  return Waste(readPlan(plan)).find();
}

size_t countRepetitions(std::string_view text) {
  Plan plan = readPlan(text);
  size_t count = 0;
  for (const Devices &devices : plan.devices)
    count += devices.ranks.size();
  const Work *most = nullptr;
  for (const Work &work : plan.work)
    if (!most || work.allFlops() > most->allFlops())
      most = &work;
  if (!most || most->allFlops() <= 0)
    return 0;
  // Where nothing has a strategy, all is everywhere.
  bool isWhole = std::ranges::all_of(most->shares,
                                     [](double share) { return share >= 1; });
  size_t devices = most->groups.empty() ? count : most->devices().size();
  return isWhole && devices > 1 ? devices : 0;
}

} // namespace whale
