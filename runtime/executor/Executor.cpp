//===- Executor.cpp - Runs a program on its ranks ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/Executor.h"

#include "Numeric.h"
#include "executor/DescribeProfile.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <set>

namespace whale::runtime {

static double secondsSince(Trace::Clock::time_point begin) {
  return std::chrono::duration<double>(Trace::Clock::now() - begin).count();
}

Executor::Executor(const BoundProgram &bound, char *constants,
                   int64_t threadsPerRank, const Network &network)
    : program(bound), constants(constants), ranks(bound.program.ranks.size()),
      transport(createLocalTransport(bound.program, network)),
      threads(static_cast<int64_t>(ranks.size())) {
  for (Rank &rank : ranks)
    rank.device = createCpuDevice(threadsPerRank);
  threads.run([&](int64_t rank) { ranks[rank].device->attachThread(); });
}

void Executor::fail(const std::string &what) {
  {
    std::lock_guard lock(errorMutex);
    if (!firstError)
      firstError = what;
  }
  transport->abort();
}

Bindings Executor::run(Bindings arguments, Bindings results,
                       const RunOptions &options) {
  assert(!(options.trace && options.interrupted) &&
         "a trace may go before its ranks");
  using Clock = Trace::Clock;
  constexpr std::chrono::milliseconds patience(300);
  std::optional<Clock::time_point> interruption;
  RankThreads::GoOn goOn;
  if (options.interrupted)
    goOn = [&] {
      if (!interruption && options.interrupted()) {
        interruption = Clock::now();
        fail("the run was interrupted");
      }
      return !interruption || Clock::now() - *interruption < patience;
    };
  auto throwIfInterrupted = [&] {
    if (interruption)
      throw Interrupted("the run was interrupted");
  };
  threads.wait(goOn);
  throwIfInterrupted();

  auto begin = Clock::now();
  firstError.reset();
  transport->reset();
  if (options.trace)
    options.trace->beginStep(ranks.size());
  std::stop_callback onStop(options.stop, [&] { fail("the run was stopped"); });
  auto run = std::make_shared<Run>(
      Run{std::move(arguments), std::move(results), options.trace,
          options.profile != nullptr, options.slowdowns});
  threads.run(
      [this, run](int64_t rank) {
        try {
          runRank(rank, *run);
        } catch (const Aborted &) {
        } catch (const std::exception &error) {
          fail("rank " + std::to_string(rank) + ": " + error.what());
        }
      },
      goOn);
  throwIfInterrupted();
  {
    std::lock_guard lock(errorMutex);
    if (firstError)
      throw Error(*firstError);
  }
  std::chrono::duration<double> seconds = Clock::now() - begin;
  if (options.profile)
    addTo(*options.profile, seconds.count());
  if (options.stats) {
    options.stats->stepSeconds = seconds.count();
    options.stats->ranks.clear();
    for (Rank &rank : ranks)
      options.stats->ranks.push_back(std::move(rank.stats));
  }
  return std::move(run->results);
}

std::string Executor::describe(const Profile &profile) {
  threads.wait({});
  // Devices are alike, and what one can do takes a while to measure.
  return describeProfile(profile, program, [&](const Instruction &instruction) {
    return leastSeconds(0, instruction);
  });
}

void Executor::addTo(Profile &profile, double seconds) const {
  ++profile.steps;
  profile.stepSeconds += seconds;
  profile.ranks.resize(ranks.size());
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<Profile::Spent> &total = profile.ranks[rank];
    const std::vector<Profile::Spent> &spent = ranks[rank].spent;
    total.resize(spent.size());
    for (size_t i = 0; i < spent.size(); ++i) {
      total[i].count += spent[i].count;
      total[i].seconds += spent[i].seconds;
      total[i].waitedSeconds += spent[i].waitedSeconds;
    }
  }
}

void Executor::runRank(int64_t rank, const Run &run) {
  Rank &self = ranks[rank];
  self.trace = run.trace;
  if (!run.slowdowns.empty())
    self.slow = SlowRank(run.slowdowns[rank]);
  self.stats = RankStats();
  self.spent.clear();
  if (run.isProfiled)
    self.spent.resize(
        program.instructionCounts[program.program.ranks[rank].rankClass]);
  auto begin = Trace::Clock::now();
  bind(rank, run.arguments, run.results);
  self.slow.begin();
  execute(rank, program.instructions[program.program.ranks[rank].rankClass]);
  self.slow.wait();
  transport->finish(rank);
  std::chrono::duration<double> seconds = Trace::Clock::now() - begin;
  self.stats.computeSeconds = seconds.count() - self.stats.communicationSeconds;
  self.stats.peakBytes = residentBytes(rank, run.arguments, run.results) +
                         self.device->scratchBytes();
  for (const auto &shards : run.arguments)
    if (shards[rank])
      self.stats.argumentBytes += shards[rank]->bytes;
}

