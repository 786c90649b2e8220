//===- PlanPage.cpp - A picture of a plan ---------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a plan. Out: a page of HTML with pictures in SVG. Everything is drawn
// here, so that a page can be mailed, shown in a notebook, and looked at where
// scripts don't run. Each section is a function that appends to the page.
// Cost: linear in what is shown.
//
//===----------------------------------------------------------------------===//

#include "whale/Report/PlanPage.h"

#include "PlanRead.h"
#include "whale/Report/PlanText.h"
#include "whale/Report/TextTable.h"
#include "whale/System/Printable.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

namespace whale {

using namespace report;

namespace {

/// What is shown of long plans.
constexpr size_t mostRows = 64, mostColumns = 16, mostPlacements = 32,
                 mostLabels = 200;

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ink: #1c2430; --faint: #667085;
  --line: #d0d5dd; --back: #ffffff; --bar: #c7d7fe; --limit: #b42318; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --faint: #98a2b3;
  --line: #344054; --back: #101828; --bar: #2d4a8a; --limit: #f97066; } }
.whale { font: 14px/1.45 system-ui, sans-serif; color: var(--ink);
  background: var(--back); max-width: 1100px; margin: 0 auto; padding: 16px; }
.whale h1 { font-size: 20px; }
.whale h2 { font-size: 16px; margin: 28px 0 8px; }
.whale table { border-collapse: collapse; }
.whale td, .whale th { padding: 3px 10px; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
.whale th { font-weight: 600; } .whale .faint { color: var(--faint); }
.whale td.share { min-width: 72px; background: linear-gradient(to right,
  var(--bar) var(--part), transparent var(--part)); }
.whale svg { display: block; width: 100%; height: auto; }
.whale .zoom label { color: var(--faint); }
.whale .scroll { overflow: auto; max-height: 90vh; }
.whale .zoom:has(.z4:checked) svg { width: 400%; }
.whale .zoom:has(.z16:checked) svg { width: 1600%; }
.whale svg text { fill: var(--ink); font: 11px system-ui, sans-serif; }
.whale .key { display: inline-block; width: 12px; height: 12px;
  margin: 0 4px 0 14px; vertical-align: -1px; }
)";

/// Colors that are told apart in both light and dark, and by most people who
/// don't see all of them.
constexpr std::array colors = {"#4c78a8", "#f58518", "#54a24b", "#b279a2",
                               "#e45756", "#72b7b2", "#eeca3b", "#9d755d"};

class Page {
public:
  explicit Page(std::string_view text) : plan(readPlan(text)), source(text) {}
  std::string run();

private:
  void addSummary();
  void addShares();
  void addMemory();
  void addMemoryOverTime();
  void addSchedule();
  void addTicks(double y);
  void addArguments();
  void addTimes(const char *id, const char *title,
                const std::vector<Timed> &times, const char *unit);
  void addComparison();
  void addBar(const Devices &devices, double y, double most);
  void addLane(const std::vector<Piece> &pieces, double y, double height);
  void addLegend(const std::vector<std::string> &names);
  void addLeftOut(size_t all, size_t shown, const char *what);
  void open(const char *id, const char *title);
  void close() { page += "</section>\n"; }
  const char *colorOf(const std::string &what);

  Plan plan;
  std::string_view source;
  std::string page;
  /// By what is drawn in them; those of one section.
  std::map<std::string, const char *> colorsOf;
};

} // namespace

/// Text as HTML has it.
static std::string html(std::string_view text) {
  std::string result;
  for (char c : system::escaped(text))
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += c;
    }
  return result;
}

template <typename... Values>
static std::string print(const char *format, Values... values) {
  std::array<char, 512> text;
  int size = std::snprintf(text.data(), text.size(), format, values...);
  return {text.data(), std::min<size_t>(size, text.size() - 1)};
}

void Page::open(const char *id, const char *title) {
  page += "<section id=\"" + std::string(id) + "\"><h2>" + title + "</h2>\n";
}

void Page::addLeftOut(size_t all, size_t shown, const char *what) {
  if (all > shown)
    page += "<p class=\"faint\">and " + std::to_string(all - shown) + " more " +
            what + "</p>\n";
}

const char *Page::colorOf(const std::string &what) {
  return colorsOf.try_emplace(what, colors[colorsOf.size() % colors.size()])
      .first->second;
}

void Page::addLegend(const std::vector<std::string> &names) {
  page += "<p>";
  for (const std::string &name : names)
    page +=
        "<span class=\"key\" style=\"background:" + std::string(colorOf(name)) +
        "\"></span>" + html(name);
  page += "</p>\n";
}

