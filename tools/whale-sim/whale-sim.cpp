//===- whale-sim.cpp - Times a program on a cluster that isn't there ------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   whale-sim OUT.whale [--cluster=C.json] [--json] [--trace=T.json] [--html=R]
//   whale-sim --calibrate [--ranks=N] [--emit-cluster]
//   whale-sim OUT.whale --compare MORE.whale... [--cluster=C.json]...
//   whale-sim --explain-diff A.whale B.whale
//
//===----------------------------------------------------------------------===//

#include "whale/Report/PlanDiff.h"
#include "whale/Sim/Calibrate.h"
#include "whale/Sim/Simulate.h"
#include "whale/System/Error.h"
#include "whale/System/Io.h"
#include "whale/System/Tool.h"
#include "whale/Version.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <iostream>
#include <nlohmann/json.hpp>

using namespace whale;
using namespace whale::sim;

namespace {
struct Options {
  std::string program, trace, page;
  std::vector<std::string> clusters, more, differing;
  bool isJson = false, calibrates = false, emitsCluster = false;
  int64_t ranks = 1;
  std::string collectives = "own";
};
} // namespace

static void writeFile(const std::string &path, std::string_view text) {
  system::FileWriter file(path);
  file.write(text);
  file.commit();
}

/// The program on each cluster, or on its own.
static void simulateAll(const LoadedProgram &program, const Options &options,
                        std::vector<Simulation> &simulations,
                        std::vector<std::string> &names) {
  CollectiveRule rule = options.collectives == "nccl" ? CollectiveRule::Nccl
                                                      : CollectiveRule::Own;
  if (options.clusters.empty()) {
    simulations.push_back(simulate(program, program.cluster, rule));
    names.emplace_back("its own");
  }
  for (const std::string &path : options.clusters) {
    try {
      simulations.push_back(simulate(program, readCluster(path), rule));
    } catch (const system::Error &error) {
      std::string text = error.what();
      throw system::Error(text.starts_with(path) ? text : path + ": " + text);
    }
    names.push_back(path);
  }
}

/// Without a program.
static void measure(const Options &options) {
  Cluster cluster = calibrate(options.ranks);
  std::cout << (options.emitsCluster ? cluster.toJson() + "\n"
                                     : describeCalibration(cluster));
}

/// What two programs decide otherwise, and what a step of each takes.
static void explainDifference(const Options &options) {
  std::vector<Simulation> simulations;
  std::vector<std::string> names;
  LoadedProgram one = load(options.differing[0]),
                other = load(options.differing[1]);
  for (const LoadedProgram *program : {&one, &other})
    simulateAll(*program, options, simulations, names);
  std::vector<std::string> lines =
      comparePlans(one.program.plan, other.program.plan);
  if (options.isJson) {
    std::cout << nlohmann::json(lines).dump(1) << "\n";
    return;
  }
  if (lines.empty())
    lines.emplace_back("both plans decide the same");
  for (const std::string &line : lines)
    std::cout << line << "\n";
  std::cout << "\n" << compare(simulations, names);
}

static void run(const Options &options) {
  if (!options.differing.empty())
    return explainDifference(options);
  if (options.calibrates && options.program.empty())
    return measure(options);
  if (options.program.empty())
    throw system::Error("a program's directory is needed, or --calibrate");
  std::vector<LoadedProgram> programs = {load(options.program)};
  for (const std::string &path : options.more)
    programs.push_back(load(path));
  if (options.calibrates) {
    // As many ranks of this machine as the program has.
    programs.front().cluster =
        calibrate(static_cast<int64_t>(programs.front().program.ranks.size()));
  }
  if (options.emitsCluster) {
    std::cout << programs.front().cluster.toJson() << "\n";
    return;
  }
  std::vector<Simulation> simulations;
  std::vector<std::string> names;
  for (const LoadedProgram &program : programs)
    simulateAll(program, options, simulations, names);
  // A table of several has none.
  bool tableAlone =
      simulations.size() > 1 && !options.isJson && options.page.empty();
  for (size_t i = 0; i < simulations.size() && !tableAlone; ++i)
    if (i == 0 || options.isJson)
      simulations[i].changes = findChanges(simulations[i]);
  const Simulation &first = simulations.front();
  if (!options.trace.empty())
    writeFile(options.trace, toTrace(first));
  if (!options.page.empty())
    writeFile(options.page, toPage(simulations, names));
  if (simulations.size() == 1)
    std::cout << (options.isJson ? toJson(first) : toText(first));
  else if (!options.isJson)
    std::cout << compare(simulations, names);
  else
    for (size_t i = 0; i < simulations.size(); ++i)
      std::cout << (i == 0 ? "[" : ",\n") << toJson(simulations[i])
                << (i + 1 == simulations.size() ? "]\n" : "");
}

int main(int argc, char **argv) {
  system::beginTool();
  Options options;
  CLI::App app("Times a program of Whale over a cluster, without its devices.",
               "whale-sim");
  app.set_version_flag("--version", WHALE_VERSION_TEXT,
                       "Print the versions of Whale and of its LLVM");
  app.add_option("program", options.program, "The program's directory")
      ->type_name("OUT.whale");
  app.add_flag("--calibrate", options.calibrates,
               "Measure this machine, and take it for the cluster; without a "
               "program say how fast it is");
  app.add_option(
         "--ranks", options.ranks,
         "With --calibrate and no program: ranks that share the machine "
         "(default: 1)")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 15).description(""));
  app.add_flag("--emit-cluster", options.emitsCluster,
               "Print the cluster file: measured with --calibrate, else that "
               "the program was compiled for");
  app.add_option("--cluster", options.clusters,
                 "A cluster file (default: what the program was compiled for); "
                 "several are compared")
      ->type_name("C.json")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--collectives", options.collectives,
                 "How all-reduces, all-gathers and reduce-scatters are carried "
                 "out: as Whale's transports do (own, the default), or as NCCL "
                 "does (nccl: ring, tree or hierarchical)")
      ->type_name("RULE")
      ->check(CLI::IsMember({"own", "nccl"}).description(""));
  app.add_option("--compare", options.more,
                 "Other programs: all of them in one table, the fastest first")
      ->type_name("MORE.whale");
  app.add_option("--explain-diff", options.differing,
                 "What the plans of two programs decide otherwise, and what a "
                 "step of each takes")
      ->type_name("A.whale B.whale")
      ->expected(2)
      ->excludes("program");
  app.add_flag("--json", options.isJson, "Print JSON (docs/simulator.md)");
  app.add_option("--trace", options.trace,
                 "Write a trace for Perfetto, of the first program")
      ->type_name("T.json");
  app.add_option("--html", options.page,
                 "Write a page with pictures of the first program's step, and "
                 "a table of all")
      ->type_name("R.html");
  return system::runTool([&] {
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success &help) {
      return app.exit(help);
    }
    run(options);
    return 0;
  });
}
