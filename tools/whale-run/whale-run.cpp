//===- whale-run.cpp - Run a compiled program -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a program, a safetensors file with its arguments, and options. Out: a
// file with the results of the last of its steps, and statistics, a trace or a
// profile if asked for. With --nprocs it starts the processes, each of which
// runs this program.
//
// Cost: loading, then the steps. A run of this program begins by executing
// itself again, unless variables for OpenMP are set. Processes compare their
// options, and the first gathers the results and what was measured when the
// steps are over; the trace of all steps is kept in memory until then.
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"
#include "Options.h"
#include "Outputs.h"
#include "RunSteps.h"
#include "whale/ProgramFormat/ProgramPlace.h"
#include "whale/Runtime/Job.h"
#include "whale/Runtime/Program.h"
#include "whale/System/Checksum.h"
#include "whale/System/Io.h"
#include "whale/System/Tool.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <string_view>
#include <unistd.h>

using namespace whale::runtime;

static TransportKind kindOfTransport(std::string_view name) {
  return name == "ucx"    ? TransportKind::Ucx
         : name == "mpi"  ? TransportKind::Mpi
         : name == "nccl" ? TransportKind::Nccl
                          : TransportKind::Local;
}

/// What the processes do together depends on these options.
static void agree(const Options &options, Job &job) {
  auto isGiven = [](const std::string &path) {
    return path.empty() ? "none" : "one";
  };
  std::string network = "none";
  if (!options.network.empty())
    network = job.alone([&] {
      return whale::system::Checksum::of(
          whale::system::MappedFile(options.network).text());
    });
  job.agree({{"--steps", std::to_string(options.steps)},
             {"--check-replicas", std::to_string(options.checkReplicas)},
             {"--transport", options.transport},
             {"--network", network},
             {"--stats", isGiven(options.stats)},
             {"--trace", isGiven(options.trace)},
             {"--profile", options.profile ? "given" : "none"},
             {"--checkpoint-dir", isGiven(options.checkpointDirectory)},
             {"--checkpoint-every",
              std::to_string(options.checkpointEvery.value_or(0))},
             {"--resume", options.resumes ? "given" : "none"},
             {"--switch",
              std::accumulate(options.switches.begin(), options.switches.end(),
                              std::string("none"))}});
}

/// Loads the program, and those that take its place later: before the first
/// step, so that what is wrong with one of them is known then.
static void load(const Options &options, const LoadOptions &loadOptions,
                 Stages &stages) {
  auto add = [&](int64_t first, const std::string &path) {
    Stage &stage = stages.emplace_back(first, Program::load(path, loadOptions));
    if (!loadOptions.job || loadOptions.job->process() == 0)
      for (const LoadNote &note : stage.program.notes())
        std::cerr << (note.isWarning ? "warning: " : "remark: ") << note.text
                  << "\n";
  };
  add(0, options.program);
  checkFeedback(stages[0].program, options);
  for (const std::string &text : options.switches) {
    auto [step, path] = parseSwitch(text);
    if (step <= stages.back().first || step >= options.steps)
      throw Error("--switch: step " + std::to_string(step) +
                  " is not behind that of the program before, or none of " +
                  "--steps=" + std::to_string(options.steps));
    add(step, path);
    checkSwitch(stages[0].program, stages.back().program, path);
  }
  if (stages.size() > 1 && (options.profile || !options.trace.empty()))
    throw Error("--profile and --trace are of one program: leave out --switch");
}

