//===- whale-run.cpp - Run a compiled program -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the arguments of a program from a safetensors file, runs it for one or
// more steps, and writes its results to another.
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"
#include "ReadNetwork.h"
#include "whale/Cluster/ClusterRanges.h"
#include "whale/ProgramFormat/Checksum.h"
#include "whale/ProgramFormat/Printable.h"
#include "whale/Runtime/Io.h"
#include "whale/Runtime/Job.h"
#include "whale/Runtime/Program.h"
#include "whale/Runtime/ProgramPlace.h"
#include "whale/Runtime/Safetensors.h"
#include "whale/Runtime/Staging.h"
#include "whale/Runtime/Tool.h"
#include "whale/Version.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <string_view>

using namespace whale::runtime;

namespace {
struct Options {
  std::string program, inputs, outputs, data, stats, trace, slowdowns, network;
  int64_t steps = 1;
  int64_t checkReplicas = 0;
  int64_t threads = 0;
  bool profile = false;
  std::string coordinator, node, logDirectory;
  int64_t processes = 0;
  std::string transport;
  std::optional<double> progressLimit;
};
} // namespace

/// With several steps, each piece of state must have a next value.
static void checkFeedback(const Program &program, const Options &options) {
  if (options.steps <= 1)
    return;
  for (const Parameter &parameter : program.arguments())
    if ((parameter.role == Role::State || parameter.donated) &&
        !parameter.fedBy)
      throw Error(options.program + ": " + describe(parameter) +
                  " is state, but the program does not say which result is "
                  "its next value: --steps needs it compiled with --feedback");
}

/// Each file is replaced as a whole, so none may be another one, be read, or be
/// a part of the program.
static void checkFiles(const Options &options) {
  namespace fs = std::filesystem;
  std::map<fs::path, std::string> usedAs;
  auto place = [](const fs::path &path) {
    try {
      return fs::weakly_canonical(fs::absolute(followLinks(path)));
    } catch (const std::system_error &) {
      return path; // What is wrong with it is said when it is opened.
    }
  };
  fs::path program = place(options.program);
  auto claim = [&](const std::string &flag, const std::string &path) {
    std::error_code error;
    if (path.empty() || fs::is_character_file(path, error))
      return;
    fs::path at = place(path);
    if (at.parent_path() == program && isProgramFile(at.filename().string()))
      throw Error(flag + ": " + path + " is the file of the program too");
    auto [other, isNew] = usedAs.try_emplace(at, flag);
    if (!isNew)
      throw Error(flag + ": " + path + " is the file of " + other->second +
                  " too");
  };
  // Both may be read from one file.
  if (!options.inputs.empty())
    usedAs.try_emplace(place(options.inputs), "--inputs");
  if (!options.data.empty())
    usedAs.try_emplace(place(options.data), "--data");
  if (!options.network.empty())
    usedAs.try_emplace(place(options.network), "--network");
  claim("--outputs", options.outputs);
  claim("--stats", options.stats);
  claim("--trace", options.trace);
}

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