void Executor::bind(int64_t rank, const Bindings &arguments,
                    const Bindings &results) {
  Rank &self = ranks[rank];
  const format::RankClass &rankClass = program.classOf(rank);
  if (!self.arena)
    self.arena = Buffer::allocate(rankClass.arenaBytes);
  auto position =
      std::lower_bound(rankClass.ranks.begin(), rankClass.ranks.end(), rank) -
      rankClass.ranks.begin();
  auto shard = [&](const Bindings &bindings, int64_t index) -> void * {
    const auto &buffer = bindings[index][rank];
    return buffer ? buffer->data.get() : nullptr;
  };
  self.memory.clear();
  for (const BufferInfo &buffer : rankClass.buffers) {
    switch (buffer.space) {
    case Space::Arena:
      self.memory.push_back(static_cast<char *>(self.arena->data.get()) +
                            buffer.offset);
      break;
    case Space::Argument:
      self.memory.push_back(shard(arguments, buffer.index));
      break;
    case Space::Result:
      self.memory.push_back(shard(results, buffer.index));
      break;
    case Space::Constant:
      self.memory.push_back(constants + buffer.offset);
      break;
    case Space::RankConstant:
      self.memory.push_back(
          const_cast<uint8_t *>(buffer.values[position].data()));
      break;
    }
  }
}

int64_t Executor::residentBytes(int64_t rank, const Bindings &arguments,
                                const Bindings &results) const {
  const format::RankClass &rankClass = program.classOf(rank);
  std::set<const void *> counted;
  int64_t bytes = rankClass.arenaBytes;
  for (const Bindings *bindings : {&arguments, &results})
    for (const auto &shards : *bindings)
      if (shards[rank] && counted.insert(shards[rank]->data.get()).second)
        bytes += shards[rank]->bytes;
  std::set<std::pair<int64_t, int64_t>> ranges;
  for (const BufferInfo &buffer : rankClass.buffers)
    if (buffer.space == Space::RankConstant ||
        (buffer.space == Space::Constant &&
         ranges.emplace(buffer.offset, buffer.bytes).second))
      bytes += buffer.bytes;
  return bytes;
}

double Executor::leastSeconds(int64_t rank, const Instruction &instruction) {
  if (instruction.flops <= 0 && instruction.bytes <= 0)
    return 0;
  return ranks[rank].device->leastSeconds(instruction.flops, instruction.bytes,
                                          instruction.product);
}

Trace::Cost Executor::costOf(int64_t rank, const Instruction &instruction) {
  Trace::Cost cost;
  cost.detail = instruction.detail;
  cost.flops = instruction.flops;
  cost.bytes = instruction.bytes;
  cost.leastSeconds = leastSeconds(rank, instruction);
  for (int64_t line : *instruction.lines)
    cost.lines.push_back(program.classOf(rank).lines[line]);
  if (const auto *wait = std::get_if<Wait>(&instruction.operation)) {
    const format::Collective &collective =
        *program.program.channels.at(wait->channel);
    const Transfer &transfer = ranks[rank].transfers[wait->transfer];
    cost.exchange = {collective.kind,           transfer.traffic.sent,
                     transfer.traffic.received, transfer.traffic.waitedSeconds,
                     transfer.totalSeconds,     {}};
    for (int64_t peer : collective.participants)
      if (peer != rank)
        cost.exchange->peers.push_back(peer);
  }
  return cost;
}

void Executor::record(int64_t rank, const Instruction &instruction,
                      Trace::Clock::time_point begin,
                      Trace::Clock::time_point end) {
  // A transfer appears by its wait.
  if (std::holds_alternative<Start>(instruction.operation))
    return;
  Rank &self = ranks[rank];
  const auto *wait = std::get_if<Wait>(&instruction.operation);
  if (!self.spent.empty()) {
    Profile::Spent &spent = self.spent[instruction.number];
    ++spent.count;
    spent.seconds += std::chrono::duration<double>(end - begin).count();
    if (wait) {
      const Transfer &transfer = self.transfers[wait->transfer];
      spent.seconds += transfer.startSeconds;
      spent.waitedSeconds += transfer.traffic.waitedSeconds;
    }
  }
  if (self.trace)
    self.trace->add(rank, instruction.label, costOf(rank, instruction),
                    wait ? Queue::Communication : Queue::Compute, begin, end);
}

void Executor::execute(int64_t rank,
                       const std::vector<Instruction> &instructions) {
  bool isTimed = ranks[rank].trace || !ranks[rank].spent.empty();
  for (const Instruction &instruction : instructions) {
    if (transport->aborted())
      throw Aborted();
    // Loops and cases appear by what is in them.
    bool nested = std::holds_alternative<While>(instruction.operation) ||
                  std::holds_alternative<Case>(instruction.operation);
    if (nested) {
      execute(rank, instruction);
      continue;
    }
    Trace::Clock::time_point begin;
    if (isTimed)
      begin = Trace::Clock::now();
    try {
      execute(rank, instruction);
    } catch (const Aborted &) {
      throw;
    } catch (const std::exception &error) {
      throw Error("'" + instruction.label + "': " + error.what());
    }
    if (isTimed)
      record(rank, instruction, begin, Trace::Clock::now());
  }
}

