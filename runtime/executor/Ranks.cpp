//===- Ranks.cpp - What programs share ------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: what ranks are for. Out: those that other programs of the process have,
// or new ones: hosts are found, the transport between all ranks is made (by
// default `local` in one process, UCX between several), and memory that the
// processes of a host read; GPUs are taken, by their kinds (AssignGpus.h).
// Processes find the same: each says which of its ranks fit, by a number that
// counts those that were made together.
//
// Cost: once for each kind of ranks, linear in these. Between processes a few
// exchanges of texts, each of all with all, in which every process waits for
// the last; then what the transport takes to connect. A turn costs two changes
// of threads.
//
//===----------------------------------------------------------------------===//

#include "executor/Ranks.h"

#include "HostId.h"
#include "executor/Executor.h"
#include "transport/message/MessageTransport.h"
#include "whale/System/Processors.h"

#include <algorithm>
#include <cassert>
#include <sstream>

namespace whale::runtime {

//===----------------------------------------------------------------------===//
// What ranks are made for
//===----------------------------------------------------------------------===//

/// What the GPU of a rank has to be: what its class was compiled for, and of
/// its kind.
static WantedGpu findWanted(const format::Program &program, int64_t rank) {
  WantedGpu wanted;
  wanted.rank = rank;
  const std::string &arch = program.classes[program.ranks[rank].rankClass].arch;
  if (!arch.empty())
    wanted.capability = format::capabilityOf(arch);
  auto kind = program.gpuKinds.find(program.ranks[rank].kind);
  if (kind == program.gpuKinds.end())
    return wanted;
  wanted.kind = kind->first;
  wanted.memoryBytes = kind->second.memoryBytes;
  wanted.isExact = !kind->second.arch.empty();
  if (wanted.isExact)
    wanted.capability = format::capabilityOf(kind->second.arch);
  return wanted;
}

std::shared_ptr<const RankMap> rankMapOf(const LoadOptions &load,
                                         size_t ranks) {
  if (load.ranks)
    return load.ranks;
  const std::shared_ptr<Job> &job = load.job;
  return std::make_shared<RankMap>(RankMap::inRuns(
      ranks, job ? job->processes() : 1, job ? job->process() : 0));
}

RanksOptions::RanksOptions(const BoundProgram &bound, const LoadOptions &load)
    : map(rankMapOf(load, bound.program.ranks.size())), job(load.job),
      threadsPerRank(load.threadsPerRank), transport(load.transport),
      network(load.network), lateSeed(load.lateSeed),
      testLibraries(bound.testLibraries) {
  const format::Program &program = bound.program;
  if (job && job->processes() == 1)
    job = nullptr;
  if (program.target != "cuda") {
    if (transport == TransportKind::Nccl)
      throw Error("the transport 'nccl' is for programs for 'cuda', this one "
                  "is for '" +
                  program.target + "'");
    return;
  }
  gpus.resize(program.ranks.size());
  for (size_t i = 0; i < gpus.size(); ++i)
    if (auto rank = static_cast<int64_t>(i);
        !bound.classOf(rank).isForProcessor)
      gpus[i] = findWanted(program, rank);
}

bool RanksOptions::canShare(const RanksOptions &other) const {
  return *map == *other.map && job == other.job &&
         threadsPerRank == other.threadsPerRank &&
         transport == other.transport && !network && !other.network &&
         !lateSeed && !other.lateSeed && gpus == other.gpus &&
         testLibraries == other.testLibraries;
}

//===----------------------------------------------------------------------===//
// Making and finding them
//===----------------------------------------------------------------------===//

Exchange Ranks::exchangeOf(const char *what) const {
  return [job = options.job, what](const std::string &mine) {
    return job ? job->allGather(what, mine) : std::vector<std::string>{mine};
  };
}

/// Hosts are numbered in the order of the processes.
static Topology findHosts(const RankMap &map, const Exchange &exchange) {
  std::map<std::string, unsigned> numbers;
  std::vector<unsigned> hosts;
  for (const std::string &host : exchange(hostId()))
    hosts.push_back(
        numbers.try_emplace(host, static_cast<unsigned>(numbers.size()))
            .first->second);
  Topology topology;
  for (int64_t process : map.processOf)
    topology.node.push_back(hosts[process]);
  return topology;
}

static std::unique_ptr<Transport> createTransport(const RanksOptions &options,
                                                  const Exchange &exchange) {
  TransportKind kind = options.transport.value_or(TransportKind::Nccl);
  if (kind == TransportKind::Nccl)
    kind = options.job ? TransportKind::Ucx : TransportKind::Local;
  // Late devices measure nothing.
  Network network = options.lateSeed ? Network() : options.network;
  if (kind == TransportKind::Local) {
    if (options.job)
      throw Error("the transport 'local' is for ranks of one process");
    return createLocalTransport(options.map->processOf.size(), network);
  }
  std::unique_ptr<Mover> mover;
  try {
    mover = kind == TransportKind::Ucx ? createUcxMover(exchange)
                                       : createMpiMover(exchange);
  } catch (const Error &error) {
    // Where NCCL must carry all, nothing of a step goes this way.
    if (options.transport != TransportKind::Nccl)
      throw;
    mover = createNoMover(error.what());
  }
  return createMessageTransport(*options.map, std::move(mover), network);
}

static uint64_t nextNumber() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

/// Those in whose steps the thread is in a function of Python.
static thread_local std::vector<const Ranks *> callingRanks;

Ranks::Ranks(RanksOptions given)
    : options(std::move(given)),
      hostOfRank(findHosts(map(), exchangeOf("hosts"))),
      hostTransport(
          createTransport(options, exchangeOf("addresses of the transport"))),
      ranks(map().processOf.size()), hostMemory(createHostMemory()),
      rankThreads(static_cast<int64_t>(map().local.size()),
                  job() && map().local.size() == 1
                      ? RankThreads::Where::Caller
                      : RankThreads::Where::OwnThreads),
      steps(std::make_unique<StepQueue>()), outer(callingRanks) {
  // First: others may fail while this process waits for them.
  if (job())
    failureListener =
        job()->onFailure([this](const std::string &what) { stop(what); });
  findGpus();
  // On an emulated network all that goes between processes takes its time.
  if (job() && !options.network)
    sharedMemory = std::make_unique<SharedMemory>(
        ExchangePlaces::readBytes, exchangeOf("memory of the processes"));
  for (int64_t rank : map().local) {
    ranks[rank].number = nextNumber();
    ranks[rank].context = createCpuContext(options.threadsPerRank);
  }
  if (job())
    progressReporter = job()->reportProgress([this] { return progress(); });
}

Ranks::~Ranks() {
  progressReporter.reset();
  failureListener.reset();
  if (!wasAbandoned)
    return;
  hostTransport.release();
  sharedMemory.release();
  gpuTransport.release();
  for (const Rank &rank : ranks)
    new std::shared_ptr<Buffer>(rank.arena);
}

void Ranks::findGpus() {
  if (options.gpus.empty())
    return;
  static const cuda::Libraries none;
  const cuda::Libraries *libraries = &none;
  gpuOfRank.resize(options.gpus.size());
  if (std::ranges::any_of(map().local, [&](size_t rank) {
        return options.gpus[rank].has_value();
      })) {
    libraries =
        options.testLibraries ? options.testLibraries : &cuda::openLibraries();
    std::vector<cuda::GpuFacts> found = cuda::findGpus(*libraries);
    if (found.empty())
      throw Error("the driver finds no GPU");
    // Processes of one host see the same GPUs, and agree about them.
    std::vector<WantedGpu> wanted;
    for (size_t rank = 0; rank < options.gpus.size(); ++rank)
      if (options.gpus[rank] &&
          hostOfRank.node[rank] == hostOfRank.node[map().local.front()]) {
        wanted.push_back(*options.gpus[rank]);
        wanted.back().isHere = map().isLocal(rank);
      }
    std::vector<int> numbers = assignGpus(wanted, found);
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i].isHere)
        gpuOfRank[wanted[i].rank] =
            std::make_shared<cuda::Gpu>(*libraries, numbers[i]);
  }
  if (options.transport.value_or(TransportKind::Nccl) == TransportKind::Nccl)
    gpuTransport =
        createNcclTransport(*libraries, gpuOfRank, exchangeOf("GPUs"));
  if (gpuTransport && gpuTransport->carriesMessages())
    for (const std::shared_ptr<cuda::Gpu> &gpu : gpuOfRank)
      gpuMemories.push_back(gpu ? createGpuMemory(gpu) : nullptr);
}