/// The factors of --slowdowns, of which CLI would pass over empty ones.
static std::vector<double> parseSlowdowns(std::string_view text) {
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

static std::vector<size_t> ranksOf(const Program &program, int64_t process) {
  std::vector<size_t> ranks;
  for (size_t rank = 0; rank < program.rankCount(); ++rank)
    if (program.processOf(rank) == process)
      ranks.push_back(rank);
  return ranks;
}

/// The first process gets what the others have computed and measured.
static void gather(const Program &program, Job &job, Stats &stats,
                   Profile &profile, std::string &trace,
                   std::vector<Array> &results) {
  for (Array &result : results)
    result = program.gather(result);
  auto takeAll = [&](auto &costs, const char *what) {
    if (costs.ranks.empty())
      return;
    std::vector<std::string> all = job.allGather(what, costs.json());
    for (size_t process = 1; process < all.size(); ++process)
      costs.take(all[process], ranksOf(program, static_cast<int64_t>(process)));
  };
  takeAll(stats, "statistics");
  takeAll(profile, "profiles");
  if (!trace.empty())
    trace = Trace::join(job.allGather("traces", trace));
}

static TransportKind kindOfTransport(std::string_view name) {
  return name == "ucx"   ? TransportKind::Ucx
         : name == "mpi" ? TransportKind::Mpi
                         : TransportKind::Local;
}

namespace {
/// Of the last step, and of all.
struct Measured {
  Stats stats;
  Trace trace;
  Profile profile;
};
} // namespace

static void checkReplicas(const Program &program,
                          const std::vector<Array> &results, int64_t steps) {
  try {
    program.checkReplicas(results);
  } catch (const Error &error) {
    throw Error("after step " + std::to_string(steps) + ", " + error.what());
  }
}

/// Runs all steps; the results of the last one. While a step runs, the next one
/// is handed over, with its part of the batch read and laid out.
static std::vector<Array> runSteps(const Program &program, const Inputs &inputs,
                                   const Options &options,
                                   RunOptions runOptions, Measured &measured) {
  std::vector<Array> arguments(program.arguments().size()), results;
  Submission running;
  auto finish = [&] {
    if (!running.step)
      return;
    running.step->wait();
    measured.stats = running.costs->stats;
    if (!running.costs->profile.ranks.empty())
      measured.profile.add(running.costs->profile);
    running = {};
  };
  for (int64_t step = 0; step < options.steps; ++step) {
    if (step > 0)
      for (size_t i = 0; i < arguments.size(); ++i)
        if (auto result = program.arguments()[i].fedBy)
          arguments[i] = results[*result];
    // A donated result that feeds the next step is not needed here any more.
    results.clear();
    inputs.fill(arguments, step);
    // The first of several steps has caches to fill.
    runOptions.isProfiled = options.profile && (step > 0 || options.steps == 1);
    if (!options.trace.empty()) {
      runOptions.stats = &measured.stats;
      runOptions.trace = &measured.trace;
      runOptions.profile = runOptions.isProfiled ? &measured.profile : nullptr;
      results = program.run(arguments, runOptions);
    } else {
      Submission next = program.submit(arguments, runOptions);
      finish();
      results = std::move(next.results);
      running = std::move(next);
    }
    if (options.checkReplicas && (step + 1) % options.checkReplicas == 0) {
      finish();
      checkReplicas(program, results, step + 1);
    }
  }
  finish();
  return results;
}

/// What the processes do together depends on these options.
static void agree(const Options &options, Job &job) {
  auto isGiven = [](const std::string &path) {
    return path.empty() ? "none" : "one";
  };
  std::string network = "none";
  if (!options.network.empty())
    network = whale::format::Checksum::of(MappedFile(options.network).text());
  job.agree({{"--steps", std::to_string(options.steps)},
             {"--check-replicas", std::to_string(options.checkReplicas)},
             {"--transport", options.transport},
             {"--network", network},
             {"--stats", isGiven(options.stats)},
             {"--trace", isGiven(options.trace)},
             {"--profile", options.profile ? "given" : "none"}});
}

static void run(const Options &options, const std::shared_ptr<Job> &job) {
  RunOptions runOptions;
  if (!options.slowdowns.empty())
    runOptions.slowdowns = parseSlowdowns(options.slowdowns);
  checkFiles(options);
  LoadOptions loadOptions;
  ClusterLinks links;
  if (!options.network.empty())
    links = readNetwork(options.network);
  loadOptions.network = links.network;
  loadOptions.threadsPerRank = options.threads;
  loadOptions.job = job;
  if (!options.transport.empty())
    loadOptions.transport = kindOfTransport(options.transport);
  bool isFirst = job->process() == 0;
  agree(options, *job);
  Program program = Program::load(options.program, loadOptions);
  if (links.network && links.devices != program.rankCount())
    throw Error(options.network + ": has " + std::to_string(links.devices) +
                " devices, the program has " +
                std::to_string(program.rankCount()) + " ranks");
  checkFeedback(program, options);
  Inputs inputs(program, options.inputs, options.data);

  // Opened first: a path that can't be written is said before the work. A pipe
  // is opened only once: its reader goes when it is closed.
  std::unique_ptr<FileWriter> outputs, statsFile, traceFile;
  if (isFirst)
    outputs = std::make_unique<FileWriter>(options.outputs);
  if (isFirst && !options.stats.empty())
    statsFile = std::make_unique<FileWriter>(options.stats);
  if (isFirst && !options.trace.empty())
    traceFile = std::make_unique<FileWriter>(options.trace);
  // The traces of all processes begin together.
  if (!options.trace.empty())
    job->allGather("the beginning of traces", "");
  Measured measured;
  std::vector<Array> results =
      runSteps(program, inputs, options, runOptions, measured);
  auto &[stats, trace, profile] = measured;

  std::string traceText;
  if (!options.trace.empty()) {
    std::vector<size_t> own = ranksOf(program, job->process());
    traceText = trace.json(&own);
  }
  if (options.stats.empty())
    stats.ranks.clear();
  if (job->processes() > 1)
    gather(program, *job, stats, profile, traceText, results);
  if (!isFirst)
    return;

  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < results.size(); ++i)
    tensors.push_back({program.results()[i].name, program.results()[i].dtype,
                       program.results()[i].shape,
                       [&, i](void *out) { results[i].toHost(out); }});
  // All or nothing: a full disk is noticed before the first file is replaced.
  std::vector<FileWriter *> files = {outputs.get()};
  writeSafetensors(*outputs, tensors);
  if (statsFile)
    files.emplace_back(statsFile.get())->write(stats.json());
  if (traceFile)
    files.emplace_back(traceFile.get())->write(traceText);
  for (FileWriter *file : files)
    file->flush();
  for (FileWriter *file : files)
    file->commit();
  if (options.profile)
    std::cout << program.describe(profile);
}