static void run(const Options &options, const std::shared_ptr<Job> &job) {
  RunOptions runOptions;
  if (!options.slowdowns.empty())
    runOptions.slowdowns = parseSlowdowns(options.slowdowns);
  checkFiles(options);
  LoadOptions loadOptions;
  if (!options.network.empty())
    loadOptions.network = std::make_shared<whale::Cluster>(
        job->alone([&] { return whale::readCluster(options.network); }));
  loadOptions.networkName = options.network;
  loadOptions.threadsPerRank = options.threads;
  loadOptions.job = job;
  if (!options.transport.empty())
    loadOptions.transport = kindOfTransport(options.transport);
  bool isFirst = job->process() == 0;
  agree(options, *job);
  Stages stages;
  load(options, loadOptions, stages);
  std::optional<Outputs> outputs;
  job->alone([&] {
    for (Stage &stage : stages)
      stage.inputs.emplace(stage.program, options.inputs, options.data);
    if (isFirst)
      outputs.emplace(options);
  });
  // The traces of all processes begin together.
  if (!options.trace.empty())
    job->allGather("the beginning of traces", "");
  Measured measured;
  Checkpoints checkpoints(options, job);
  const Program &program = stages.back().program;
  std::vector<Array> results =
      runSteps(stages, options, runOptions, checkpoints, measured);

  std::vector<size_t> here = ranksOf(program, job->process());
  std::string traceText;
  if (!options.trace.empty())
    traceText = measured.trace.json(&here);
  if (int64_t bytes = checkpoints.stagingBytes(); bytes && !here.empty())
    measured.stats.ranks.at(here.front()).stagingBytes = bytes;
  if (options.stats.empty())
    measured.stats.ranks.clear();
  std::vector<Array> last = results;
  if (job->processes() > 1)
    gather(program, *job, measured, traceText, results);
  if (isFirst)
    job->alone([&] {
      outputs->write(program, results, measured.stats.json(), traceText);
    });
  checkpoints.saveLast(program, options.steps, last);
  if (isFirst && options.profile)
    std::cout << program.describe(measured.profile);
}

/// Starts the processes of this host, each with this one's arguments.
static int runNode(const Options &options,
                   const std::vector<std::string> &arguments) {
  LaunchOptions launch;
  int64_t node = 0, nodes = 1;
  if (options.coordinator.empty() != options.node.empty())
    throw Error("--coordinator and --node belong together");
  if (!options.coordinator.empty()) {
    auto address = parseAddress(options.coordinator);
    if (!address)
      throw Error("--coordinator: '" + options.coordinator +
                  "' is no HOST:PORT");
    std::tie(launch.host, launch.port) = *address;
    std::tie(node, nodes) = parseNode(options.node);
  }
  if (!options.logDirectory.empty())
    std::filesystem::create_directories(options.logDirectory);
  launch.first = node * options.processes;
  launch.count = options.processes;
  launch.total = nodes * options.processes;
  launch.arguments = arguments;
  launch.logDirectory = options.logDirectory;
  launch.restarts = options.restarts;
  int status = runProcesses(launch);
  if (status < 0) {
    std::signal(-status, SIG_DFL);
    std::raise(-status);
  }
  return status == 0 ? 0 : 1;
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
    return whale::format::readProgramDirectory(
        program, [](const std::filesystem::path &directory) {
          return whale::system::Checksum::of(
              whale::system::MappedFile(directory / "manifest.json").text());
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
  } catch (const Terminated &) {
    job->leave();
    // As without a checkpoint.
    std::signal(SIGTERM, SIG_DFL);
    std::raise(SIGTERM);
  } catch (const std::filesystem::filesystem_error &failure) {
    error = failure.path1().string() + ": " + failure.code().message();
  } catch (const std::bad_alloc &) {
    error = "out of memory";
  } catch (const std::exception &failure) {
    error = failure.what();
  }
  throw Error(job->fail(error));
}

/// GNU's OpenMP runtime reads when it is loaded how long a thread turns round
/// before it sleeps: far too long where other programs need the cores
/// (python/whale/native.py). Begins anew, unless the user says how long.
static void setPatience(char **argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT"))
    return;
  ::setenv("GOMP_SPINCOUNT", "4000", /*overwrite=*/1);
  std::error_code ignored;
  ::execv(std::filesystem::read_symlink("/proc/self/exe", ignored).c_str(),
          argv);
}

/// CLI would take the next argument for the value of "--option=".
static void checkValues(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--")
      return;
    if (argument.starts_with("--") && argument.find('=') + 1 == argument.size())
      throw Error(std::string(argument.substr(0, argument.size() - 1)) +
                  ": the value is empty");
  }
}

int main(int argc, char **argv) {
  setPatience(argv);
  // With that, processes of a job start, and say what else they lack.
  constexpr size_t leastAddressSpace = 160;
  whale::system::requireAddressSpace(leastAddressSpace);
  whale::system::beginTool();
  Options options;
  CLI::App app("Runs a compiled program: tensors in, tensors out.",
               "whale-run");
  addOptions(app, options);
  return whale::system::runTool([&] {
    try {
      checkValues(argc, argv);
      app.parse(argc, argv);
    } catch (const CLI::Success &help) {
      return app.exit(help);
    }
    if (options.processes > 0 && !std::getenv("WHALE_PROCESSES"))
      return runNode(options, {argv, argv + argc});
    runProcess(options);
    return 0;
  });
}
