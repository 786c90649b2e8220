//===- Program.cpp - Load and run a compiled program ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a program's directory. Out: a program that has been checked and can be
// run, with its engine (executor and queue). Arrays are brought into its
// layouts, gathered and compared here; ProgramSteps.cpp runs it.
//
// Cost: loading reads each file once, hashes it, and finds each kernel and
// library function; the first step allocates the arenas. Checking arguments
// takes a few locks for each array. Gathering and a change of layout between
// processes take a step's turn in the queue and move the elements that a
// process lacks; whether one lacks any compares the boxes of all ranks
// pairwise. Comparing replicas hashes all results on this process and compares
// distinct boxes with those of all ranks.
//
//===----------------------------------------------------------------------===//

#include "ProgramState.h"
#include "Replicas.h"
#include "cuda/test/TestPrograms.h"
#include "device/cpu/Scratch.h"
#include "emulator/Emulator.h"
#include "job/Handshake.h"
#include "program/CheckedFiles.h"
#include "program/SharedProgram.h"
#include "whale/ProgramFormat/ProgramPlace.h"
#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/System/Checksum.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>

namespace whale::runtime {

/// Whether each process has all of an array, as far as its layout says: what
/// one process finds, all do.
static bool isInEachProcess(const Layout &layout, const Ranks &place) {
  int64_t processes = place.job ? place.job->processes() : 1;
  auto ranks = static_cast<int64_t>(layout.boxes.size());
  // What a host has, all have.
  if (processes == 1 || ranks == 1)
    return true;
  std::vector<bool> isKnown(ranks);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (!layout.boxes[rank] || isKnown[rank])
      continue;
    // Whether each process has this box.
    std::vector<bool> isThere(processes);
    for (int64_t other = rank; other < ranks; ++other)
      if (layout.boxes[other] == layout.boxes[rank])
        isKnown[other] = isThere[processOfRank(other, ranks, processes)] = true;
    if (!std::ranges::all_of(isThere, std::identity()))
      return false;
  }
  return true;
}

bool Program::Engine::needsOthers(const Array &array) const {
  return !array.isInFiles() &&
         !isInEachProcess(array.layout(), executor.where());
}

std::vector<Array> Program::Engine::relayout(
    std::vector<Array> arrays,
    std::span<const std::shared_ptr<const Layout>> layouts) {
  std::vector<size_t> numbers;
  std::vector<ArrayMove> moves;
  std::vector<Executor::Shards> sources;
  for (size_t i = 0; i < arrays.size(); ++i) {
    Array &array = arrays[i];
    if (array.isLaidOutAs(layouts[i]))
      continue;
    if (!needsOthers(array)) {
      array = array.relayout(layouts[i], localRanks());
      continue;
    }
    numbers.push_back(i);
    moves.push_back({byteSize(array.dtype()),
                     std::make_shared<Layout>(array.layout()), layouts[i]});
    Executor::Shards &shards = sources.emplace_back();
    for (size_t rank = 0; rank < array.layout().boxes.size(); ++rank)
      shards.push_back(array.heldShard(rank));
  }
  if (moves.empty())
    return arrays;
  std::vector<std::pair<DType, Shape>> types;
  for (size_t i : numbers) {
    types.emplace_back(arrays[i].dtype(), arrays[i].shape());
    arrays[i] = Array();
  }
  std::vector<Executor::Shards> results =
      executor.exchange(moves, std::move(sources));
  for (size_t i = 0; i < numbers.size(); ++i)
    arrays[numbers[i]] = Array::fromShards(types[i].first, types[i].second,
                                           moves[i].to, std::move(results[i]));
  return arrays;
}

std::optional<int64_t> Program::Engine::firstMissing(
    const Layout &layout,
    std::span<const std::shared_ptr<Buffer>> shards) const {
  for (int64_t rank : executor.where().local)
    if (layout.boxes[rank] && !shards[rank])
      return rank;
  return std::nullopt;
}

