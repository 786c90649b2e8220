//===- Options.cpp - What the command line of whale-run says --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the command line of whale-run. Out: its options, or an error; also the
// parsing of those that are lists of numbers or a node I of K. Ranges are
// checked here, before anything is loaded, and so is what CLI11's own checks
// let pass: empty items of a list, text that is no number. Cost: linear in the
// command line.
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "whale/Cluster/ClusterRanges.h"
#include "whale/Runtime/Types.h"
#include "whale/Version.h"

#include <algorithm>
#include <charconv>
#include <limits>

using namespace whale::runtime;

/// A whole number from 1 to `most`.
static CLI::Validator countUpTo(int64_t most) {
  return CLI::Validator(
      [most](std::string &text) -> std::string {
        int64_t value = 0;
        auto [end, error] =
            std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() &&
            value >= 1 && value <= most)
          return "";
        return "'" + text + "' is no whole number from 1 to " +
               std::to_string(most);
      },
      "");
}

void whale::runtime::addOptions(CLI::App &app, Options &options) {
  app.add_option("program", options.program, "Program directory (OUT.whale)")
      ->required()
      ->check([](const std::string &path) {
        return std::string(path.empty() ? "the path is empty" : "");
      });
  app.add_option("--inputs", options.inputs,
                 "Safetensors file with arg0, arg1, ...; an empty file or "
                 "/dev/null for a program without arguments")
      ->required();
  app.add_option("--outputs", options.outputs,
                 "Safetensors file for result0, result1, ... of the last step")
      ->required();
  app.add_option("--data", options.data,
                 "Safetensors file with batch arguments, each with a leading "
                 "dimension of batches: step i takes batch i, cycling");
  app.add_option("--steps", options.steps,
                 "Number of steps; results feed the arguments of the next")
      ->check(countUpTo(std::numeric_limits<int64_t>::max()));
  app.add_option("--check-replicas", options.checkReplicas,
                 "Every so many steps, compare what several ranks hold of the "
                 "same part of a result")
      ->type_name("K")
      ->check(countUpTo(std::numeric_limits<int64_t>::max()));
  CLI::Option *checkpoints =
      app.add_option("--checkpoint-dir", options.checkpointDirectory,
                     "A directory, of all processes, for checkpoints of what "
                     "feeds the next step; SIGTERM saves one and ends the run");
  app.add_option("--checkpoint-every", options.checkpointEvery,
                 "Save a checkpoint every so many steps")
      ->type_name("N")
      ->needs(checkpoints)
      ->check(countUpTo(std::numeric_limits<int64_t>::max()));
  app.add_option("--keep", options.keep,
                 "How many checkpoints are kept, the last ones (default: 3)")
      ->type_name("K")
      ->needs(checkpoints)
      ->check(countUpTo(std::numeric_limits<int64_t>::max()));
  app.add_flag("--resume", options.resumes,
               "Go on from the last checkpoint, if there is one, until --steps "
               "steps are done in all")
      ->needs(checkpoints);
  app.add_option("--switch", options.switches,
                 "Go on with another program of the same arguments from step N "
                 "on, counted from 0; may be given several times")
      ->type_name("N:PROGRAM")
      ->allow_extra_args(false);
  app.add_option("--stats", options.stats,
                 "JSON file for the memory and communication of the last step");
  app.add_option("--trace", options.trace,
                 "JSON file for a timeline (Chrome trace events, opens in "
                 "Perfetto)");
  app.add_flag("--profile", options.profile,
               "Print where the time went: of each rank, and by lines of the "
               "user's program; of all steps but the first");
  app.add_option("--threads", options.threads,
                 "Threads of each rank; by default the ranks share the cores")
      ->check(countUpTo(1024));
  app.add_option("--slowdowns", options.slowdowns,
                 "How many times longer than it could each rank takes for its "
                 "work, as if its device were slower: one factor for each")
      ->type_name("F,...");
  app.add_option("--network", options.network,
                 "Cluster file whose links the ranks emulate: a transfer ends "
                 "when its time on them has passed, too; device i is rank i");
  CLI::Option *processes =
      app.add_option(
             "--nprocs", options.processes,
             "Run the ranks in so many processes, or so many on this host")
          ->check(countUpTo(1 << 16));
  app.add_option("--coordinator", options.coordinator,
                 "With --nprocs on several hosts: where the first process "
                 "listens, the same on all")
      ->needs(processes)
      ->type_name("HOST:PORT");
  app.add_option("--node", options.node,
                 "With --coordinator: which of the hosts this is, from 0")
      ->needs(processes)
      ->type_name("I/K");
  app.add_option("--restarts", options.restarts,
                 "With --nprocs: how often all processes are started again "
                 "after one has failed; with --resume they go on from the last "
                 "checkpoint")
      ->needs(processes)
      ->type_name("R")
      ->check(countUpTo(1 << 20));
  app.add_option("--transport", options.transport,
                 "What moves data between ranks: local (one process), ucx, mpi "
                 "or, between GPUs, nccl (default: nccl where each rank has a "
                 "GPU of its own; else local for one process, ucx for more)")
      ->check(CLI::IsMember({"local", "ucx", "mpi", "nccl"}).description(""));
  app.add_option("--log-dir", options.logDirectory,
                 "A directory for what all processes but the first print, "
                 "one file each");
  app.add_option("--progress-limit", options.progressLimit,
                 "Seconds without progress in a step that end the run; 0 for "
                 "none (default: 20 times the slowest step, at least 10)")
      ->check([](const std::string &given) -> std::string {
        // CLI's own ranges take what is no number.
        double seconds = 0;
        bool isGood = CLI::detail::lexical_cast(given, seconds) &&
                      seconds >= 0 && seconds <= 1e9;
        return isGood ? "" : given + " is no number from 0 to 1e9";
      });
  app.footer("For tests: with WHALE_TEST_LATE=SEED in the environment "
             "transfers go on as\nlate, and in as odd an order, as the program "
             "allows; --stats counts them.");
  app.set_version_flag("--version", WHALE_VERSION_TEXT,
                       "Print the versions of Whale and of its LLVM");
}

