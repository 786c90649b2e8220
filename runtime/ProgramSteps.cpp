//===- ProgramSteps.cpp - Steps of a program ------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: arrays for the arguments of a step. Out: arrays for its results, at once;
// they are filled later. A step waits until the queue takes one more, shares
// its arguments' contents, and is pushed. The queue's thread then brings
// arguments into the layouts of the program, provides memory for results (for
// some, that of the argument that they replace), and runs the executor. An
// error goes to the step, and through the job to the other processes.
//
// Cost of a step, besides the executor's: for each argument and each result a
// few small allocations and locks, and a pointer for each rank; memory for
// results that replace no argument. Elements are copied only where a layout
// differs, somebody else has a replaced argument, or an argument is the
// caller's memory and the step does not end before it returns, or replaces it.
//
//===----------------------------------------------------------------------===//

#include "ProgramState.h"
#include "whale/Cluster/ClusterRanges.h"

#include <algorithm>

namespace whale::runtime {

using Clock = std::chrono::steady_clock;

static void checkSlowdowns(std::span<const double> slowdowns, size_t ranks) {
  if (!slowdowns.empty() && slowdowns.size() != ranks)
    throw Error("there are " + std::to_string(slowdowns.size()) +
                " slowdowns for " + std::to_string(ranks) + " ranks");
  for (double slowdown : slowdowns)
    if (!kSlowdownRange.contains(slowdown))
      throw Error("a slowdown of " + std::to_string(slowdown) +
                  " is no number from 1 to 1000000");
}

/// Memory for a result in place of an argument: the argument's own if it may be
/// written to and nobody else uses it, which the step before may do.
static std::shared_ptr<Buffer> takeOver(std::shared_ptr<Buffer> &buffer,
                                        StepQueue &queue) {
  if (buffer && !buffer->writable)
    buffer = buffer->copy();
  if (buffer && buffer.use_count() > 1) {
    queue.settle();
    if (buffer.use_count() > 1)
      buffer = buffer->copy();
  }
  // Who held it before has read it before.
  std::atomic_thread_fence(std::memory_order_acquire);
  return buffer;
}

/// A step on its way through the queue.
struct Program::Work {
  std::shared_ptr<State> state;
  Engine &engine;
  StepOptions options;
  Trace *trace;
  std::shared_ptr<Step> step;
  std::shared_ptr<StepCosts> costs;
  /// The caller's arrays may be donated meanwhile.
  std::vector<ArrayContents> arguments, results;

  /// Where the caller runs it, what he asks, and whether he was told to stop.
  AskInterrupted callers = nullptr;
  bool isInterrupted = false;

  /// Null on processors, which are left nothing.
  std::shared_ptr<Overlap> overlap;
  /// The one before if it takes its results, and was left.
  std::shared_ptr<Step> before;
  /// What it does not write to, and nobody may until it has ended.
  Bindings reads;
  Clock::time_point begin = {};

