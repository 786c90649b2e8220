//===- Executor.cpp - Runs a program on its ranks ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a bound program and the shards of its arguments and results. Out: the
// results, with statistics, a trace or a profile where these are asked for. A
// rank puts its instructions on its device's compute queue one after the other.
// A transfer is put on the communication queue, behind what the compute queue
// has by then; its wait makes the compute queue wait. Loops and branches on
// data read a scalar back. A rank that does the same in each run, without
// transfers, is offered to the device to be recorded. The first error stops all
// ranks.
//
// Cost of a step: each rank's thread is woken, where it has one; all buffers of
// the class are bound, and those of a function in each run of it; arguments and
// results are sorted by address. An instruction costs a virtual call and a few
// atomic operations, a transfer also asks for the time; a repeated part is one
// call. A profile or trace marks the queue between instructions.
//
//===----------------------------------------------------------------------===//

#include "executor/Executor.h"

#include "device/cpu/Parallel.h"
#include "executor/ProfilerRange.h"

#include <algorithm>
#include <cassert>

namespace whale::runtime {

static double secondsSince(Trace::Clock::time_point begin) {
  return std::chrono::duration<double>(Trace::Clock::now() - begin).count();
}

/// How often an open loop asks whether to go on.
static constexpr std::chrono::milliseconds kAskInterval(30);

static StepSize findSize(const BoundProgram &program,
                         const RanksOptions &options) {
  bool isAlone = program.program.ranks.size() == 1 && !options.job &&
                 program.program.target == "cpu" && !options.lateSeed;
  if (!isAlone)
    return {};
  StepSize size = findSize(program.boundClassOf(0));
  size.isSerial |= options.threadsPerRank == 1;
  return size;
}

Executor::Executor(std::shared_ptr<Ranks> given, const BoundProgram &bound,
                   std::span<const char> constants)
    : shared(std::move(given)), program(bound), constants(constants),
      size(findSize(bound, shared->options)), connections(bound, *shared),
      states(bound.program.ranks.size()) {
  isTakenOver.resize(bound.program.arguments.size());
  for (const Parameter &result : bound.program.results)
    if (result.alias)
      isTakenOver[*result.alias] = true;
  std::vector<std::unique_ptr<Device>> devices = connections.createDevices();
  for (int64_t rank : shared->map().local) {
    states[rank].device = std::move(devices[rank]);
    states[rank].device->lend([this, rank] { return giveBack(rank); });
  }
}

Executor::~Executor() {
  for (Rank &rank : states)
    if (rank.device)
      rank.device->lend(nullptr);
  if (isBusy())
    shared->threads().wait();
  shared->endLeft(*this);
  for (int64_t rank : shared->map().local)
    giveBackArena(rank);
  if (!shared->isAbandoned())
    return;
  connections.release();
  for (Rank &rank : states)
    rank.device.release();
}

bool Executor::isShort() const {
  constexpr int64_t often = 8;
  return size.isBrief && size.isSerial &&
         shortRuns >= (size.isBounded ? 1 : often);
}

bool Executor::isBusy() {
  try {
    return isInLeftRun() || !shared->isLeftOver(*this);
  } catch (const Error &) {
    return false;
  }
}

Bindings Executor::run(Bindings arguments, Bindings results,
                       const RunOptions &options,
                       std::shared_ptr<Overlap> overlap) {
  assert(!(options.trace && options.interrupted) &&
         "a trace may go before its ranks");
  using Clock = Trace::Clock;
  constexpr std::chrono::milliseconds patience(300);
  std::optional<Clock::time_point> interruption;
  auto ask = [&] {
    if (!interruption && options.interrupted()) {
      interruption = Clock::now();
      shared->fail("the run was interrupted");
    }
    return !interruption || Clock::now() - *interruption < patience;
  };
  auto throwIfInterrupted = [&] {
    if (!interruption)
      return;
    leftRound = shared->threads().round();
    throw Interrupted("the run was interrupted");
  };
  // A run that was left may be any program's.
  if (shared->threads().isBusy())
    shared->threads().wait(options.interrupted ? RankThreads::GoOn(ask)
                                               : nullptr);
  if (interruption)
    throw Interrupted("the run was interrupted");
  RankThreads::GoOn goOn;
  if (options.interrupted && !(size.isBrief && size.isBounded))
    goOn = ask;
  // What another program has left on the devices may use the same memory.
  if (overlap && shared->hasLeft() && !shared->hasLeft(*this))
    overlap->settle();

  auto begin = Clock::now();
  // Ranks that an interruption leaves are busy all the same.
  Ranks::Run turn(*shared, this);
  connections.reset();
  // What other ranks or traces have a part in is not left, nor what may have to
  // be stopped.
  if (states.size() > 1 || options.trace || !options.slowdowns.empty() ||
      options.stop.stop_possible())
    overlap = nullptr;
  bool isBehind = shared->hasLeft(*this) && overlap;
  if (shared->hasLeft())
    shared->setLeft(nullptr);
  if (!isBehind)
    for (int64_t rank : shared->map().local)
      states[rank].device->reset();
  if (options.trace) {
    measurePeaks();
    if (rankNames.empty())
      prepareTrace();
    begin = Clock::now();
    options.trace->beginStep(rankNames);
  }
  std::stop_callback onStop(options.stop,
                            [&] { shared->fail("the run was stopped"); });
  auto step = std::make_shared<Step>(
      Step{std::move(arguments), std::move(results), options.trace,
           options.profile != nullptr, options.profilesOperations,
           options.slowdowns, overlap, isBehind});
  openLoopsAsk = size.isBrief && goOn ? &goOn : nullptr;
  nextAsk = begin + kAskInterval;
  runRanks(step, goOn);
  throwIfInterrupted();
  if (std::exchange(step->isEarly, false)) {
    overlap->settle();
    step->isBehind = false;
    for (int64_t rank : shared->map().local)
      states[rank].device->reset();
    runRanks(step, goOn);
    throwIfInterrupted();
  }
  if (!connections.settle())
    shared->abandon(step);
  shared->throwFirstError();
  std::chrono::duration<double> seconds = Clock::now() - begin;
  constexpr double shortSeconds = 200e-6;
  shortRuns = seconds.count() < shortSeconds ? shortRuns + 1 : 0;
  if (shared->job())
    shared->countStep(seconds.count());
  if (overlap && overlap->isOver)
    shared->setLeft(this, overlap->isOver);
  if (options.profile)
    addTo(*options.profile, seconds.count());
  if (options.stats) {
    options.stats->stepSeconds = seconds.count();
    options.stats->ranks.clear();
    for (Rank &rank : states)
      options.stats->ranks.push_back(std::move(rank.stats));
  }
  return std::move(step->results);
}

/// All of this process, each on its thread. Where `goOn` ends the waiting for
/// them, they end by themselves; a brief step is waited for.
void Executor::runRanks(const std::shared_ptr<Step> &step,
                        const RankThreads::GoOn &goOn) {
  auto run = [this](int64_t rank, Step &step) {
    try {
      runRank(rank, step);
    } catch (const Aborted &) {
    } catch (const TransferError &error) {
      shared->fail("rank " + std::to_string(rank) + ": '" +
                   labelOf(rank, error.channel) + "': " + error.what());
    } catch (const std::exception &error) {
      shared->fail("rank " + std::to_string(rank) + ": " + error.what());
    }
  };
  if (size.isBrief) {
    // The thread is the caller's. What it runs may be a parent of forks, whose
    // children lack the other threads that OpenMP keeps for it: a step that
    // needs none gets none.
    ThreadCount count(size.isSerial ? 1 : shared->options.threadsPerRank);
    shared->runHere([&](int64_t rank) { run(rank, *step); });
    return;
  }
  shared->run([step, run](int64_t rank) { run(rank, *step); }, goOn);
}

/// The same for what belongs to no step; `job` does not throw.
void Executor::runRanks(const std::function<void(int64_t rank)> &job) {
  if (size.isBrief) {
    ThreadCount count(shared->options.threadsPerRank);
    shared->runHere(job);
    return;
  }
  shared->run(job);
}

/// To the thread that runs the rank, where it takes others.
void Executor::attach(int64_t rank) {
  if (!(size.isBrief && size.isSerial))
    shared->attach(rank, *states[rank].device);
}

void Executor::runRank(int64_t rank, Step &step) {
  attach(rank);
  Rank &self = states[rank];
  self.trace = step.trace;
  if (!step.slowdowns.empty())
    self.slow = SlowRank(step.slowdowns[rank]);
  self.stats = RankStats();
  self.timed.clear();
  self.costs.clear();
  self.device->clearMarks();
  self.spent.clear();
  if (step.isProfiled) {
    self.spent.resize(program.boundClassOf(rank).instructionCount);
    self.timedRuns.assign(self.spent.size(), 0);
  }
  auto begin = Trace::Clock::now();
  try {
    bind(rank, step.arguments, step.results);
  } catch (const Error &) {
    // Memory may be short until the run before is over.
    if (step.isBehind) {
      step.isEarly = true;
      return;
    }
    // Another program of these ranks may have left more than this one needs.
    self.device->reset();
    self.device->giveBack();
    shared->dropMemory(rank);
    bind(rank, step.arguments, step.results);
  }
  self.slow.begin();
  self.run = nullptr;
  self.isRecorded = false;
  // A profiler wants to see operations, of which a recorded run has no ranges.
  execute(rank, !step.trace && !step.profilesOperations &&
                    step.slowdowns.empty() && !ProfilerRange::isOn());
  self.slow.wait();
  if (step.overlap && self.isStraight)
    step.overlap->isOver = leave(rank);
  else
    self.device->finish();
  recordTimes(rank);
  scaleTimes(rank);
  connections.finish(rank);
  shared->rank(rank).current = nullptr;
  std::chrono::duration<double> seconds = Trace::Clock::now() - begin;
  self.stats.computeSeconds = seconds.count() - self.stats.communicationSeconds;
  self.stats.peakBytes = self.fixedBytes + self.device->scratchBytes() +
                         residentBytes(rank, step, /*inHost=*/false);
  self.stats.hostBytes = residentBytes(rank, step, /*inHost=*/true);
  self.stats.movedTransfers = self.device->movedTransfers();
  for (const auto &shards : step.arguments)
    if (shards[rank])
      self.stats.argumentBytes += shards[rank]->bytes;
}

std::function<bool()> Executor::leave(int64_t rank) {
  std::function<bool()> isOver = states[rank].device->leave();
  if (!isOver)
    return nullptr;
  return [rank, isOver = std::move(isOver)] {
    try {
      return isOver();
    } catch (const Error &error) {
      throw Error("rank " + std::to_string(rank) + ": " + error.what());
    }
  };
}

void Executor::bind(int64_t rank, const Bindings &arguments,
                    const Bindings &results) {
  Rank &self = states[rank];
  bindFixed(rank);
  const std::vector<BufferInfo> &buffers = program.classOf(rank).buffers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const BufferInfo &buffer = buffers[i];
    if (buffer.space == Space::Argument)
      self.regions[i] = {arguments[buffer.index][rank].get(), buffer.offset,
                         /*isRead=*/true,
                         /*isWritten=*/isTakenOver[buffer.index],
                         /*isOfArray=*/true};
    else if (buffer.space == Space::Result)
      self.regions[i] = {results[buffer.index][rank].get(), buffer.offset,
                         /*isRead=*/false, /*isWritten=*/true,
                         /*isOfArray=*/true};
  }
  self.device->bind(self.buffers, self.regions);
}