/// The ranks that may be shared, of one process: a fork has none of its
/// parent's threads.
struct Ranks::Registry {
  struct Entry {
    std::weak_ptr<Ranks> ranks;
    /// Counts those that the processes of a job made together.
    int64_t number;
  };
  const pid_t process = system::processId();
  std::mutex mutex;
  std::vector<Entry> entries;
  int64_t lastOfJob = 0;

  /// By number, those that fit.
  std::map<int64_t, std::shared_ptr<Ranks>> find(const RanksOptions &wanted) {
    std::erase_if(entries,
                  [](const Entry &each) { return each.ranks.expired(); });
    std::map<int64_t, std::shared_ptr<Ranks>> fitting;
    for (const Entry &each : entries)
      if (std::shared_ptr<Ranks> found = each.ranks.lock();
          found && !found->wasAbandoned && !found->isHeldUp() &&
          found->options.canShare(wanted))
        fitting[each.number] = std::move(found);
    return fitting;
  }
};

/// Never freed: programs may go when the process ends.
Ranks::Registry &Ranks::registry() {
  static std::atomic<Registry *> last = nullptr;
  Registry *known = last;
  if (known && known->process == system::processId())
    return *known;
  auto fresh = std::make_unique<Registry>();
  if (last.compare_exchange_strong(known, fresh.get()))
    return *fresh.release();
  return *known; // Another thread was faster.
}

