//===- DescribeProfile.cpp - A profile in words ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the times of instructions, summed over steps, by rank. Out: a text with
// two tables: where each rank's time went, and which lines of the user's
// program took the longest, as means over the ranks. An instruction that is
// made of several lines counts for the line of its result. Waiting for other
// ranks is no line's; what a device reaches beyond its measured peaks, as in
// its caches, counts as the peaks. Both say what is left of a step's time, so
// that all of it is accounted for.
//
// Cost: linear in the instructions of all ranks, with a look-up of each one's
// line, a comparison with the kinds of instruction that this line has, and a
// text for its algorithm; sorts ranks and lines. The first look at peaks
// measures them.
//
//===----------------------------------------------------------------------===//

#include "executor/DescribeProfile.h"

#include <algorithm>
#include <cstdio>

namespace whale::runtime {

using Visit = std::function<void(const Instruction &)>;

static void visit(const std::vector<Instruction> &list, const Visit &function) {
  for (const Instruction &instruction : list) {
    if (const auto *loop = std::get_if<While>(&instruction.operation)) {
      visit(loop->cond, function);
      visit(loop->body, function);
    } else if (const auto *choice = std::get_if<Case>(&instruction.operation)) {
      for (const std::vector<Instruction> &branch : choice->branches)
        visit(branch, function);
    } else if (!std::holds_alternative<Run>(instruction.operation)) {
      function(instruction);
    }
  }
}

void forEachExecuted(const BoundClass &rankClass, const Visit &function) {
  visit(rankClass.instructions, function);
  for (const auto &[number, its] : rankClass.functions)
    visit(its.instructions, function);
}

namespace {
constexpr size_t mostRanks = 16, mostLines = 10;

/// What the instructions of one line took on all ranks.
struct Line {
  double seconds = 0;
  /// Of those whose least time is known: that, and what they took.
  double leastSeconds = 0, knownSeconds = 0;
  int64_t count = 0;
  /// "matmul", "kernel", "all_reduce", ..., each once.
  std::vector<std::string> kinds;
};

class Describer {
public:
  Describer(const Profile &profile, const BoundProgram &program,
            std::optional<double> modelSeconds,
            const std::function<double(const Instruction &)> &leastSeconds,
            const std::function<std::string(const Instruction &)> &algorithmOf)
      : profile(profile), program(program), modelSeconds(modelSeconds),
        leastSeconds(leastSeconds), algorithmOf(algorithmOf),
        step(profile.stepSeconds / static_cast<double>(profile.steps)) {}

  std::string run();

private:
  void add(const std::string &line, const Instruction &instruction,
           const Profile::Spent &spent);
  std::string kindOf(const Instruction &instruction) const;
  std::string time(double seconds) const;
  /// What is left of all steps beside these seconds. There is nothing where
  /// times overlap.
  double rest(double seconds) const {
    return std::max(0.0, profile.stepSeconds - seconds);
  }
  void describeRanks(std::string &text) const;
  void describeLines(std::string &text);
  /// Runs `function` for each rank whose times are known.
  template <typename Function>
  void forEachRank(const Function &function) const;

