//===- Checkpoints.cpp - Saves and resumes a run --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoints.h"

#include <atomic>
#include <csignal>
#include <ctime>
#include <iostream>
#include <map>

using namespace whale;
using namespace whale::runtime;

static std::atomic<bool> isTerminated = false;

/// The first SIGTERM waits for the next step's end. A later one does what it
/// did before; but whoever signals a group of processes, as `timeout` does,
/// signals each of them twice where its launcher passes the signal on.
static void watchTermination() {
  static struct sigaction before;
  static timespec first;
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!isTerminated) {
      first = now;
      isTerminated = true;
    } else if (now.tv_sec - first.tv_sec > 1) {
      sigaction(signal, &before, nullptr);
      raise(signal);
    }
  };
  sigaction(SIGTERM, &action, &before);
}

Checkpoints::Checkpoints(const Options &options, std::shared_ptr<Job> job)
    : options(options), job(std::move(job)) {
  if (options.checkpointDirectory.empty())
    return;
  checkpointer.emplace(CheckpointerOptions{
      options.checkpointDirectory, options.keep.value_or(3), this->job});
  watchTermination();
}

int64_t
Checkpoints::resume(std::vector<Array> &arguments,
                    const std::function<Program(int64_t step)> &programOf) {
  if (!options.resumes)
    return 0;
  if (!checkpointer->latest()) {
    if (job->process() == 0)
      std::cerr << "remark: " + options.checkpointDirectory +
                       ": there is no complete checkpoint: beginning with "
                       "--inputs\n";
    return 0;
  }
  Checkpoint checkpoint = checkpointer->restore();
  const format::CheckpointManifest &manifest = checkpoint.manifest();
  std::string where = options.checkpointDirectory +
                      ": the checkpoint of step " +
                      std::to_string(manifest.step);
  if (manifest.step >= options.steps)
    throw Error(where + " has nothing left to do of --steps=" +
                std::to_string(options.steps));
  const Program program = programOf(manifest.step);
  std::map<std::string, size_t> leaves;
  for (size_t i = 0; i < manifest.leaves.size(); ++i)
    leaves[manifest.leaves[i].name] = i;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter &parameter = program.arguments()[i];
    if (!parameter.fedBy)
      continue;
    auto it = leaves.find(parameter.name);
    if (it == leaves.end())
      throw Error(where + " has no " + describe(parameter));
    try {
      arguments[i] = program.place(i, checkpoint.array(it->second));
    } catch (const Error &error) {
      throw Error(where + ": " + error.what());
    }
  }
  return manifest.step;
}

void Checkpoints::save(const Program &program, int64_t steps,
                       const std::vector<Array> &results) {
  std::vector<StateLeaf> leaves;
  for (const Parameter &parameter : program.arguments())
    if (parameter.fedBy)
      leaves.push_back({parameter.name, results[*parameter.fedBy]});
  CheckpointNotes notes;
  notes.plan = program.plan();
  checkpointer->save(steps, leaves, notes);
}

static bool isDue(const Options &options, int64_t steps) {
  return options.checkpointEvery && steps % *options.checkpointEvery == 0;
}

void Checkpoints::saveIfDue(const Program &program, int64_t steps,
                            const std::vector<Array> &results) {
  if (!checkpointer)
    return;
  bool isEnding = checkpointer->anyOfUs(isTerminated);
  if (isEnding || isDue(options, steps))
    save(program, steps, results);
  if (!isEnding)
    return;
  checkpointer->wait();
  throw Terminated();
}

void Checkpoints::saveLast(const Program &program, int64_t steps,
                           const std::vector<Array> &results) {
  if (checkpointer && isDue(options, steps))
    save(program, steps, results);
  wait();
}

void Checkpoints::wait() {
  if (checkpointer)
    checkpointer->wait();
}