/// The last of these that all processes have, which may drop programs at
/// different times; 0 where there are none.
static int64_t findCommon(const std::map<int64_t, std::shared_ptr<Ranks>> &mine,
                          Job &job) {
  std::string text;
  for (const auto &[number, ranks] : mine)
    text += std::to_string(number) + ' ';
  std::map<int64_t, int64_t> counts;
  for (const std::string &all : job.allGather("ranks", text)) {
    std::istringstream numbers(all);
    for (int64_t number; numbers >> number;)
      ++counts[number];
  }
  std::erase_if(
      counts, [&](const auto &each) { return each.second < job.processes(); });
  return counts.empty() ? 0 : counts.rbegin()->first;
}

std::shared_ptr<Ranks> Ranks::share(const RanksOptions &options) {
  Registry &known = registry();
  std::unique_lock lock(known.mutex);
  std::map<int64_t, std::shared_ptr<Ranks>> fitting = known.find(options);
  std::shared_ptr<Ranks> made;
  int64_t number = 0;
  if (options.job) {
    // Nobody waits for other processes with the lock.
    lock.unlock();
    if (int64_t common = findCommon(fitting, *options.job))
      return fitting.at(common);
    made = std::make_shared<Ranks>(options);
    lock.lock();
    number = ++known.lastOfJob;
  } else {
    if (!fitting.empty())
      return fitting.begin()->second;
    made = std::make_shared<Ranks>(options);
  }
  known.entries.push_back({made, number});
  return made;
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

void Ranks::inTurn(std::function<void(const AskInterrupted &)> action,
                   std::vector<std::shared_ptr<Step>> before,
                   const AskInterrupted &interrupted) {
  StepQueue::Place place = steps->reserve(interrupted);
  std::shared_ptr<Step> step = Step::create(before, [](const char *) {});
  steps->push(std::move(place), step, [this, action = std::move(action), step] {
    steps->settle();
    try {
      std::lock_guard lock(mutex);
      action([step] { return step->isUnwanted(); });
      if (step->claim())
        step->publish();
    } catch (const Interrupted &) {
      step->failInterrupted();
    } catch (const std::exception &error) {
      step->fail(failJob(error.what()));
    }
    return StepQueue::TryEnd();
  });
  step->wait(interrupted);
}

Ranks::Run::Run(Ranks &ranks, Executor *executor) : ranks(ranks) {
  {
    std::lock_guard lock(ranks.errorMutex);
    // A job that has failed does not go on.
    if (ranks.job() && ranks.firstError)
      throw Error(*ranks.firstError);
    ranks.firstError.reset();
  }
  std::lock_guard lock(ranks.idleMutex);
  ranks.isRunning = true;
  ranks.running = executor;
}

Ranks::Run::~Run() {
  std::lock_guard lock(ranks.idleMutex);
  ranks.isRunning = false;
  ranks.running = nullptr;
}

/// The ranks that a thread is one of.
static thread_local Ranks *ranksOfThread = nullptr;

namespace {
/// Makes the thread one of these ranks.
class OnThread {
public:
  explicit OnThread(Ranks *ranks)
      : before(std::exchange(ranksOfThread, ranks)) {}
  ~OnThread() { ranksOfThread = before; }

private:
  Ranks *before;
};
} // namespace

Ranks::Calling::Calling() : before(callingRanks) {
  assert(ranksOfThread && "only ranks call functions");
  callingRanks.push_back(ranksOfThread);
  const std::vector<const Ranks *> &outer = ranksOfThread->outer;
  callingRanks.insert(callingRanks.end(), outer.begin(), outer.end());
}

Ranks::Calling::~Calling() { callingRanks = std::move(before); }

bool Ranks::isCalling() const {
  return std::ranges::count(callingRanks, this) > 0;
}

bool Ranks::run(std::function<void(int64_t)> job,
                const RankThreads::GoOn &goOn) {
  return rankThreads.run(
      [this, job = std::move(job)](int64_t i) {
        OnThread here(this);
        job(map().local[i]);
      },
      goOn);
}

void Ranks::runHere(const std::function<void(int64_t)> &job) {
  OnThread here(this);
  job(0);
}

void Ranks::attach(int64_t rank, Device &device) {
  // Mostly the same from step to step. A new thread may have the id of one that
  // has ended.
  thread_local uint64_t attached = 0;
  if (std::exchange(attached, ranks[rank].number) != ranks[rank].number)
    device.attachThread();
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

void Ranks::fail(const std::string &what) { stop(failJob(what)); }

void Ranks::stop(const std::string &what) {
  {
    std::lock_guard lock(errorMutex);
    if (!firstError)
      firstError = what;
  }
  hostTransport->abort();
  if (gpuTransport)
    gpuTransport->abort();
}

void Ranks::throwFirstError() {
  std::lock_guard lock(errorMutex);
  if (firstError)
    throw Error(*firstError);
}

void Ranks::abandon(std::shared_ptr<const void> ofRun) {
  wasAbandoned = true;
  new std::shared_ptr<const void>(std::move(ofRun));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

const Ranks::Rank &Ranks::reserve(int64_t number, Device &device,
                                  int64_t arenaBytes) {
  Rank &rank = ranks[number];
  auto enlarge = [&](std::shared_ptr<Buffer> &block, int64_t bytes) {
    if (block && block->bytes >= bytes)
      return;
    ++rank.version;
    block.reset();
    block = device.allocate(MemorySpace::Device, bytes);
  };
  enlarge(rank.arena, arenaBytes);
  enlarge(rank.workspace, device.workspaceBytes());
  device.useWorkspace(rank.workspace);
  return rank;
}

bool Ranks::dropMemory(int64_t number) {
  Rank &rank = ranks[number];
  bool hasGiven = gpuTransport && gpuTransport->giveBack(number);
  if (!rank.arena)
    return hasGiven;
  ++rank.version;
  rank.arena.reset();
  rank.workspace.reset();
  return true;
}

bool Ranks::isHeldUp() {
  std::lock_guard lock(idleMutex);
  return !isRunning && rankThreads.isBusy();
}

bool Ranks::whileNotRunning(const Executor &executor,
                            const std::function<bool(bool)> &action) {
  std::lock_guard lock(idleMutex);
  if (running == &executor || executor.isInLeftRun())
    return false;
  bool isNothingLeft = !leftBy || leftBy == &executor;
  return action(!isRunning && isNothingLeft && !rankThreads.isBusy());
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Ranks::setLeft(const Executor *executor, std::function<bool()> given) {
  std::lock_guard lock(idleMutex);
  leftBy = executor;
  isOver = std::move(given);
}

bool Ranks::isLeftOver(const Executor &executor) {
  std::function<bool()> ask;
  {
    std::lock_guard lock(idleMutex);
    if (leftBy == &executor)
      ask = isOver;
  }
  return !ask || ask();
}

void Ranks::endLeft(const Executor &executor) {
  std::lock_guard lock(idleMutex);
  if (leftBy != &executor)
    return;
  leftBy = nullptr;
  isOver = nullptr;
}

void Ranks::countStep(double seconds) {
  std::lock_guard lock(idleMutex);
  ++stepCount;
  slowestStep = std::max(slowestStep, seconds);
}

Progress Ranks::progress() {
  Progress result;
  int64_t first = map().local.front(), last = map().local.back();
  result.ranks = first == last ? "rank " + std::to_string(first)
                               : "ranks " + std::to_string(first) + " to " +
                                     std::to_string(last);
  for (int64_t number : map().local)
    result.count += ranks[number].executed;
  std::lock_guard lock(idleMutex);
  result.steps = stepCount;
  result.slowestStep = slowestStep;
  if (running) {
    running->report(result);
  } else if (isRunning) {
    result.isInRelayout = true;
    result.waiting = "rank " + std::to_string(first) +
                     " waits in a relayout, outside of a step";
  }
  return result;
}

} // namespace whale::runtime
