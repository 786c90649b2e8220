//===- whale-transfers-test.cpp - Is every wrong order refused? -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests: changes programs of several ranks, and runs what comes out on late
// devices (docs/runtime.md), whether or not a check refuses it. A mutant is
// harmful if a run of it does not come to its end, or gives another result than
// the program: always, or in some order of its transfers. For small programs
// all orders are enumerated, for others the seeds of late devices decide.
//
// A harmful mutant must be refused, by the loader or by what is checked of
// programs that the compiler has written; and nearly all of them must show
// within the first seeds, which are as many as other tests can afford.
//
//===----------------------------------------------------------------------===//

#include "Enumerate.h"
#include "Mutation.h"
#include "Oracle.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <set>

using namespace whale::transfers;
using whale::system::Error;

namespace {

constexpr uint64_t allSeeds = 64, firstSeeds = 16;
constexpr double leastShown = 0.9;

/// Programs of so many instructions are enumerated.
constexpr int64_t mostEnumerated = 30;

struct Counts {
  int mutants = 0, enumerated = 0, undecided = 0, refused = 0, harmful = 0,
      accepted = 0, shown = 0;
};

/// A program, and what it gives.
struct Subject {
  Subject(const std::string &name);

  /// Whether a mutant has an order that gives something else; nothing if it has
  /// too many.
  std::optional<bool> isOther(const whale::format::Program &mutant);

  std::string name;
  Oracle oracle;
  uint64_t expected;
  bool isEnumerated;
  Names names;
  /// By branch of cases.
  std::vector<Symbol> symbols;
};

Subject::Subject(const std::string &name)
    : name(name), oracle(std::filesystem::path(name)),
      isEnumerated(countInstructions(oracle.program()) <= mostEnumerated) {
  std::vector<Result> results = oracle.run(oracle.program(), allSeeds);
  std::set<Result> seen(results.begin(), results.end());
  if (seen.size() > 1 || !*seen.begin())
    throw Error(name + ": late devices give several results, or none");
  expected = **seen.begin();
  for (size_t i = 0; isEnumerated && i < mostBranches(oracle.program()); ++i) {
    Outcomes outcomes = enumerate(oracle.program(), i, names);
    if (!outcomes.isOne())
      throw Error(name +
                  ": orders give several results, or none: " + outcomes.fault);
    symbols.push_back(*outcomes.results.begin());
  }
}

std::optional<bool> Subject::isOther(const whale::format::Program &mutant) {
  bool isCut = false;
  for (size_t i = 0; i < symbols.size(); ++i) {
    Outcomes outcomes = enumerate(mutant, i, names);
    if (!outcomes.fault.empty() || outcomes.results.size() > 1 ||
        (!outcomes.results.empty() && *outcomes.results.begin() != symbols[i]))
      return true;
    isCut |= outcomes.isCut;
  }
  return isCut ? std::nullopt : std::optional(false);
}

void judge(Subject &subject, const Mutant &mutant, bool isVerbose,
           Counts &counts) {
  std::string why = refusal(mutant.program);
  std::optional<bool> isOther;
  if (subject.isEnumerated)
    isOther = subject.isOther(mutant.program);
  std::vector<Result> results =
      subject.oracle.run(mutant.program, isOther ? firstSeeds : allSeeds);
  auto isShown = [&](const Result &result) {
    return result != subject.expected;
  };
  bool isHarmful = isOther.value_or(std::ranges::any_of(results, isShown));
  bool shows =
      std::any_of(results.begin(), results.begin() + firstSeeds, isShown);
  std::string what = subject.name + ": " + mutant.what;
  if (shows && !isHarmful && why.empty())
    throw Error(what + ": late devices show an order that is not enumerated");
  ++counts.mutants;
  counts.enumerated += isOther.has_value();
  counts.undecided += subject.isEnumerated && !isOther;
  counts.refused += !why.empty();
  counts.harmful += isHarmful;
  counts.accepted += isHarmful && why.empty();
  counts.shown += shows;
  if (isVerbose || (isHarmful && why.empty()))
    std::cout << "  " << what << ": " << (isHarmful ? "harmful" : "harmless")
              << (isHarmful && !shows ? " (not shown)" : "") << ", "
              << (why.empty() ? "accepted" : why) << "\n";
}

void print(const std::array<Counts, kindCount> &all) {
  std::cout << "mutants enumerated refused harmful harmless accepted shown\n";
  for (size_t kind = 0; kind < kindCount; ++kind) {
    const Counts &counts = all[kind];
    for (auto [value, width] :
         {std::pair(counts.mutants, 7), std::pair(counts.enumerated, 11),
          std::pair(counts.refused, 8), std::pair(counts.harmful, 8),
          std::pair(counts.mutants - counts.harmful, 9),
          std::pair(counts.accepted, 9), std::pair(counts.shown, 6)})
      std::cout << std::setw(width) << value;
    std::cout << "  " << name(static_cast<Kind>(kind)) << "\n";
  }
}

/// The mutants of the normal test, and of the long one.
int defaultCount() { return std::getenv("WHALE_TEST_FULL") ? 500 : 60; }

int run(int argc, char **argv) {
  int count = defaultCount();
  unsigned seed = 0;
  bool isVerbose = false;
  std::vector<std::string> programs;
  CLI::App app("Changes the order of programs, which must be refused then.");
  app.add_option("program", programs, "Program directories")->required();
  app.add_option("--count", count, "Number of mutants");
  app.add_option("--seed", seed, "Other mutants");
  app.add_flag("--verbose", isVerbose, "Print each mutant");
  CLI11_PARSE(app, argc, argv);
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const std::string &name : programs)
    subjects.push_back(std::make_unique<Subject>(name));
  std::array<Counts, kindCount> all;
  constexpr int mostTries = 10000;
  for (int number = 0, tries = 0; number < count;) {
    size_t kind = static_cast<size_t>(number) % kindCount;
    Subject &subject = *subjects[random() % subjects.size()];
    auto mutant =
        mutate(subject.oracle.program(), static_cast<Kind>(kind), random);
    if (!mutant) {
      if (++tries > mostTries)
        throw Error("no program has what can be changed: " +
                    std::string(name(static_cast<Kind>(kind))));
      continue;
    }
    tries = 0;
    ++number;
    judge(subject, *mutant, isVerbose, all[kind]);
  }
  print(all);
  Counts sum;
  for (const Counts &counts : all) {
    sum.mutants += counts.mutants;
    sum.enumerated += counts.enumerated;
    sum.undecided += counts.undecided;
    sum.harmful += counts.harmful;
    sum.accepted += counts.accepted;
    sum.shown += counts.shown;
  }
  std::cout << sum.enumerated << " of " << sum.mutants
            << " mutants enumerated, " << sum.undecided
            << " have too many orders\n"
            << sum.shown << " of " << sum.harmful
            << " harmful mutants show within " << firstSeeds << " seeds\n";
  if (sum.accepted)
    throw Error(std::to_string(sum.accepted) + " harmful mutants are accepted");
  if (sum.shown < leastShown * sum.harmful)
    throw Error("too few harmful mutants show");
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