std::vector<double> whale::runtime::parseSlowdowns(std::string_view text) {
  // CLI would pass over empty ones.
  std::vector<double> factors;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string_view item = text.substr(begin, end - begin);
    double factor = 0;
    auto [rest, error] =
        std::from_chars(item.data(), item.data() + item.size(), factor);
    if (error != std::errc() || rest != item.data() + item.size() ||
        !whale::kSlowdownRange.contains(factor))
      throw Error("--slowdowns: '" + std::string(item) +
                  "' is no number from 1 to 1000000");
    factors.push_back(factor);
    begin = end + 1;
  }
  return factors;
}

std::pair<int64_t, std::string>
whale::runtime::parseSwitch(const std::string &text) {
  int64_t step = 0;
  const char *end = text.c_str() + text.size();
  auto [colon, error] = std::from_chars(text.c_str(), end, step);
  if (error != std::errc() || step < 1 || colon == end || *colon != ':' ||
      colon + 1 == end)
    throw Error("--switch: '" + text +
                "' is no N:PROGRAM, with a step N from 1 on");
  return {step, colon + 1};
}

std::pair<int64_t, int64_t> whale::runtime::parseNode(const std::string &text) {
  int64_t node = -1, nodes = 0;
  const char *end = text.c_str() + text.size();
  auto [slash, error] = std::from_chars(text.c_str(), end, node);
  if (error == std::errc() && slash != end && *slash == '/') {
    auto [rest, other] = std::from_chars(slash + 1, end, nodes);
    if (other == std::errc() && rest == end && node >= 0 && node < nodes &&
        nodes <= whale::kMostDevices)
      return {node, nodes};
  }
  throw Error("--node: '" + text +
              "' is no I/K, node I (from 0) of K, at most " +
              std::to_string(whale::kMostDevices));
}