  /// Whether the step has ended; else it is left, and `tryEnd` ends it.
  bool run();
  bool tryEnd();

private:
  template <typename Action>
  bool tryOr(Action action);
  void moveArguments(std::span<const size_t> numbers);
  Bindings compute();
  void end();
  void release();
};

/// False without an error and where the action says so; an error ends the step.
template <typename Action>
bool Program::Work::tryOr(Action action) {
  try {
    return action();
  } catch (const Interrupted &) {
    release();
    step->failInterrupted();
  } catch (const std::exception &error) {
    std::string what = engine.ranks().failJob(error.what());
    release();
    step->fail(what);
  }
  return true;
}

bool Program::Work::run() {
  begin = Clock::now();
  return tryOr([&] {
    Bindings outputs = compute();
    for (size_t i = 0; i < outputs.size(); ++i)
      results[i].fill(std::move(outputs[i]));
    // The next step may write to them.
    results.clear();
    if (overlap && overlap->isOver)
      return false;
    engine.ranks().queue().settle();
    end();
    return true;
  });
}

bool Program::Work::tryEnd() {
  return tryOr([&] {
    if (step->isUnwanted())
      throw Interrupted("the run was interrupted");
    if (!overlap->isOver())
      return false;
    // It began when the one before had ended.
    Clock::time_point now = Clock::now();
    std::chrono::duration<double> length =
        now - std::max(begin, std::exchange(engine.ranks().lastEnd, now));
    costs->stats.stepSeconds = length.count();
    costs->stats.ranks.front().computeSeconds = length.count();
    if (options.isProfiled)
      costs->profile.stepSeconds = length.count();
    end();
    return true;
  });
}

/// Ends a step that has done well, if those did whose results it takes.
void Program::Work::end() {
  if (before)
    before->check();
  bool isWanted = step->claim();
  release();
  if (isWanted)
    step->publish();
}

/// Who waits for the step finds nothing in use: a next step may write to the
/// results, and a program that the caller drops goes in his thread.
void Program::Work::release() {
  arguments.clear();
  results.clear();
  overlap.reset();
  before.reset();
  reads.clear();
  state.reset();
}

/// Lays out arguments, by their numbers, as the program wants them.
void Program::Work::moveArguments(std::span<const size_t> numbers) {
  std::vector<ArrayContents> given;
  std::vector<std::shared_ptr<const ArrayType>> types;
  std::vector<std::optional<Ranks::ExchangeWay>> ways;
  for (size_t i : numbers) {
    given.push_back(std::exchange(arguments[i], {}));
    types.push_back(state->argumentTypes[i]);
    ways.push_back(engine.wayOf(given.back().array(), Wanted::ByRanks));
  }
  std::vector<Array> arrays = engine.relayout(std::move(given), types, ways);
  for (size_t i = 0; i < numbers.size(); ++i)
    arguments[numbers[i]] = arrays[i].contents();
}

Bindings Program::Work::compute() {
  if (step->isUnwanted())
    throw Interrupted("the run was interrupted");
  StepQueue &queue = engine.ranks().queue();
  const format::Program &program = state->bound->program;
  AskInterrupted isUnwanted = [this] {
    isInterrupted |= callers && callers();
    return isInterrupted || step->isUnwanted();
  };
  std::shared_ptr<const RankMap> ranks = engine.arrayRanks();
  Bindings inputs, outputs;
  std::vector<size_t> elsewhere;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::shared_ptr<const Layout> &layout = program.arguments[i].layout;
    ArrayContents &contents = arguments[i];
    std::shared_ptr<Step> left = queue.left();
    if (left && contents.step() == left &&
        contents.isLaidOutAs(layout, ranks)) {
      before = left;
      left->check();
    } else {
      if (contents.step() && !contents.step()->hasEnded())
        queue.settle(); // it may take results of the one that is left
      contents.wait(isUnwanted);
    }
    if (!contents.isLaidOutAs(layout, ranks))
      elsewhere.push_back(i);
  }
  if (!elsewhere.empty())
    moveArguments(elsewhere);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::shared_ptr<const Layout> &layout = program.arguments[i].layout;
    ArrayContents contents = std::move(arguments[i]);
    inputs.push_back(contents.release());
    if (std::optional<int64_t> rank =
            engine.firstMissing(*layout, inputs.back()))
      throw Error(runtime::describe(program.arguments[i]) +
                  ": this process has nothing of it for rank " +
                  std::to_string(*rank));
  }

  std::lock_guard lock(engine.ranks().mutex);
  for (const Parameter &result : program.results) {
    auto &shards = outputs.emplace_back();
    shards.reserve(program.ranks.size());
    for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
      const std::optional<Box> &box = result.layout->boxes[rank];
      if (!box || !engine.ranks().map().isLocal(rank))
        shards.emplace_back();
      else if (result.alias)
        shards.push_back(takeOver(inputs[*result.alias][rank], queue));
      else
        shards.push_back(
            Buffer::allocate(box->elements() * byteSize(result.dtype)));
    }
  }
  RunOptions runOptions{options};
  runOptions.stats = &costs->stats;
  runOptions.profile = options.isProfiled ? &costs->profile : nullptr;
  runOptions.trace = trace;
  // The trace may be destroyed while ranks that were given up still run.
  runOptions.interrupted = trace ? nullptr : isUnwanted;
  if (program.target == "cuda") {
    std::vector<bool> isTakenOver(inputs.size());
    for (const Parameter &result : program.results)
      if (result.alias)
        isTakenOver[*result.alias] = true;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!isTakenOver[i])
        reads.push_back(inputs[i]);
    overlap = std::make_shared<Overlap>();
    overlap->settle = [&queue] { queue.settle(); };
  }
  return engine.executor.run(std::move(inputs), std::move(outputs), runOptions,
                             overlap);
}