/// The index of a case's branch: the last one stands for all that don't exist.
static size_t branchOf(const void *memory, DType dtype, size_t branches) {
  uint64_t index = dispatch(dtype, [&]<typename T>() -> uint64_t {
    if constexpr (isOpaque<T>) {
      return 0;
    } else {
      using Compute = typename Element<T>::Compute;
      if constexpr (std::is_integral_v<Compute>) {
        T stored;
        std::memcpy(&stored, memory, sizeof(T));
        // A negative index becomes a large one.
        return static_cast<uint64_t>(
            static_cast<int64_t>(Element<T>::load(stored)));
      }
      return 0;
    }
  });
  return static_cast<size_t>(std::min<uint64_t>(index, branches - 1));
}

void Executor::start(int64_t rank, const Start &start) {
  Rank &self = ranks[rank];
  self.slow.wait();
  auto begin = Trace::Clock::now();
  size_t number = static_cast<size_t>(start.transfer);
  self.transfers.resize(std::max(self.transfers.size(), number + 1));
  Transfer &transfer = self.transfers[number];
  transfer.begin = begin;
  transfer.ticket = transport->start(
      rank, start.channel, start.src ? self.memory[*start.src] : nullptr,
      start.dst ? self.memory[*start.dst] : nullptr);
  self.slow.begin();
  transfer.startSeconds = secondsSince(begin);
}

void Executor::wait(int64_t rank, const Wait &wait) {
  Rank &self = ranks[rank];
  Transfer &transfer = self.transfers[wait.transfer];
  self.slow.wait();
  auto begin = Trace::Clock::now();
  transfer.traffic = transport->wait(rank, transfer.ticket);
  double seconds = secondsSince(begin);
  transfer.totalSeconds = secondsSince(transfer.begin);
  self.slow.begin();
  // Taking a part of what the rank holds is no communication.
  const std::string &kind = program.program.channels.at(wait.channel)->kind;
  if (kind == "local_slice")
    return;
  CollectiveStats &stats = self.stats.collectives[kind];
  ++stats.count;
  stats.bytesSent += transfer.traffic.sent;
  stats.bytesReceived += transfer.traffic.received;
  self.stats.communicationSeconds += transfer.startSeconds + seconds;
  self.stats.waitingSeconds += transfer.traffic.waitedSeconds;
}

void Executor::execute(int64_t rank, const Instruction &instruction) {
  Rank &self = ranks[rank];
  const std::vector<void *> &memory = self.memory;
  const format::RankClass &rankClass = program.classOf(rank);
  auto gather = [&](const std::vector<BufferIndex> &buffers, size_t at) {
    self.list.resize(std::max(self.list.size(), at + buffers.size()));
    for (BufferIndex buffer : buffers)
      self.list[at++] = memory[buffer];
  };
  if (auto *launch = std::get_if<KernelLaunch>(&instruction.operation)) {
    gather(launch->buffers, 0);
    self.device->launch(*launch, self.list.data());
    self.stats.kernelFlops += instruction.flops;
  } else if (auto *copy = std::get_if<Copy>(&instruction.operation)) {
    self.device->copy(memory[copy->dst], memory[copy->src],
                      rankClass.buffers[copy->dst].bytes);
  } else if (auto *given =
                 std::get_if<const Matmul *>(&instruction.operation)) {
    const Matmul &matmul = **given;
    self.device->matmul(matmul, memory[matmul.lhs], memory[matmul.rhs],
                        memory[matmul.out]);
    self.stats.productFlops += instruction.flops;
  } else if (auto *given =
                 std::get_if<const Convolution *>(&instruction.operation)) {
    const Convolution &convolution = **given;
    self.device->convolution(convolution, memory[convolution.lhs],
                             memory[convolution.rhs], memory[convolution.out]);
    self.stats.productFlops += instruction.flops;
  } else if (auto *call = std::get_if<Call>(&instruction.operation)) {
    gather(call->inputs, 0);
    gather(call->outputs, call->inputs.size());
    std::span<void *const> all = self.list;
    call->function(all.first(call->inputs.size()),
                   all.subspan(call->inputs.size(), call->outputs.size()));
  } else if (auto *given = std::get_if<Start>(&instruction.operation)) {
    start(rank, *given);
  } else if (auto *given = std::get_if<Wait>(&instruction.operation)) {
    wait(rank, *given);
  } else if (auto *loop = std::get_if<While>(&instruction.operation)) {
    while (true) {
      execute(rank, loop->cond);
      // An empty loop would otherwise never see that another rank failed.
      if (transport->aborted())
        throw Aborted();
      if (!*static_cast<const uint8_t *>(memory[loop->predicate]))
        return;
      execute(rank, loop->body);
    }
  } else if (auto *choice = std::get_if<Case>(&instruction.operation)) {
    size_t branch = branchOf(memory[choice->index], choice->indexType,
                             choice->branches.size());
    execute(rank, choice->branches[branch]);
  }
}

} // namespace whale::runtime
