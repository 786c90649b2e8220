//===- Program.cpp - Load and run a compiled program ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a program's directory. Out: a program that has been checked and can be
// run, with its engine. Results are compared here; ProgramMoves.cpp brings
// arrays into its layouts, ProgramSteps.cpp runs it.
//
// Cost: loading reads each file once, hashes it, and finds each kernel and
// library function; on GPUs it takes a step's turn in the ranks' queue. The
// first step allocates the arenas. Checking arguments takes a few locks for
// each array. Comparing replicas hashes all results on this process and
// compares distinct boxes with those of all ranks.
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
#include <sstream>
#include <system_error>
#include <thread>

namespace whale::runtime {

/// What is kept for this process. A fork has the memory of its parent's, but
/// none of its threads, which may hold its locks: it is left as it is.
Program::Engine *Program::State::ofThisProcess(Engine *kept) {
  return kept && kept->process == system::processId() ? kept : nullptr;
}

namespace {
/// An engine that is made in the ranks' queue, for one who may give it up.
template <typename Engine>
struct Making {
  std::mutex mutex;
  bool isGivenUp = false;
  std::unique_ptr<Engine> engine;
  /// What fails in all processes ends none.
  std::exception_ptr error;
};
} // namespace

Program::Engine &Program::State::makeEngine(std::atomic<Engine *> &place,
                                            const std::shared_ptr<Ranks> &ranks,
                                            const AskInterrupted &interrupted) {
  auto making = std::make_shared<Making<Engine>>();
  auto make = [making, ranks, this](const AskInterrupted &) {
    std::lock_guard lock(making->mutex);
    if (making->isGivenUp)
      return;
    std::span<const char> bytes;
    if (constants)
      bytes = {constants->data(), constants->size()};
    try {
      making->engine = std::make_unique<Engine>(ranks, *bound, bytes);
    } catch (const std::exception &) {
      making->error = std::current_exception();
    }
  };
  // On processors nothing is touched that steps use meanwhile.
  bool isBeside = ranks->gpus().empty();
  try {
    if (isBeside)
      make(nullptr);
    else
      ranks->inTurn(
          [make, ranks](const AskInterrupted &isUnwanted) {
            ranks->threads().wait();
            make(isUnwanted);
          },
          {}, interrupted);
  } catch (...) {
    std::lock_guard lock(making->mutex);
    making->isGivenUp = true;
    throw;
  }
  if (making->error)
    std::rethrow_exception(making->error);
  Engine *kept = place;
  while (!ofThisProcess(kept))
    if (place.compare_exchange_weak(kept, making->engine.get()))
      return *making->engine.release();
  return *kept; // Another thread was faster.
}

Program::Engine &Program::State::getEngine(const AskInterrupted &interrupted) {
  Engine *own = ofThisProcess(engine);
  if (own && !own->ranks().isCalling())
    return *own;
  if (options.job)
    options.job->check();
  RanksOptions wanted(*bound, options);
  if (!own) {
    std::shared_ptr<Ranks> ranks = options.hasOwnRanks
                                       ? std::make_shared<Ranks>(wanted)
                                       : Ranks::share(wanted);
    if (!ranks->isCalling())
      return makeEngine(engine, ranks, interrupted);
  }
  Engine *inner = ofThisProcess(innerEngine);
  if (!inner)
    return makeEngine(innerEngine, std::make_shared<Ranks>(wanted),
                      interrupted);
  if (inner->ranks().isCalling())
    throw Error("the program is in a step already that waits for a function "
                "which would wait for it");
  return *inner;
}

Program::State::~State() {
  delete ofThisProcess(innerEngine);
  delete ofThisProcess(engine);
}

/// Nobody may be at work on a GPU's streams while what a program has there
/// goes. False where it would have to wait for that.
bool Program::State::tryDelete(bool mayWait) {
  std::shared_ptr<Ranks> ranks;
  std::unique_lock<std::mutex> lock;
  if (Engine *last = ofThisProcess(engine)) {
    if (!mayWait && last->executor.isBusy())
      return false;
    ranks = last->executor.sharedRanks();
    if (!ranks->gpus().empty()) {
      if (!mayWait && ranks->threads().isBusy())
        return false;
      lock = std::unique_lock(ranks->mutex, std::defer_lock);
      if (mayWait)
        lock.lock();
      else if (!lock.try_lock())
        return false;
      ranks->threads().wait();
    }
  }
  delete this;
  return true;
}

/// Does not wait for a rank that is in the middle of an instruction.
void Program::State::destroy(State *state) {
  if (state->tryDelete(/*mayWait=*/false))
    return;
  try {
    std::thread([state] { state->tryDelete(/*mayWait=*/true); }).detach();
  } catch (const std::system_error &) {
    state->tryDelete(/*mayWait=*/true);
  }
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
                      const LoadOptions &options,
                      const AskInterrupted &interrupted) {
  // Once it is loaded, its files are not needed any more.
  SharedProgram shared(path, options.job.get());
  return format::readProgramDirectory(
      shared.path(), [&](const std::filesystem::path &directory) {
        return Program(State::load(directory, options, interrupted));
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

/// Throws Error where a map is not one of a program's ranks.
static void checkMap(const RankMap &map, const format::Program &program,
                     const std::shared_ptr<Job> &job) {
  if (map.processOf.size() != program.ranks.size())
    throw Error("the program has " + std::to_string(program.ranks.size()) +
                " ranks, of which " + std::to_string(map.processOf.size()) +
                " are given a process");
  int64_t processes = job ? job->processes() : 1;
  for (int64_t process : map.processOf)
    if (process < 0 || process >= processes)
      throw Error("a rank is given process " + std::to_string(process) +
                  ", there are " + std::to_string(processes));
}

/// Which ranks of a program a process reads: its own, but for the first
/// process, which checks how those of all fit together. Times on emulated links
/// and NCCL's communicators depend on all.
static format::WantedRanks wantedRanks(const LoadOptions &options) {
  if (!options.job || options.job->process() == 0 || options.network)
    return {};
  return [&options](const format::Program &program) -> std::vector<int64_t> {
    if (program.target == "cuda") {
      std::vector<int64_t> all(program.ranks.size());
      std::iota(all.begin(), all.end(), 0);
      return all;
    }
    return rankMapOf(options, program.ranks.size())->local;
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
                     const LoadOptions &options,
                     const AskInterrupted &interrupted) {
  std::shared_ptr<State> state(new State, State::destroy);
  std::string checksum =
      options.job
          ? options.job->alone([&] { return state->read(directory, options); })
          : state->read(directory, options);
  state->connect(directory, checksum, interrupted);
  return state;
}

/// Functions that tell the ranks which call them.
static PythonFunction callsOf(PythonFunction python) {
  if (!python)
    return nullptr;
  return [python = std::move(python)](int64_t index,
                                      std::span<const HostTensor> inputs,
                                      std::span<const HostTensor> outputs) {
    Ranks::Calling calling;
    python(index, inputs, outputs);
  };
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
  options.ranks = rankMapOf(options, program.ranks.size());
  checkMap(*options.ranks, program, options.job);
  if (options.network &&
      options.network->devices.size() != program.ranks.size())
    throw Error(options.networkName + ": has " +
                std::to_string(options.network->devices.size()) +
                " devices, the program has " +
                std::to_string(program.ranks.size()) + " ranks");
  if (program.kernels) {
    files.open(program.kernels->name, program.kernels->hash);
    kernels =
        std::make_shared<KernelLibrary>(directory / program.kernels->name);
    if (kernels->isEmulated())
      setEmulatorSeed(seedOfEnvironment("WHALE_EMULATOR_SEED").value_or(0));
  }
  if (program.constants)
    constants = files.open(program.constants->name, program.constants->hash);
  std::unique_ptr<BoundProgram> fresh =
      bindProgram(std::move(program), file, kernels.get(),
                  constants ? static_cast<int64_t>(constants->size()) : 0,
                  callsOf(options.python));
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
  bool isAlone = !options.job || options.job->processes() == 1;
  auto typeOf = [&](const Parameter &parameter) {
    return std::make_shared<ArrayType>(
        ArrayType{parameter.dtype, parameter.shape, parameter.layout,
                  isAlone ? nullptr : options.ranks});
  };
  std::ranges::transform(bound->program.results,
                         std::back_inserter(resultTypes), typeOf);
  std::ranges::transform(bound->program.arguments,
                         std::back_inserter(argumentTypes), typeOf);
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
                             const std::string &checksum,
                             const AskInterrupted &interrupted) {
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
        *options.ranks, bound->program);
  else if (threads <= 0)
    threads = threadsOfRanks(static_cast<int64_t>(bound->program.ranks.size()));
  try {
    notes = getEngine(interrupted).executor.notes();
  } catch (const Interrupted &) {
    throw;
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
  return state->options.ranks->processOf.at(rank);
}

const std::vector<LoadNote> &Program::notes() const { return state->notes; }

const std::string &Program::plan() const { return state->bound->program.plan; }

std::string describe(const Parameter &parameter) {
  return parameter.label.empty()
             ? parameter.name
             : parameter.name + " (" + parameter.label + ")";
}

void checkArgument(const Parameter &parameter, const Array &array,
                   std::shared_ptr<Step> &checked) {
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

void checkArguments(const std::vector<Parameter> &parameters,
                    std::span<const Array> arguments) {
  if (arguments.size() != parameters.size())
    throw Error("the program takes " + std::to_string(parameters.size()) +
                " arguments, " + std::to_string(arguments.size()) +
                " were given");
  std::shared_ptr<Step> checked;
  for (size_t i = 0; i < parameters.size(); ++i)
    checkArgument(parameters[i], arguments[i], checked);
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

std::string Program::describe(const Profile &profile) const {
  Engine &engine = state->getEngine();
  std::lock_guard lock(engine.ranks().mutex);
  return engine.executor.describe(profile);
}

} // namespace whale::runtime