/// The engine of this process. A fork has the memory of its parent's, but none
/// of its threads, which may hold its locks: it is left as it is.
Program::Engine &Program::State::getEngine() {
  Engine *current = engine;
  if (current && current->process == system::processId())
    return *current;
  if (options.job)
    options.job->check();
  std::span<const char> bytes;
  if (constants)
    bytes = {constants->data(), constants->size()};
  auto fresh = std::make_unique<Engine>(*bound, bytes, options);
  if (engine.compare_exchange_strong(current, fresh.get()))
    return *fresh.release();
  return *current; // Another thread was faster.
}

Program::State::~State() {
  Engine *last = engine;
  if (last && last->process == system::processId())
    delete last;
}

/// Does not wait for a rank that is in the middle of an instruction.
void Program::State::destroy(State *state) {
  Engine *last = state->engine;
  if (last && last->process == system::processId() && last->executor.isBusy())
    try {
      std::thread([state] { delete state; }).detach();
      return;
    } catch (const std::system_error &) {
    }
  delete state;
}

/// The seed that a variable holds; nothing if it is not set.
static std::optional<uint64_t> seedOfEnvironment(const char *variable) {
  const char *text = std::getenv(variable);
  if (!text || !*text)
    return std::nullopt;
  uint64_t seed = 0;
  const char *end = text + std::strlen(text);
  if (auto result = std::from_chars(text, end, seed);
      result.ec != std::errc() || result.ptr != end)
    throw Error(std::string(variable) + ": '" + text + "' is no whole number");
  return seed;
}

Program::Program(std::shared_ptr<State> state) : state(std::move(state)) {}

Program Program::load(const std::filesystem::path &path,
                      const LoadOptions &options) {
  // Once it is loaded, its files are not needed any more.
  SharedProgram shared(path, options.job.get());
  return format::readProgramDirectory(
      shared.path(), [&](const std::filesystem::path &directory) {
        return Program(State::load(directory, options));
      });
}

static format::ReadFile tableReader(const CheckedFiles &files) {
  return [&](const std::string &name) {
    return std::string(files.open(name)->text());
  };
}

/// Calls `read` with what a reader of the format takes.
template <typename Read>
static auto readPlan(const std::filesystem::path &directory, Read read) {
  CheckedFiles files(directory);
  return read(files.open("manifest.json")->text(),
              (directory / "manifest.json").string(), tableReader(files));
}

void checkPlan(const std::filesystem::path &directory) {
  readPlan(directory, [](auto &&...plan) { format::readProgram(plan...); });
}

std::string readTables(const std::filesystem::path &directory) {
  return readPlan(directory, format::readTables);
}

/// Which ranks of a program a process reads: its own, but for the first
/// process, which checks how those of all fit together. Times on emulated links
/// and NCCL's communicators depend on all.
static format::WantedRanks wantedRanks(const LoadOptions &options) {
  if (!options.job || options.job->process() == 0 || options.network)
    return {};
  return [job = options.job](const format::Program &program) {
    size_t ranks = program.ranks.size();
    bool isForNccl = program.target == "cuda";
    return Ranks(ranks, isForNccl ? nullptr : job).local;
  };
}

/// "'step' of batch f32[8, 4] (program 1a2b3c4d)".
static std::string titleOf(const format::Program &program,
                           const std::string &checksum) {
  std::string title = "'" + program.name + "'", batch;
  for (const Parameter &argument : program.arguments)
    if (argument.role == Role::Batch)
      batch += (batch.empty() ? " of batch " : ", ") +
               std::string(name(argument.dtype)) + toString(argument.shape);
  return title + batch + " (program " + checksum.substr(0, 8) + ")";
}

std::shared_ptr<Program::State>
Program::State::load(const std::filesystem::path &directory,
                     const LoadOptions &options) {
  std::shared_ptr<State> state(new State, State::destroy);
  std::string checksum =
      options.job
          ? options.job->alone([&] { return state->read(directory, options); })
          : state->read(directory, options);
  state->connect(directory, checksum);
  return state;
}

