//===- PlanDiff.cpp - What differs between two plans ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both plans become lists of named decisions; what they say under one name is
// compared as text. Cost: linear in the plans, times a logarithm.
//
//===----------------------------------------------------------------------===//

#include "whale/Report/PlanDiff.h"

#include "whale/Report/TextTable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace whale {
namespace {

using Json = nlohmann::ordered_json;

/// In the order in which they are told.
using Named = std::vector<std::pair<std::string, std::string>>;

const Json &memberOf(const Json &json, const char *name) {
  static const Json none;
  if (!json.is_object())
    return none;
  auto it = json.find(name);
  return it == json.end() ? none : *it;
}

/// A string as it is, all else as JSON.
std::string textOf(const Json &json) {
  return json.is_string() ? json.get<std::string>() : json.dump();
}

/// The lists of devices as "0,1 and 2,3".
std::string describeGroups(const Json &groups) {
  std::string text;
  for (const Json &group : groups) {
    text += text.empty() ? "" : " and ";
    std::string list = group.dump();
    text += list.substr(1, list.size() - 2);
  }
  return text;
}

std::string describePercent(double part) {
  char text[16];
  std::snprintf(text, sizeof(text), "%.3g %%", part * 100);
  return text;
}

double secondsOf(const Json &cost) {
  const Json &seconds = cost.is_object() ? memberOf(cost, "seconds") : cost;
  return seconds.is_number() && seconds.get<double>() > 0
             ? seconds.get<double>()
             : 1;
}

/// The parts of a group's work that its devices take, and the largest that
/// there is memory for where that is not all.
std::string describeParts(const Json &groups) {
  std::string text;
  for (const Json &group : groups) {
    text += text.empty() ? "" : " and ";
    const Json list = group.is_array() ? group : Json::array({group});
    double sum = 0;
    for (const Json &cost : list)
      sum += 1 / secondsOf(cost);
    std::string parts;
    for (const Json &cost : list) {
      parts += (parts.empty() ? "" : ", ") +
               describePercent(1 / secondsOf(cost) / sum);
      if (const Json &most = memberOf(cost, "most"); most.is_number())
        parts += " (at most " + describePercent(most.get<double>()) + ")";
    }
    text += parts;
  }
  return text;
}

std::string describeShares(const Json &shares) {
  std::string text = describeParts(memberOf(shares, "batch"));
  if (const Json &replicas = memberOf(shares, "replicas"); !replicas.is_null())
    text += "; groups " + describeParts(Json::array({replicas}));
  for (const auto &[pieces, costs] : memberOf(shares, "inner").items())
    text += "; of " + pieces + " pieces " + describeParts(costs);
  if (const Json &other = memberOf(shares, "other_inner"); !other.is_null())
    text += "; inside of groups " + describeParts(other);
  if (const Json &moments = memberOf(shares, "moments"); !moments.is_null())
    text += "; micro-batches of " + moments.dump() + ", which repeat after " +
            memberOf(shares, "period").dump();
  return text;
}

std::string describeSplit(const Json &split) {
  std::string text = "along dimension " + memberOf(split, "dimension").dump() +
                     " in " + memberOf(split, "grains").dump() + " grains";
  if (const Json &inner = memberOf(split, "inner"); !inner.is_null())
    text += " of " + inner.dump() + " inner elements";
  if (!memberOf(split, "gathered").is_null())
    text += ", gathered where they are used";
  return text;
}

Named decisionsOf(const Json &plan) {
  const Json &decisions = memberOf(plan, "decisions");
  Named named;
  auto add = [&](std::string name, std::string says) {
    named.emplace_back(std::move(name), std::move(says));
  };
  for (const char *name : {"step", "cluster"})
    if (const Json &sum = memberOf(decisions, name); !sum.is_null())
      add(name, textOf(sum));
  size_t stage = 0;
  for (const Json &cut : memberOf(decisions, "cuts"))
    add("begin of stage " + std::to_string(stage++), "operation " + cut.dump());
  for (const auto &[name, groups] : memberOf(decisions, "devices").items())
    add("devices of '" + name + "'", describeGroups(groups));
  for (const Json &each : memberOf(decisions, "shares"))
    add("shares of devices " + describeGroups(memberOf(each, "devices")),
        describeShares(each));
  for (const Json &each : memberOf(decisions, "splits"))
    add("split of arguments " + memberOf(each, "arguments").dump(),
        describeSplit(each));
  if (const Json &sums = memberOf(decisions, "sums"); !sums.is_null())
    add("sums of split products", textOf(sums));
  for (const Json &each : memberOf(decisions, "recomputed")) {
    const Json &operations = memberOf(each, "operations");
    add("what devices " + describeGroups(memberOf(each, "devices")) +
            " compute again",
        operations.is_null() ? "nothing" : "operations " + operations.dump());
  }
  if (const Json &list = memberOf(decisions, "offloaded"); !list.is_null())
    add("arguments in the memory of hosts", list.dump());
  size_t number = 0;
  for (const Json &pipeline : memberOf(decisions, "pipelines")) {
    std::string name = "pipeline " + std::to_string(number++);
    add(name, textOf(memberOf(pipeline, "kind")));
    stage = 0;
    for (const Json &steps : memberOf(pipeline, "stages"))
      add(name + ", stage " + std::to_string(stage++), textOf(steps));
  }
  return named;
}

/// What follows, of all that both plans say.
std::vector<std::string> compareResults(const Json &one, const Json &other) {
  std::vector<std::string> lines;
  auto add = [&](const char *name, auto numberOf, auto describe) {
    double left = numberOf(one), right = numberOf(other);
    if (left > 0 && right > 0)
      lines.push_back(std::string(name) + ": " + describe(left) + " | " +
                      describe(right));
  };
  add(
      "seconds of a step",
      [](const Json &plan) {
        const Json &seconds = memberOf(plan, "step_time_s");
        return seconds.is_number() ? seconds.get<double>() : 0;
      },
      [](double seconds) { return describeSeconds(seconds); });
  add(
      "memory of the fullest device",
      [](const Json &plan) {
        double most = 0;
        for (const Json &device : memberOf(plan, "devices"))
          if (const Json &bytes = memberOf(device, "peak_memory_bytes");
              bytes.is_number())
            most = std::max(most, bytes.get<double>());
        return most;
      },
      [](double bytes) { return withPrefix(bytes, "B"); });
  add(
      "values that are exchanged",
      [](const Json &plan) {
        double sum = 0;
        for (const auto &[kind, total] : memberOf(plan, "collectives").items())
          sum += memberOf(total, "bytes").get<double>();
        return sum;
      },
      [](double bytes) { return withPrefix(bytes, "B"); });
  return lines;
}

} // namespace

std::vector<std::string> comparePlans(std::string_view one,
                                      std::string_view other) {
  Json left = Json::parse(one), right = Json::parse(other);
  Named ofLeft = decisionsOf(left), ofRight = decisionsOf(right);
  auto find = [](const Named &list, const std::string &name) {
    return std::ranges::find(list, name, &Named::value_type::first);
  };
  std::vector<std::string> lines;
  for (const auto &[name, says] : ofLeft) {
    auto it = find(ofRight, name);
    if (it == ofRight.end() || it->second != says)
      lines.push_back(name + ": " + says + " | " +
                      (it == ofRight.end() ? "none" : it->second));
  }
  for (const auto &[name, says] : ofRight)
    if (find(ofLeft, name) == ofLeft.end())
      lines.push_back(name + ": none | " + says);
  if (!lines.empty())
    for (std::string &line : compareResults(left, right))
      lines.push_back(std::move(line));
  return lines;
}

} // namespace whale
