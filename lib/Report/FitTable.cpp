//===- FitTable.cpp - What options save and cost, as text -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: what a step needs, and would need with options, as JSON. Out: three
// tables. Cost: linear in the input.
//
//===----------------------------------------------------------------------===//

#include "whale/Report/FitTable.h"

#include "whale/Report/TextTable.h"
#include "whale/System/Json.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace whale {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

double numberOf(const Json &json, const char *name) {
  return json.contains(name) ? json[name].get<double>() : 0;
}

/// "6.35 GB of 17.2 GB".
std::string describeFill(const Json &json) {
  return describeBytes(numberOf(json, "peak_memory_bytes")) + " of " +
         describeBytes(numberOf(json, "memory_bytes"));
}

std::string describeOptions(const Json &options) {
  std::string text;
  for (const auto &[key, value] : options.items())
    text += (text.empty() ? "" : ", ") + key + " " +
            (value.is_string()    ? value.get<std::string>()
             : value.is_boolean() ? (value.get<bool>() ? "True" : "False")
                                  : value.dump());
  return text;
}

/// "+12 %".
std::string describeChange(double from, double to) {
  std::array<char, 32> text = {};
  double percent = from > 0 ? 100 * (to - from) / from : 0;
  if (std::abs(percent) < 0.05)
    percent = 0;
  const char *format = std::abs(percent) < 99.5 ? "%+.2g %%" : "%+.0f %%";
  std::snprintf(text.data(), text.size(), format, percent);
  return text.data();
}

std::string describeStep(const Json &step) {
  std::string text = describeDevices(step["ranks"].get<std::vector<int64_t>>());
  text += " (" + step["kind"].get<std::string>() + ") " +
          (step["ranks"].size() == 1 ? "is" : "are") +
          " fullest: " + describeFill(step) + ", which " +
          (step["fits"].get<bool>() ? "fits" : "does not fit") +
          "; a step takes about " +
          describeSeconds(numberOf(step, "step_time_s")) + "\n";
  Rows rows;
  for (const Json &held : step["held"]) {
    std::string what = held["what"];
    if (auto values = held["values"].get<int64_t>(); values > 1)
      what += " (" + std::to_string(values) + " values)";
    rows.push_back({"", describeBytes(numberOf(held, "bytes")), what});
  }
  return text + alignColumns(std::move(rows));
}

std::string describeAll(const Json &step, const Json &list) {
  Rows rows = {{"option", "needs", "saves", "a step takes", ""}};
  for (size_t number = 1; number < list.size(); ++number) {
    const Json &each = list[number];
    std::vector<std::string> &row = rows.emplace_back();
    row.push_back(describeOptions(each["options"]));
    if (each.contains("error")) {
      row.insert(row.end(), {"", "", "", each["error"].get<std::string>()});
      continue;
    }
    double before = numberOf(step, "peak_memory_bytes");
    double after = numberOf(each, "peak_memory_bytes");
    double seconds = numberOf(each, "step_time_s");
    row.push_back(describeBytes(after));
    row.push_back(after <= before ? describeBytes(before - after)
                                  : "-" + describeBytes(after - before));
    row.push_back(describeSeconds(seconds) + " (" +
                  describeChange(numberOf(step, "step_time_s"), seconds) + ")");
    std::string notes = each["fits"].get<bool>() ? "" : "does not fit";
    if (each.contains("rounds"))
      notes += std::string(notes.empty() ? "" : "; ") + "rounds otherwise";
    row.push_back(notes);
  }
  return alignColumns(std::move(rows));
}

} // namespace

std::string makeFitTable(std::string_view fit) {
  Json list = Json::parse(fit);
  if (list.empty())
    return "";
  const Json &step = list[0];
  std::string text = describeStep(step);
  if (list.size() > 1)
    text += describeAll(step, list);
  if (step.contains("largest_batch"))
    text += "the largest mini-batch that fits has about " +
            step["largest_batch"].dump() + " samples, and this one " +
            step["samples"].dump() + "\n";
  return text;
}

} // namespace whale