/// What this process does by itself. Returns the checksum of the manifest.
std::string Program::State::read(const std::filesystem::path &directory,
                                 const LoadOptions &given) {
  options = given;
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error))
    throw Error(directory.string() + ": " +
                (std::filesystem::exists(directory, error)
                     ? "is not a program directory"
                     : std::strerror(error ? error.value() : ENOENT)));
  CheckedFiles files(directory);
  std::unique_ptr<system::MappedFile> text = files.open("manifest.json");

  std::string file = (directory / "manifest.json").string();
  format::Program program = format::readProgram(
      text->text(), file, tableReader(files), wantedRanks(options));
  checkTarget(program, file);
  if (program.kernels) {
    files.open(program.kernels->name, program.kernels->hash);
    kernels =
        std::make_shared<KernelLibrary>(directory / program.kernels->name);
    if (kernels->isEmulated())
      setEmulatorSeed(seedOfEnvironment("WHALE_EMULATOR_SEED").value_or(0));
  }
  if (program.constants)
    constants = files.open(program.constants->name, program.constants->hash);
  std::unique_ptr<BoundProgram> fresh = bindProgram(
      std::move(program), file, kernels.get(),
      constants ? static_cast<int64_t>(constants->size()) : 0, options.python);
  if (fresh->program.target == "cuda") {
    auto readAll = [&](const std::vector<format::File> &modules,
                       std::vector<std::string> &contents) {
      for (const format::File &module : modules)
        contents.emplace_back(files.open(module.name, module.hash)->text());
    };
    for (const format::GpuCode &code : fresh->program.gpu) {
      BoundProgram::GpuCode &contents = fresh->gpu.emplace_back();
      readAll(code.modules, contents.texts);
      readAll(code.cubins, contents.cubins);
    }
    fresh->testLibraries = cuda::test::findTestLibraries();
    if (fresh->testLibraries)
      cuda::test::addTestProgram(*fresh, kernels);
  }
  std::string checksum = system::Checksum::of(text->text());
  fresh->title = titleOf(fresh->program, checksum);
  bound = std::move(fresh);
  for (const Parameter &result : bound->program.results)
    resultTypes.push_back(std::make_shared<ArrayType>(
        ArrayType{result.dtype, result.shape, result.layout}));
  for (const Parameter &argument : bound->program.arguments) {
    std::shared_ptr<const Layout> layout = argument.layout;
    if (Layout whole = Layout::whole(argument.shape); *layout != whole)
      layout = std::make_shared<Layout>(std::move(whole));
    hostTypes.push_back(std::make_shared<ArrayType>(
        ArrayType{argument.dtype, argument.shape, std::move(layout)}));
  }
  return checksum;
}

/// Agrees with the other processes, and makes the engine.
void Program::State::connect(const std::filesystem::path &directory,
                             const std::string &checksum) {
  if (!options.lateSeed)
    options.lateSeed = seedOfEnvironment("WHALE_TEST_LATE");
  const std::shared_ptr<Job> &job = options.job;
  if (options.lateSeed && job && job->processes() > 1)
    // Late queues order what happens on all ranks.
    throw Error("WHALE_TEST_LATE: late devices are for ranks of one process, "
                "this job has " +
                std::to_string(job->processes()));
  int64_t &threads = options.threadsPerRank;
  if (job && job->processes() > 1)
    threads = job::shakeHands(
        *job, {checksum, productInstructions(), std::max<int64_t>(0, threads)},
        bound->program);
  else if (threads <= 0)
    threads = threadsOfRanks(static_cast<int64_t>(bound->program.ranks.size()));
  try {
    getEngine();
  } catch (const std::exception &error) {
    throw Error(directory.string() + ": " + error.what());
  }
}

const std::string &Program::name() const { return state->bound->program.name; }
size_t Program::rankCount() const { return state->bound->program.ranks.size(); }
const std::vector<Parameter> &Program::arguments() const {
  return state->bound->program.arguments;
}
const std::vector<Parameter> &Program::results() const {
  return state->bound->program.results;
}
int64_t Program::argumentBytes(size_t argument) const {
  const Parameter &parameter = arguments().at(argument);
  return elementCount(parameter.shape) * byteSize(parameter.dtype);
}

Array Program::copyArgument(size_t argument, const void *data) const {
  return Array::fromHost(state->hostTypes.at(argument), data);
}

int64_t Program::processOf(size_t rank) const {
  // A child of a process, which has no engine, asks as well.
  const std::shared_ptr<Job> &job = state->options.job;
  return processOfRank(static_cast<int64_t>(rank),
                       static_cast<int64_t>(rankCount()),
                       job ? job->processes() : 1);
}