/// "HOST:PORT"; brackets go round the colons of an address.
static std::pair<std::string, int> parseAddress(const std::string &text) {
  size_t colon = text.rfind(':');
  int port = 0;
  if (colon != std::string::npos) {
    const char *begin = text.c_str() + colon + 1,
               *end = text.c_str() + text.size();
    auto [rest, error] = std::from_chars(begin, end, port);
    if (error != std::errc() || rest != end || begin == end)
      port = 0;
  }
  if (colon == 0 || port < 1 || port > 65535)
    throw Error("--coordinator: '" + text + "' is no HOST:PORT");
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return {host, port};
}

/// "I/K": node I, counted from 0, of K.
static std::pair<int64_t, int64_t> parseNode(const std::string &text) {
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

/// Starts the processes of this host, each with this one's arguments.
static int runNode(const Options &options,
                   const std::vector<std::string> &arguments) {
  std::string host = "127.0.0.1";
  int port = 0;
  int64_t node = 0, nodes = 1;
  if (options.coordinator.empty() != options.node.empty())
    throw Error("--coordinator and --node belong together");
  if (!options.coordinator.empty()) {
    std::tie(host, port) = parseAddress(options.coordinator);
    std::tie(node, nodes) = parseNode(options.node);
  }
  if (!options.logDirectory.empty())
    std::filesystem::create_directories(options.logDirectory);
  return runProcesses(node * options.processes, options.processes,
                      nodes * options.processes, host, port, arguments,
                      options.logDirectory);
}

/// What a process of another launcher's prints goes into a file of its own,
/// unless it is the first.
static void redirect(const std::string &directory, int64_t process) {
  std::filesystem::create_directories(directory);
  std::string path = logFile(directory, process);
  for (FILE *stream : {stdout, stderr})
    if (!std::freopen(path.c_str(), "a", stream))
      throw Error(path + ": " + std::strerror(errno));
}

/// The checksum of a program's manifest; empty where there is none here, which
/// may come from another process.
static std::string checksumOf(const std::string &program) {
  try {
    return readProgram(program, [](const std::filesystem::path &directory) {
      return whale::format::Checksum::of(
          MappedFile(directory / "manifest.json").text());
    });
  } catch (const std::exception &) {
    return "";
  }
}

/// Runs the program as a process of a job, of which this may be the only one.
static void runProcess(const Options &options) {
  JobOptions jobOptions = JobOptions::fromEnvironment().value_or(JobOptions());
  jobOptions.progressLimit = options.progressLimit;
  if (jobOptions.processes > 1)
    jobOptions.program = checksumOf(options.program);
  std::shared_ptr<Job> job = Job::join(jobOptions);
  std::string error;
  try {
    if (!options.logDirectory.empty() && jobOptions.process > 0 &&
        !options.processes)
      redirect(options.logDirectory, jobOptions.process);
    run(options, job);
    job->leave();
    return;
  } catch (const std::filesystem::filesystem_error &failure) {
    error = failure.path1().string() + ": " + failure.code().message();
  } catch (const std::bad_alloc &) {
    error = "out of memory";
  } catch (const std::exception &failure) {
    error = failure.what();
  }
  throw Error(job->fail(error));
}

static void fail(std::string_view text) {
  std::string line = whale::format::diagnosticLine(text);
  stopIfAbandoned();
  std::fprintf(stderr, "error: %s\n", line.c_str());
}

int main(int argc, char **argv) {
  beginTool();
  Options options;
  CLI::App app("Runs a compiled program: tensors in, tensors out.",
               "whale-run");
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
  app.add_option("--transport", options.transport,
                 "What moves data between ranks: local (one process), ucx or "
                 "mpi (default: local for one process, else ucx)")
      ->check(CLI::IsMember({"local", "ucx", "mpi"}).description(""));
  app.add_option("--log-dir", options.logDirectory,
                 "A directory for what all processes but the first print, "
                 "one file each");
  app.add_option("--progress-limit", options.progressLimit,
                 "Seconds without progress in a step that end the run; 0 for "
                 "none (default: 20 times the slowest step, at least 10)")
      ->check(CLI::Range(0.0, 1e9));
  app.footer("For tests: with WHALE_TEST_LATE=SEED in the environment "
             "transfers go on as\nlate, and in as odd an order, as the program "
             "allows; --stats counts them.");
  app.set_version_flag("--version", WHALE_VERSION_TEXT,
                       "Print the versions of Whale and of its LLVM");
  try {
    app.parse(argc, argv);
    if (options.processes > 0 && !std::getenv("WHALE_PROCESSES"))
      return runNode(options, {argv, argv + argc});
    runProcess(options);
    if (std::cout.flush())
      return 0;
    std::fprintf(stderr, "error: cannot write the standard output\n");
    return 1;
  } catch (const CLI::Success &help) {
    app.exit(help);
    if (std::cout.flush())
      return 0;
    std::fprintf(stderr, "error: cannot write the standard output\n");
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "error: out of memory\n");
  } catch (const std::filesystem::filesystem_error &error) {
    fail(error.path1().string() + ": " + error.code().message());
  } catch (const std::exception &error) {
    fail(error.what());
  }
  return 1;
}