void Page::addSummary() {
  open("summary", "Summary");
  page += "<table>\n";
  std::string summary = makeSummary(source);
  for (size_t begin = 0, end; begin < summary.size(); begin = end + 1) {
    end = summary.find('\n', begin);
    std::string line = summary.substr(begin, end - begin);
    // The word, two blanks or more, and the answer.
    size_t gap = line.find("  "), answer = line.find_first_not_of(' ', gap);
    if (gap == line.npos || answer == line.npos)
      gap = answer = 0;
    page += "<tr><th>" + html(line.substr(0, gap)) + "</th><td>" +
            html(line.substr(answer)) + "</td></tr>\n";
  }
  page += "</table>\n";
  close();
}

void Page::addShares() {
  if (plan.work.empty() || plan.devices.empty())
    return;
  open("devices", "Devices and task graphs");
  // From the first devices on, as a pipeline's stages follow one another.
  std::ranges::stable_sort(plan.work, {}, [](const Work &work) {
    std::vector<int64_t> devices = work.devices();
    return devices.empty() ? std::numeric_limits<int64_t>::max()
                           : devices.front();
  });
  size_t columns = std::min(plan.work.size(), mostColumns);
  page += "<table><tr><th>devices</th><th>kind</th>";
  for (size_t i = 0; i < columns; ++i)
    page += "<th>" + html(plan.work[i].name) + "<br><span class=\"faint\">" +
            html(plan.work[i].strategy) + "</span></th>";
  page += "</tr>\n";
  for (size_t row = 0; row < std::min(plan.devices.size(), mostRows); ++row) {
    const Devices &devices = plan.devices[row];
    page += "<tr><td>" + html(describeRanges(devices.ranks)) + "</td><td>" +
            html(devices.kind) + "</td>";
    for (size_t i = 0; i < columns; ++i) {
      double part = plan.work[i].shareOf(devices.ranks.front());
      page += part > 0 ? print("<td class=\"share\" style=\"--part:%.1f%%\">"
                               "%.3g %%</td>",
                               100 * part, 100 * part)
                       : "<td></td>";
    }
    page += "</tr>\n";
  }
  page +=
      "</table>\n<p class=\"faint\">Part of the task graph's work that each "
      "of the devices computes.</p>\n";
  addLeftOut(plan.devices.size(), mostRows, "rows");
  addLeftOut(plan.work.size(), mostColumns, "task graphs");
  close();
}

void Page::addBar(const Devices &devices, double y, double most) {
  constexpr double left = 150, width = 700;
  double x = left;
  page += print("<text x=\"0\" y=\"%.0f\">", y + 13) +
          html(describeRanges(devices.ranks)) + " " + html(devices.kind) +
          "</text>\n";
  for (const Held &held : devices.held) {
    // Of each part something is seen.
    double size = std::max(0.5, width * held.bytes / most);
    page += print("<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"16\" "
                  "fill=\"%s\"><title>",
                  x, y, size, colorOf(held.what)) +
            html(held.what) + ": " + describeBytes(held.bytes) +
            "</title></rect>\n";
    x += size;
  }
  double limit = left + width * devices.memoryBytes / most;
  page += print("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\" "
                "stroke=\"var(--limit)\" stroke-width=\"2\"/>\n",
                limit, limit, y - 2, y + 18);
  page += print("<text x=\"%.0f\" y=\"%.0f\">", left + width + 10, y + 13) +
          describeBytes(devices.neededBytes) + " of " +
          describeBytes(devices.memoryBytes) + "</text>\n";
}

void Page::addMemory() {
  double most = 0;
  std::vector<std::string> names;
  for (const Devices &devices : plan.devices) {
    most = std::max({most, devices.memoryBytes, devices.neededBytes});
    for (const Held &held : devices.held)
      if (std::ranges::find(names, held.what) == names.end())
        names.push_back(held.what);
  }
  if (most <= 0 || names.empty())
    return;
  open("memory", "Memory at the peak");
  colorsOf.clear();
  addLegend(names);
  size_t rows = std::min(plan.devices.size(), mostRows);
  page += print("<svg viewBox=\"0 0 1060 %zu\" role=\"img\" "
                "aria-label=\"memory of devices\">\n",
                rows * 24 + 4);
  for (size_t row = 0; row < rows; ++row)
    addBar(plan.devices[row], static_cast<double>(row) * 24 + 2, most);
  page += "</svg>\n<p class=\"faint\">The line is what a device has.</p>\n";
  addLeftOut(plan.devices.size(), rows, "rows");
  close();
}

void Page::addLane(const std::vector<Piece> &pieces, double y, double height) {
  constexpr double left = 150, width = 900;
  for (const Piece &piece : pieces) {
    double x = left + width * piece.begin,
           size = std::max(0.5, width * (piece.end - piece.begin));
    std::string what = piece.what.empty() ? "computing" : piece.what;
    page += print("<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%.0f\" "
                  "fill=\"%s\"><title>",
                  x, y, size, height, colorOf(what)) +
            html(what);
    if (piece.moment >= 0)
      page += ", micro-batch " + std::to_string(piece.moment);
    page += ": " +
            describeSeconds((piece.end - piece.begin) * plan.stepSeconds) +
            "</title></rect>\n";
    if (piece.moment >= 0 && size >= 16)
      page += print("<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%lld"
                    "</text>\n",
                    x + size / 2, y + height - 4,
                    static_cast<long long>(piece.moment));
  }
}

