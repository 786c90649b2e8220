//===- RunSteps.cpp - The steps of a run, and what they cost --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunSteps.h"

#include <chrono>

using namespace whale::runtime;

void whale::runtime::checkFeedback(const Program &program,
                                   const Options &options) {
  if (options.steps <= 1)
    return;
  for (const Parameter &parameter : program.arguments())
    if ((parameter.role == Role::State || parameter.donated) &&
        !parameter.fedBy)
      throw Error(options.program + ": " + describe(parameter) +
                  " is state, but the program does not say which result is "
                  "its next value: --steps needs it compiled with --feedback");
}

static void checkReplicas(const Program &program,
                          const std::vector<Array> &results, int64_t steps) {
  try {
    program.checkReplicas(results);
  } catch (const Error &error) {
    throw Error("after step " + std::to_string(steps) + ", " + error.what());
  }
}

void whale::runtime::checkSwitch(const Program &before, const Program &after,
                                 const std::string &name) {
  auto textOf = [](const Parameter &parameter) {
    return describe(parameter) + " " +
           std::string(whale::runtime::name(parameter.dtype)) +
           toString(parameter.shape) +
           (parameter.fedBy
                ? " fed by result " + std::to_string(*parameter.fedBy)
                : "");
  };
  size_t count = before.arguments().size();
  if (after.arguments().size() != count)
    throw Error("--switch: " + name + ": takes " +
                std::to_string(after.arguments().size()) +
                " arguments, the program before " + std::to_string(count));
  for (size_t i = 0; i < count; ++i)
    if (std::string own = textOf(after.arguments()[i]),
        other = textOf(before.arguments()[i]);
        own != other)
      throw Error("--switch: " + name + ": takes " + own +
                  ", the program before " + other);
}

std::vector<Array> whale::runtime::runSteps(const Stages &stages,
                                            const Options &options,
                                            RunOptions runOptions,
                                            Checkpoints &checkpoints,
                                            Measured &measured) {
  auto stageOf = [&](int64_t step) {
    auto stage = stages.begin();
    while (std::next(stage) != stages.end() && std::next(stage)->first <= step)
      ++stage;
    return stage;
  };
  std::vector<Array> arguments(stages[0].program.arguments().size()), results;
  Submission running;
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  std::vector<double> ends;
  auto end = [&] {
    ends.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  };
  auto finish = [&] {
    if (!running.step)
      return;
    running.step->wait();
    end();
    measured.stats = running.costs->stats;
    if (!running.costs->profile.ranks.empty())
      measured.profile.add(running.costs->profile);
    running = {};
  };
  int64_t first = checkpoints.resume(
      arguments, [&](int64_t step) { return stageOf(step)->program; });
  for (int64_t step = first; step < options.steps; ++step) {
    // What the program before has computed, this one takes as it lies.
    const Program &program = stageOf(step)->program;
    if (step > first)
      for (size_t i = 0; i < arguments.size(); ++i)
        if (auto result = program.arguments()[i].fedBy)
          arguments[i] = results[*result];
    // A donated result that feeds the next step is not needed here any more.
    results.clear();
    stageOf(step)->inputs->fill(arguments, step);
    // The first of several steps has caches to fill.
    runOptions.isProfiled =
        options.profile && (step > first || options.steps == 1);
    runOptions.profilesOperations = runOptions.isProfiled;
    if (!options.trace.empty()) {
      runOptions.stats = &measured.stats;
      runOptions.trace = &measured.trace;
      runOptions.profile = runOptions.isProfiled ? &measured.profile : nullptr;
      results = program.run(arguments, runOptions);
      end();
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
    if (step + 1 < options.steps)
      checkpoints.saveIfDue(program, step + 1, results);
  }
  finish();
  checkpoints.wait();
  measured.stats.stepEnds = std::move(ends);
  return results;
}

std::vector<size_t> whale::runtime::ranksOf(const Program &program,
                                            int64_t process) {
  std::vector<size_t> ranks;
  for (size_t rank = 0; rank < program.rankCount(); ++rank)
    if (program.processOf(rank) == process)
      ranks.push_back(rank);
  return ranks;
}

void whale::runtime::gather(const Program &program, Job &job,
                            Measured &measured, std::string &trace,
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
  takeAll(measured.stats, "statistics");
  takeAll(measured.profile, "profiles");
  if (!trace.empty())
    trace = Trace::join(job.allGather("traces", trace));
}