/// Finds a function's buffers among those of the class.
void Executor::bind(int64_t rank, const Run &run) {
  Rank &self = states[rank];
  const std::vector<BufferInfo> &buffers = run.function->format->buffers;
  const BufferIndex firstLocal = run.function->firstLocal[run.given->layout];
  self.indices.clear();
  for (size_t i = 0; i < buffers.size(); ++i) {
    const BufferInfo &buffer = buffers[i];
    if (buffer.space == Space::Operand)
      self.indices.push_back(run.given->operands[buffer.index]);
    else if (buffer.space == Space::Result)
      self.indices.push_back(run.given->results[buffer.index]);
    else if (buffer.space == Space::Local)
      self.indices.push_back(firstLocal + buffer.index);
    else
      self.indices.push_back(run.function->indices[i]);
  }
  self.device->select(self.functionBuffers, self.buffers, self.indices);
}

void Executor::execute(int64_t rank, bool isAlike) {
  Rank &self = states[rank];
  std::span<const Instruction> all = program.boundClassOf(rank).instructions;
  if (!isAlike)
    return execute(rank, all, self.buffers);
  size_t done = 0;
  for (size_t i = 0; i < self.stretches.size(); ++i) {
    Rank::Stretch &stretch = self.stretches[i];
    execute(rank, all.subspan(done, stretch.begin - done), self.buffers);
    done = stretch.end;
    double &kernels = self.stats.kernelFlops,
           &products = self.stats.productFlops;
    if (self.device->repeat(self.buffers, i)) {
      kernels += stretch.kernelFlops;
      products += stretch.productFlops;
      continue;
    }
    stretch.kernelFlops = -kernels;
    stretch.productFlops = -products;
    self.isRecorded = self.device->beginRecording(self.buffers, i);
    execute(rank, all.subspan(stretch.begin, done - stretch.begin),
            self.buffers);
    self.isRecorded = false;
    self.device->endRecording();
    stretch.kernelFlops += kernels;
    stretch.productFlops += products;
  }
  execute(rank, all.subspan(done), self.buffers);
}