void Page::addSchedule() {
  std::vector<const Devices *> rows;
  std::vector<std::string> names;
  auto addName = [&](const Piece &piece) {
    std::string what = piece.what.empty() ? "computing" : piece.what;
    if (std::ranges::find(names, what) == names.end())
      names.push_back(what);
  };
  for (const Devices &devices : plan.devices) {
    if (devices.computed.empty() && devices.transferred.empty())
      continue;
    rows.push_back(&devices);
    std::ranges::for_each(devices.computed, addName);
  }
  for (const Devices *devices : rows)
    std::ranges::for_each(devices->transferred, addName);
  if (rows.empty())
    return;
  open("schedule", "Schedule of a step");
  colorsOf.clear();
  addLegend(names);
  constexpr size_t rowHeight = 38;
  // Larger pictures can be scrolled.
  page += "<div class=\"zoom\">";
  for (int factor : {1, 4, 16})
    page += print("<label><input type=\"radio\" name=\"zoom\" class=\"z%d\"%s>"
                  "%d&times;</label> ",
                  factor, factor == 1 ? " checked" : "", factor);
  page += "<div class=\"scroll\">";
  page += print("<svg viewBox=\"0 0 1060 %zu\" role=\"img\" "
                "aria-label=\"schedule of a step\">\n",
                rows.size() * rowHeight + 20);
  for (size_t row = 0; row < rows.size(); ++row) {
    auto y = static_cast<double>(row * rowHeight);
    page += print("<text x=\"0\" y=\"%.0f\">", y + 15) +
            html(describeRanges(rows[row]->ranks)) + " " +
            html(rows[row]->kind) + "</text>\n";
    addLane(rows[row]->computed, y + 2, 18);
    addLane(rows[row]->transferred, y + 22, 8);
  }
  addTicks(static_cast<double>(rows.size() * rowHeight) + 14);
  page +=
      "</svg></div></div>\n<p class=\"faint\">By the cost model: "
      "computation above, transfers below; numbers are micro-batches.</p>\n";
  addLeftOut(plan.devices.size(), rows.size(), "rows");
  close();
}

/// The times of a step, from left to right.
void Page::addTicks(double y) {
  constexpr int ticks = 4;
  for (int tick = 0; tick <= ticks; ++tick)
    page += print("<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">",
                  150.0 + 900.0 * tick / ticks, y,
                  tick == 0       ? "start"
                  : tick == ticks ? "end"
                                  : "middle") +
            describeSeconds(plan.stepSeconds * tick / ticks) + "</text>\n";
}

/// A curve for each row, as high as what its device has.
void Page::addMemoryOverTime() {
  std::vector<const Devices *> rows;
  for (const Devices &devices : plan.devices)
    if (!devices.memory.empty() && rows.size() < mostRows)
      rows.push_back(&devices);
  if (rows.empty())
    return;
  open("memory-over-time", "Memory over the time of a step");
  constexpr double left = 150, width = 900, height = 40, rowHeight = 52;
  page += print("<svg viewBox=\"0 0 1060 %.0f\" role=\"img\" "
                "aria-label=\"memory over time\">\n",
                static_cast<double>(rows.size()) * rowHeight + 20);
  double y = 0;
  for (const Devices *devices : rows) {
    double most = devices->memoryBytes;
    for (const auto &[begin, bytes] : devices->memory)
      most = std::max(most, bytes);
    std::string line = print("M%.1f %.1f", left, y + height);
    double x = left;
    auto heightOf = [&](double bytes) {
      return y + height - height * bytes / most;
    };
    for (const auto &[begin, bytes] : devices->memory) {
      x = left + width * begin;
      line += print(" H%.1f V%.1f", x, heightOf(bytes));
    }
    line += print(" H%.1f V%.1f Z", left + width, y + height);
    page += print("<text x=\"0\" y=\"%.0f\">", y + 24) +
            html(describeRanges(devices->ranks)) + " " + html(devices->kind) +
            "</text>\n<path d=\"" + line + "\" fill=\"" + colors[0] +
            "\"><title>at most " + describeBytes(devices->neededBytes) +
            "</title></path>\n";
    page += print("<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" "
                  "stroke=\"var(--limit)\" stroke-width=\"2\"/>\n",
                  left, left + width, heightOf(devices->memoryBytes),
                  heightOf(devices->memoryBytes));
    y += rowHeight;
  }
  addTicks(y + 10);
  page += "</svg>\n<p class=\"faint\">The line is what a device has.</p>\n";
  addLeftOut(plan.devices.size(), rows.size(), "rows");
  close();
}