Submission Program::submit(std::span<const Array> arguments,
                           const StepOptions &options) const {
  return submit(arguments, options, nullptr);
}

Submission Program::submit(std::span<const Array> arguments,
                           const StepOptions &options, Trace *trace) const {
  const format::Program &program = state->bound->program;
  checkArguments(program.arguments, arguments);
  checkSlowdowns(options.slowdowns, rankCount());
  Engine &engine = state->getEngine();
  // A short step with all its arguments is run before another thread is awake.
  std::optional<StepQueue::Turn> turn;
  if (engine.runsHere(options, trace) &&
      std::ranges::all_of(arguments, &Array::isReady))
    turn = engine.ranks().queue().tryTurn();
  std::optional<StepQueue::Place> place;
  if (!turn)
    place = engine.ranks().queue().reserve(options.interrupted);

  auto costs = std::make_shared<StepCosts>();
  auto work =
      std::make_shared<Work>(state, engine, options, trace, nullptr, costs);
  // It is the caller's.
  work->options.interrupted = nullptr;
  if (turn)
    work->callers = options.interrupted;
  std::vector<std::shared_ptr<Step>> before;
  std::vector<Array> donated;
  work->arguments.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter &parameter = program.arguments[i];
    work->arguments.push_back(
        arguments[i].share(parameter.layout, engine.arrayRanks(),
                           /*readsNow=*/turn.has_value()));
    // Most arrays come of one step.
    if (const std::shared_ptr<Step> &step = work->arguments.back().step();
        before.empty() || before.back() != step)
      before.push_back(step);
    if (options.donate && parameter.donated)
      donated.push_back(arguments[i]);
  }
  auto donate = [donated = std::move(donated)](const char *fate) {
    for (const Array &array : donated)
      array.donate(fate);
  };
  donate("donated to a program");

  Submission submission;
  submission.step = work->step = Step::create(before, donate);
  submission.costs = costs;
  submission.results.reserve(program.results.size());
  work->results.reserve(program.results.size());
  for (const std::shared_ptr<const ArrayType> &type : state->resultTypes) {
    submission.results.push_back(Array::ofStep(type, work->step));
    work->results.push_back(submission.results.back().contents());
  }
  if (turn) {
    work->run();
    work->step->leave();
    if (work->isInterrupted)
      throw Interrupted("the run was interrupted");
    return submission;
  }
  engine.ranks().queue().push(std::move(*place), work->step,
                              [work]() -> StepQueue::TryEnd {
                                if (work->run())
                                  return nullptr;
                                return [work] { return work->tryEnd(); };
                              });
  return submission;
}

std::vector<Array> Program::run(std::span<const Array> arguments,
                                const RunOptions &options) const {
  StepOptions stepOptions = options;
  stepOptions.isProfiled |= options.profile != nullptr;
  stepOptions.profilesOperations |= options.profile != nullptr;
  Submission submission = submit(arguments, stepOptions, options.trace);
  submission.step->wait(options.interrupted);
  if (options.stats)
    *options.stats = submission.costs->stats;
  if (options.profile)
    options.profile->add(submission.costs->profile);
  return std::move(submission.results);
}

} // namespace whale::runtime