void Executor::execute(int64_t rank, std::span<const Instruction> instructions,
                       const BufferTable &table) {
  Rank &self = states[rank];
  Ranks::Rank &ofRank = shared->rank(rank);
  bool isTimed = !self.isRecorded && (self.trace || !self.spent.empty());
  Device &device = *self.device;
  bool hasProfiler = ProfilerRange::isOn();
  // Behind the instruction before.
  std::optional<size_t> lastMark;
  for (const Instruction &instruction : instructions) {
    if (connections.aborted())
      throw Aborted();
    // Loops, cases and runs appear by what is in them.
    bool nested = std::holds_alternative<While>(instruction.operation) ||
                  std::holds_alternative<Case>(instruction.operation) ||
                  std::holds_alternative<Run>(instruction.operation);
    if (nested) {
      execute(rank, instruction, table);
      lastMark.reset();
      continue;
    }
    ofRank.current.store(&instruction, std::memory_order_relaxed);
    std::optional<ProfilerRange> range;
    if (hasProfiler)
      range.emplace(instruction);
    // A transfer appears by its wait.
    bool isMarked = isTimed &&
                    !std::holds_alternative<Start>(instruction.operation) &&
                    countRun(rank, instruction);
    size_t begin = !isMarked  ? 0
                   : lastMark ? *lastMark
                              : device.mark(Queue::Compute);
    lastMark.reset();
    try {
      execute(rank, instruction, table);
    } catch (const Aborted &) {
      throw;
    } catch (const TransferError &) {
      throw; // perhaps of an earlier instruction
    } catch (const std::exception &error) {
      std::string scope = scopeOf(rank);
      throw Error("'" + instruction.label + "'" +
                  (scope.empty() ? "" : " in '" + scope + "'") + ": " +
                  error.what());
    }
    // Nobody else writes it.
    ofRank.executed.store(ofRank.executed.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
    if (!isMarked)
      continue;
    size_t end = device.mark(Queue::Compute);
    note(rank, instruction, begin, end);
    if (!self.timed.empty())
      lastMark = end;
  }
}

void Executor::start(int64_t rank, const Start &start) {
  Rank &self = states[rank];
  self.slow.wait();
  auto begin = Trace::Clock::now();
  size_t number = static_cast<size_t>(start.transfer);
  self.transfers.resize(std::max(self.transfers.size(), number + 1));
  Transfer &transfer = self.transfers[number];
  transfer.begin = begin;
  Device &device = *self.device;
  bool isCopy = program.program.channels.at(start.channel)->isHostCopy();
  Queue queue = isCopy ? Queue::Copy : Queue::Communication;
  device.wait(queue, device.record(Queue::Compute));
  if (isCopy)
    device.startCopy(
        queue, start,
        program.classOf(rank).buffers[*start.parts.front().dst].bytes,
        self.buffers);
  else
    device.start(queue, start, self.buffers);
  self.slow.begin();
  transfer.startSeconds = secondsSince(begin);
}

void Executor::wait(int64_t rank, const Wait &wait) {
  Rank &self = states[rank];
  Transfer &transfer = self.transfers[wait.transfer];
  self.slow.wait();
  auto begin = Trace::Clock::now();
  transfer.traffic = self.device->waitFor(Queue::Compute, wait.transfer);
  double seconds = secondsSince(begin);
  transfer.totalSeconds = secondsSince(transfer.begin);
  self.slow.begin();
  // Taking a part of what the rank holds is no communication.
  const Collective &collective = *program.program.channels.at(wait.channel);
  if (collective.isLocalSlice())
    return;
  CollectiveStats &stats = self.stats.collectives[collective.kind];
  ++stats.count;
  stats.bytesSent += transfer.traffic.sent;
  stats.bytesReceived += transfer.traffic.received;
  self.stats.communicationSeconds += transfer.startSeconds + seconds;
  self.stats.waitingSeconds += transfer.traffic.waitedSeconds;
}

/// Of a step that runs on the thread that waits for it: whether it is to go on
/// nobody asks but its loops, which end as those of others do.
void Executor::askInOpenLoop() {
  if (!openLoopsAsk)
    return;
  auto now = Trace::Clock::now();
  if (now < nextAsk)
    return;
  nextAsk = now + kAskInterval;
  (*openLoopsAsk)();
}

void Executor::executeFunction(int64_t rank, const Instruction &instruction) {
  Rank &self = states[rank];
  const auto &run = std::get<Run>(instruction.operation);
  bind(rank, run);
  self.run = &instruction;
  execute(rank, run.function->instructions, self.functionBuffers);
  self.run = nullptr;
}

void Executor::execute(int64_t rank, const Instruction &instruction,
                       const BufferTable &table) {
  Rank &self = states[rank];
  Device &device = *self.device;
  constexpr Queue queue = Queue::Compute;
  if (auto *launch = std::get_if<KernelLaunch>(&instruction.operation)) {
    device.launch(queue, *launch, table);
    self.stats.kernelFlops += instruction.flops;
  } else if (auto *copy = std::get_if<Copy>(&instruction.operation)) {
    device.copy(queue, *copy, table);
  } else if (auto *given =
                 std::get_if<const Matmul *>(&instruction.operation)) {
    device.matmul(queue, **given, table);
    self.stats.productFlops += instruction.flops;
  } else if (auto *given =
                 std::get_if<const Convolution *>(&instruction.operation)) {
    device.convolution(queue, **given, table);
    self.stats.productFlops += instruction.flops;
  } else if (auto *call = std::get_if<Call>(&instruction.operation)) {
    device.call(queue, *call, table);
  } else if (auto *given = std::get_if<Start>(&instruction.operation)) {
    start(rank, *given);
  } else if (auto *given = std::get_if<Wait>(&instruction.operation)) {
    wait(rank, *given);
  } else if (std::holds_alternative<Run>(instruction.operation)) {
    executeFunction(rank, instruction);
  } else if (auto *loop = std::get_if<While>(&instruction.operation)) {
    for (int64_t trip = 0; !loop->trips || trip < *loop->trips; ++trip) {
      if (!loop->trips)
        execute(rank, loop->cond, table);
      if (!loop->trips)
        askInOpenLoop();
      // An empty loop would otherwise never see that another rank failed.
      if (connections.aborted())
        throw Aborted();
      if (!loop->trips &&
          !device.readInteger(queue, table, loop->predicate, DType::I1))
        return;
      execute(rank, loop->body, table);
    }
  } else if (auto *choice = std::get_if<Case>(&instruction.operation)) {
    // The last branch stands for all that don't exist; a negative index becomes
    // a large one.
    auto index = static_cast<uint64_t>(
        device.readInteger(queue, table, choice->index, choice->indexType));
    size_t last = choice->branches.size() - 1;
    execute(rank, choice->branches[std::min<uint64_t>(index, last)], table);
  }
}

} // namespace whale::runtime
