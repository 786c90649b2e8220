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
// the program: always, or in some order of its transfers.
//
// A harmful mutant must be refused, by the loader or by what is checked of
// programs that the compiler has written; and nearly all of them must show
// within the first seeds, which are as many as other tests can afford.
//
//===----------------------------------------------------------------------===//

#include "Mutation.h"
#include "Oracle.h"
#include "whale/ProgramFormat/CheckValues.h"
#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/ProgramFormat/WriteProgram.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <limits>
#include <set>

using namespace whale::transfers;
using whale::format::Error;

namespace {

constexpr uint64_t allSeeds = 64, firstSeeds = 16;
constexpr double leastShown = 0.9;

struct Counts {
  int mutants = 0, refused = 0, harmful = 0, accepted = 0, shown = 0;
};

/// Why a program is refused; empty if it is not.
std::string refusal(const whale::format::Program &program) {
  try {
    std::string text =
        whale::format::writeProgram(
            program, {}, /*mostBytes=*/std::numeric_limits<size_t>::max())
            .manifest;
    auto read = whale::format::readProgram(text, "mutant");
    if (auto fault = whale::format::checkValues(read))
      return fault->path + ": " + fault->what;
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

void judge(const Oracle &oracle, const Mutant &mutant, uint64_t expected,
           bool isVerbose, Counts &counts) {
  std::string why = refusal(mutant.program);
  std::vector<Result> results = oracle.run(mutant.program, allSeeds);
  auto isOther = [&](const Result &result) { return result != expected; };
  bool isHarmful = std::ranges::any_of(results, isOther);
  ++counts.mutants;
  counts.refused += !why.empty();
  counts.harmful += isHarmful;
  counts.accepted += isHarmful && why.empty();
  counts.shown +=
      std::any_of(results.begin(), results.begin() + firstSeeds, isOther);
  if (isVerbose || (isHarmful && why.empty()))
    std::cout << "  " << mutant.what << ": "
              << (isHarmful ? "harmful" : "harmless") << ", "
              << (why.empty() ? "accepted" : why) << "\n";
}

void print(const std::array<Counts, kindCount> &all) {
  std::cout << "mutants refused harmful accepted shown\n";
  for (size_t kind = 0; kind < kindCount; ++kind) {
    const Counts &counts = all[kind];
    for (auto [value, width] :
         {std::pair(counts.mutants, 7), std::pair(counts.refused, 8),
          std::pair(counts.harmful, 8), std::pair(counts.accepted, 9),
          std::pair(counts.shown, 6)})
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
  std::vector<std::unique_ptr<Oracle>> oracles;
  std::vector<uint64_t> expected;
  for (const std::string &name : programs) {
    const Oracle &oracle = *oracles.emplace_back(
        std::make_unique<Oracle>(std::filesystem::path(name)));
    std::vector<Result> results = oracle.run(oracle.program(), allSeeds);
    std::set<Result> seen(results.begin(), results.end());
    if (seen.size() > 1 || !*seen.begin())
      throw Error(name + ": late devices give several results, or none");
    expected.push_back(**seen.begin());
  }
  std::array<Counts, kindCount> all;
  for (int number = 0; number < count;) {
    size_t kind = static_cast<size_t>(number) % kindCount;
    size_t which = random() % oracles.size();
    auto mutant =
        mutate(oracles[which]->program(), static_cast<Kind>(kind), random);
    if (!mutant)
      continue;
    ++number;
    mutant->what = programs[which] + ": " + mutant->what;
    judge(*oracles[which], *mutant, expected[which], isVerbose, all[kind]);
  }
  print(all);
  Counts sum;
  for (const Counts &counts : all) {
    sum.harmful += counts.harmful;
    sum.accepted += counts.accepted;
    sum.shown += counts.shown;
  }
  std::cout << sum.shown << " of " << sum.harmful
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