const std::vector<LoadNote> &Program::notes() const {
  return state->getEngine().executor.notes();
}

const std::string &Program::plan() const { return state->bound->program.plan; }

std::string describe(const Parameter &parameter) {
  return parameter.label.empty()
             ? parameter.name
             : parameter.name + " (" + parameter.label + ")";
}

void checkArguments(const std::vector<Parameter> &parameters,
                    std::span<const Array> arguments) {
  if (arguments.size() != parameters.size())
    throw Error("the program takes " + std::to_string(parameters.size()) +
                " arguments, " + std::to_string(arguments.size()) +
                " were given");
  // Most arrays come of one step.
  std::shared_ptr<Step> checked;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter &parameter = parameters[i];
    const Array &array = arguments[i];
    if (!array)
      throw Error(describe(parameter) + ": no array was given");
    if (array.isDonated())
      throw Error(describe(parameter) + ": the array was " + array.fate() +
                  " before");
    if (std::shared_ptr<Step> step = array.step(); step && step != checked) {
      step->check();
      checked = std::move(step);
    }
    if (array.dtype() != parameter.dtype)
      throw Error(describe(parameter) + ": must be " +
                  std::string(whale::runtime::name(parameter.dtype)) +
                  ", the array is " +
                  std::string(whale::runtime::name(array.dtype())));
    if (array.shape() != parameter.shape)
      throw Error(describe(parameter) + ": must have shape " +
                  toString(parameter.shape) + ", the array has " +
                  toString(array.shape()));
  }
}

Array Program::gather(const Array &array, bool everywhere,
                      const AskInterrupted &interrupted) const {
  Engine &engine = state->getEngine();
  const Ranks &ranks = engine.executor.where();
  if (!ranks.job) {
    array.wait(interrupted);
    return array;
  }
  auto wanted = std::make_shared<Layout>();
  wanted->view = array.layout().view;
  wanted->boxes.resize(rankCount());
  for (size_t rank = 0; rank < rankCount(); ++rank)
    if (rank == 0 ||
        (everywhere && ranks.processOf[rank] != ranks.processOf[rank - 1]))
      wanted->boxes[rank] = Box::whole(wanted->view);
  std::shared_ptr<const Layout> layout = wanted;
  Array whole = moveInTurn({array}, {layout}, interrupted)[0];
  return everywhere || ranks.isLocal(0) ? whole : Array();
}

/// Steps that were submitted before may move data, too: all processes do it in
/// one order.
std::vector<Array>
Program::moveInTurn(std::vector<Array> arrays,
                    std::vector<std::shared_ptr<const Layout>> layouts,
                    const AskInterrupted &interrupted) const {
  Engine &engine = state->getEngine();
  StepQueue::Place place = engine.queue.reserve(interrupted);
  std::vector<std::shared_ptr<Step>> before;
  for (const Array &array : arrays)
    before.push_back(array.step());
  std::shared_ptr<Step> step = Step::create(before, [](const char *) {});
  auto moved = std::make_shared<std::vector<Array>>(std::move(arrays));
  engine.queue.push(std::move(place), step, [=, &engine] {
    engine.queue.settle();
    try {
      for (const Array &array : *moved)
        array.wait([step] { return step->isUnwanted(); });
      std::lock_guard lock(engine.mutex);
      *moved = engine.relayout(std::move(*moved), layouts);
      if (step->claim())
        step->publish();
    } catch (const Interrupted &) {
      step->failInterrupted();
    } catch (const std::exception &error) {
      step->fail(engine.fail(error.what()));
    }
    return StepQueue::TryEnd();
  });
  step->wait(interrupted);
  return std::move(*moved);
}