  const Profile &profile;
  const BoundProgram &program;
  std::optional<double> modelSeconds;
  const std::function<double(const Instruction &)> &leastSeconds;
  const std::function<std::string(const Instruction &)> &algorithmOf;
  /// Seconds of one.
  double step;
  std::map<std::string, Line> lines;
};
} // namespace

template <typename... Values>
static std::string print(const char *format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

template <typename Function>
void Describer::forEachRank(const Function &function) const {
  for (size_t rank = 0; rank < profile.ranks.size(); ++rank)
    if (!profile.ranks[rank].empty())
      function(rank, program.boundClassOf(static_cast<int64_t>(rank)));
}

std::string Describer::kindOf(const Instruction &instruction) const {
  if (const auto *wait = std::get_if<Wait>(&instruction.operation))
    return program.program.channels.at(wait->channel)->kind;
  if (std::holds_alternative<KernelLaunch>(instruction.operation))
    return "kernel";
  std::string algorithm = algorithmOf(instruction);
  return instruction.detail + (algorithm.empty() ? "" : " by " + algorithm);
}

/// Milliseconds of a step, and its share of it.
std::string Describer::time(double seconds) const {
  seconds /= static_cast<double>(profile.steps);
  return print("%10.3f ms %5.1f %%", seconds * 1e3, 100 * seconds / step);
}

void Describer::describeRanks(std::string &text) const {
  struct Row {
    size_t rank;
    double compute = 0, transfer = 0, waiting = 0;
  };
  std::vector<Row> rows;
  forEachRank([&](size_t rank, const BoundClass &rankClass) {
    Row &row = rows.emplace_back(Row{rank});
    forEachExecuted(rankClass, [&](const Instruction &instruction) {
      const Profile::Spent &spent = profile.ranks[rank][instruction.number];
      if (std::holds_alternative<Wait>(instruction.operation)) {
        row.waiting += spent.waitedSeconds;
        row.transfer += spent.seconds - spent.waitedSeconds;
      } else {
        row.compute += spent.seconds;
      }
    });
  });
  // Of many ranks those that the others wait for.
  if (rows.size() > mostRanks)
    std::ranges::sort(rows, std::ranges::greater(), &Row::compute);
  text += "rank             compute            transfer             waiting   "
          "around instructions\n";
  for (size_t i = 0; i < std::min(rows.size(), mostRanks); ++i)
    text += print("%4zu ", rows[i].rank) + time(rows[i].compute) +
            time(rows[i].transfer) + time(rows[i].waiting) +
            time(rest(rows[i].compute + rows[i].transfer + rows[i].waiting)) +
            "\n";
  if (rows.size() > mostRanks)
    text += print("     and %zu ranks that compute less\n",
                  rows.size() - mostRanks);
}

void Describer::add(const std::string &name, const Instruction &instruction,
                    const Profile::Spent &spent) {
  Line &line = lines[name];
  // A rank that waits for others does so wherever it happens to need them.
  line.seconds += spent.seconds - spent.waitedSeconds;
  line.count += spent.count;
  double least = leastSeconds(instruction);
  if (least > 0) {
    line.leastSeconds += least * static_cast<double>(spent.count);
    line.knownSeconds += spent.seconds - spent.waitedSeconds;
  }
  std::string kind = kindOf(instruction);
  if (std::find(line.kinds.begin(), line.kinds.end(), kind) == line.kinds.end())
    line.kinds.push_back(std::move(kind));
}

void Describer::describeLines(std::string &text) {
  forEachRank([&](size_t rank, const BoundClass &rankClass) {
    forEachExecuted(rankClass, [&](const Instruction &instruction) {
      const Profile::Spent &spent = profile.ranks[rank][instruction.number];
      if (spent.count > 0)
        add(instruction.lines->empty() ? instruction.label
                                       : instruction.lines->front(),
            instruction, spent);
    });
  });
  std::vector<const std::pair<const std::string, Line> *> order;
  for (const auto &entry : lines)
    order.push_back(&entry);
  std::ranges::sort(order, std::ranges::greater(),
                    [](auto *entry) { return entry->second.seconds; });
  double ranks = 0;
  forEachRank([&](size_t, const BoundClass &) { ++ranks; });
  text += "               time  roofline  line\n";
  double listed = 0;
  for (size_t i = 0; i < std::min(order.size(), mostLines); ++i) {
    const auto &[name, line] = *order[i];
    listed += line.seconds / ranks;
    text += time(line.seconds / ranks);
    text += line.knownSeconds > 0
                ? print(" %6.0f %%", 100 * std::min(1.0, line.leastSeconds /
                                                             line.knownSeconds))
                : "        -";
    text += "  " + name + " (";
    for (size_t k = 0; k < line.kinds.size(); ++k)
      text += (k ? ", " : "") + line.kinds[k];
    text += print("; %.3g a step)\n", static_cast<double>(line.count) / ranks /
                                          static_cast<double>(profile.steps));
  }
  text += time(rest(listed)) + "        -  waiting, around instructions";
  if (order.size() > mostLines)
    text += print(", %zu other lines", order.size() - mostLines);
  text += "\n";
}

std::string Describer::run() {
  std::string text =
      print("%.3f ms a step, mean of %lld, %zu ranks\n", step * 1e3,
            static_cast<long long>(profile.steps), profile.ranks.size());
  if (modelSeconds)
    text += print("%.3f ms by the model of a step, with these times of "
                  "instructions\n",
                  *modelSeconds * 1e3);
  describeRanks(text);
  describeLines(text);
  return text;
}

std::string describeProfile(
    const Profile &profile, const BoundProgram &program,
    std::optional<double> modelSeconds,
    const std::function<double(const Instruction &)> &leastSeconds,
    const std::function<std::string(const Instruction &)> &algorithmOf) {
  if (profile.steps == 0)
    return "no step has been run\n";
  return Describer(profile, program, modelSeconds, leastSeconds, algorithmOf)
      .run();
}

} // namespace whale::runtime