/// "[8, 16] split 0 (4, 4) on [0, 1]" -> "split 0 (4, 4) on [0, 1]", so that
/// what lies alike is one row whatever its shape.
static std::string withoutShape(const std::string &placement) {
  size_t end = placement.find(']');
  if (end == placement.npos)
    return placement;
  size_t begin = placement.find_first_not_of(' ', end + 1);
  return begin == placement.npos ? placement : placement.substr(begin);
}

void Page::addArguments() {
  struct Alike {
    double bytes = 0;
    std::vector<const Argument *> arguments;
  };
  std::map<std::string, Alike> placements;
  for (const Argument &argument : plan.arguments) {
    Alike &alike = placements[withoutShape(argument.placement)];
    alike.bytes += argument.bytes;
    alike.arguments.push_back(&argument);
  }
  if (placements.empty())
    return;
  std::vector<std::pair<std::string, Alike>> order(placements.begin(),
                                                   placements.end());
  std::ranges::sort(order, {}, [](const auto &entry) {
    return std::pair(-entry.second.bytes, entry.first);
  });
  open("arguments", "Parameters by placement");
  page += "<table><tr><th>placement</th><th>arguments</th>"
          "<th>bytes of the whole</th></tr>\n";
  for (size_t i = 0; i < std::min(order.size(), mostPlacements); ++i) {
    const auto &[placement, alike] = order[i];
    page += "<tr><td>" + html(placement.empty() ? "not known" : placement) +
            "</td><td><details><summary>" +
            std::to_string(alike.arguments.size()) + "</summary>";
    for (size_t k = 0; k < std::min(alike.arguments.size(), mostLabels); ++k)
      page += (k ? "<br>" : "") + html(alike.arguments[k]->label);
    addLeftOut(alike.arguments.size(), mostLabels, "arguments");
    page += "</details></td><td>" + describeBytes(alike.bytes) + "</td></tr>\n";
  }
  page += "</table>\n";
  addLeftOut(order.size(), mostPlacements, "placements");
  close();
}

void Page::addTimes(const char *id, const char *title,
                    const std::vector<Timed> &times, const char *unit) {
  if (times.empty() || plan.stepSeconds <= 0)
    return;
  open(id, title);
  page += "<table>\n";
  for (size_t i = 0; i < std::min(times.size(), mostRows); ++i)
    page += "<tr><td>" + html(times[i].what) + "</td><td>" +
            describeSeconds(times[i].seconds) + "</td><td>" +
            print("%.1f%%", 100 * times[i].seconds / plan.stepSeconds) +
            html(unit) + "</td></tr>\n";
  page += "</table>\n";
  addLeftOut(times.size(), mostRows, "rows");
  close();
}

void Page::addComparison() {
  if (plan.comparison.empty())
    return;
  open("comparison", "Programs and clusters");
  page += "<table><tr><th>program</th><th>cluster</th><th>step</th>"
          "<th>samples/s</th><th>most memory</th><th>fits</th></tr>\n";
  double most = 0;
  for (const Compared &row : plan.comparison)
    most = std::max(most, row.stepSeconds);
  for (const Compared &row : plan.comparison) {
    constexpr double width = 160;
    page +=
        "<tr><td>" + html(row.program) + "</td><td>" + html(row.cluster) +
        "</td><td>" +
        print("<svg width=\"%.0f\" height=\"10\" role=\"img\" "
              "aria-label=\"length\"><rect width=\"%.1f\" height=\"10\" "
              "fill=\"%s\"/></svg> ",
              width, most > 0 ? width * row.stepSeconds / most : 0.0,
              colorOf("step")) +
        describeSeconds(row.stepSeconds) + "</td><td>" +
        (row.samplesPerSecond > 0 ? withPrefix(row.samplesPerSecond, "") : "") +
        "</td><td>" + describeBytes(row.mostBytes) + "</td><td>" +
        (row.fits ? "yes" : "no") + "</td></tr>\n";
  }
  page += "</table>\n";
  close();
}

std::string Page::run() {
  page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<title>Plan of a step</title><style>" +
         std::string(style) +
         "</style></head>\n<body><div class=\"whale\">"
         "<h1>Plan of a step</h1>\n";
  addSummary();
  addShares();
  addMemory();
  addSchedule();
  addMemoryOverTime();
  addTimes("path", "Critical path", plan.criticalPath, " of the step");
  addTimes("changes", "How long a step would take", plan.changes, " of now");
  addComparison();
  addArguments();
  return page + "</div></body></html>\n";
}

std::string makePlanPage(std::string_view plan) { return Page(plan).run(); }

} // namespace whale