std::vector<Array> Program::move(std::span<const Array> arrays,
                                 std::span<const size_t> arguments,
                                 const AskInterrupted &interrupted) const {
  const std::shared_ptr<Job> &job = state->options.job;
  Engine &engine = state->getEngine();
  const Ranks &ranks = engine.executor.where();
  std::vector<std::shared_ptr<const Layout>> layouts;
  std::vector<Array> taken;
  std::string described;
  // Until all have found nothing wrong, nobody gives anything up.
  auto prepare = [&] {
    std::vector<Parameter> parameters;
    for (size_t argument : arguments)
      parameters.push_back(this->arguments().at(argument));
    checkArguments(parameters, arrays);
    // Given back at once, but all could be had: large ones as they will be, of
    // which the memory may still be there, the others together.
    constexpr int64_t large = 1 << 20;
    std::vector<std::shared_ptr<Buffer>> memory;
    int64_t rest = 0;
    for (size_t i = 0; i < arrays.size(); ++i) {
      const std::shared_ptr<const Layout> &layout = parameters[i].layout;
      layouts.push_back(layout);
      described += parameters[i].name + " " + arrays[i].layoutChecksum() + "; ";
      arrays[i].wait(interrupted);
      if (!arrays[i].isLaidOutAs(layout) && engine.needsOthers(arrays[i])) {
        taken.push_back(arrays[i]);
        for (int64_t rank : ranks.local) {
          const std::optional<Box> &box = layout->boxes[rank];
          int64_t bytes =
              box ? box->elements() * byteSize(parameters[i].dtype) : 0;
          if (bytes >= large)
            memory.push_back(Buffer::allocate(bytes));
          else
            rest += bytes;
        }
        continue;
      }
      // What may be in files that are damaged is read now; memory of the
      // caller's does not stay.
      Array own = arrays[i].relayout(layout, engine.localRanks());
      taken.push_back(own.share(layout, engine.localRanks()).array());
    }
    memory.push_back(Buffer::allocate(rest));
    described = state->bound->title + ": " + described;
    return system::Checksum::of(described);
  };
  std::vector<std::string> all =
      job ? job->together("a move of arrays", prepare)
          : std::vector<std::string>{prepare()};
  if (std::ranges::count(all, all[0]) != std::ssize(all))
    all = job->together("other moves of arrays", [&] { return described; });
  for (size_t process = 1; process < all.size(); ++process)
    if (all[process] != all[0])
      throw Error("process " + std::to_string(process) +
                  " moves other arrays than process 0: " + all[process] +
                  " instead of " + all[0]);
  // The contents go on; the caller's handles have nothing any more.
  for (Array &array : taken)
    array = array.contents().array();
  for (const Array &array : arrays)
    array.donate("moved to another program");
  return moveInTurn(std::move(taken), std::move(layouts), interrupted);
}

void Program::checkReplicas(std::span<const Array> results) const {
  const std::vector<Parameter> &parameters = state->bound->program.results;
  // What one process sends to the others: a line for each shard.
  std::string mine;
  std::vector<std::vector<std::string>> checksums;
  for (const Array &result : results)
    for (const std::string &each : checksums.emplace_back(checksumsOf(result)))
      mine += each + "\n";
  const std::shared_ptr<Job> &job = state->options.job;
  if (job && job->processes() > 1)
    for (const std::string &all : job->allGather("replicas", mine)) {
      std::istringstream lines(all);
      std::string line;
      for (std::vector<std::string> &ranks : checksums)
        for (std::string &each : ranks)
          if (std::getline(lines, line) && !line.empty())
            each = line;
    }
  for (size_t i = 0; i < results.size(); ++i)
    if (auto ranks = findDifference(results[i].layout(), checksums[i]))
      throw Error(runtime::describe(parameters[i]) +
                  ": the replicas of ranks " + std::to_string((*ranks)[0]) +
                  " and " + std::to_string((*ranks)[1]) + " differ");
}

Array Program::place(size_t argument, const Array &array) const {
  const Parameter &parameter = state->bound->program.arguments.at(argument);
  checkArguments(std::vector<Parameter>{parameter}, {&array, 1});
  std::vector<int64_t> all(rankCount());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int64_t> *local = state->getEngine().localRanks();
  Array placed = array.relayout(parameter.layout, local ? local : &all);
  // In its own layout already, it may be memory of the caller.
  return placed.share(parameter.layout, local).array();
}

std::string Program::describe(const Profile &profile) const {
  Engine &engine = state->getEngine();
  std::lock_guard lock(engine.mutex);
  return engine.executor.describe(profile);
}

} // namespace whale::runtime
