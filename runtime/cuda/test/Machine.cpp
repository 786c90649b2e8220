//===- Machine.cpp - GPUs that are not there ------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory, streams and faults of the machine; the functions of the tables are in
// the files beside.
//
// put() checks that what an operation uses is live memory and, unless it is
// captured, ordered by events with all other uses; it runs later, when the host
// waits, in an order drawn from the seed. Streams that can't go on are a fault
// at once. The GPUs' threads wait for one another if all have asked many times,
// in vain, since the last change, and no operation can run: a fault, too.
//
// Cost: an operation looks up each range that it uses. While the host waits,
// each step looks at all streams to run one operation.
//
//===----------------------------------------------------------------------===//

#include "cuda/test/Machine.h"

#include "emulator/Emulator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace whale::runtime::cuda::test {

static Machine *current = nullptr;

Machine &Machine::get() {
  if (!current)
    throw Error("there is no test machine");
  return *current;
}

Machine::Machine(const MachineOptions &options)
    : options(options), gpus(static_cast<size_t>(options.gpus)),
      random(options.seed) {
  previous = std::exchange(current, this);
  fillDriver(tables.driver);
  fillBlasLt(tables.blas);
  fillNccl(ncclTable);
  fillDnn(dnnTable);
  fillFft(fftTable);
  fillSolver(solverTable, blasTable);
  tables.nccl = &ncclTable;
  tables.triangles = &blasTable;
  tables.dnn = &dnnTable;
  tables.fft = &fftTable;
  tables.solver = &solverTable;
}

Machine::~Machine() {
  for (const auto &[address, range] : memory)
    std::free(reinterpret_cast<void *>(address));
  current = previous;
}

void Machine::addModule(const std::string &text,
                        std::map<std::string, TestKernel> kernels,
                        const std::string &cubin, int architecture) {
  std::lock_guard lock(mutex);
  texts[text] = std::move(kernels);
  if (!cubin.empty())
    cubins[cubin] = {text, architecture};
}

Function Machine::addKernel(TestKernel kernel) {
  std::lock_guard lock(mutex);
  static uintptr_t next = 0x1000;
  auto function = reinterpret_cast<Function>(next += 16);
  kernels[function] = std::move(kernel);
  return function;
}

std::vector<std::string> Machine::takeFaults() {
  std::lock_guard lock(mutex);
  for (GpuState &gpu : gpus)
    gpu.error = 0;
  return std::exchange(faults, {});
}

Status Machine::fault(int gpu, const std::string &what, Status status) {
  faults.push_back(what);
  if (gpu >= 0 && !gpus[gpu].error) {
    gpus[gpu].error = status;
    lastFault = what;
  }
  notify();
  return status;
}

const char *Machine::lastFaultText() {
  std::lock_guard lock(mutex);
  static thread_local std::string copy;
  copy = lastFault.empty() ? "error" : lastFault;
  return copy.c_str();
}

bool Machine::mutates(Mutation kind) {
  return counts[static_cast<size_t>(kind)]++ == options.mutated &&
         kind == options.mutation;
}

const Machine::Range *Machine::rangeOf(Address address, int64_t bytes) const {
  auto after = memory.upper_bound(address);
  if (after == memory.begin())
    return nullptr;
  const auto &[begin, range] = *std::prev(after);
  bool isInside = address + static_cast<Address>(bytes) <=
                  begin + static_cast<Address>(range.bytes);
  return isInside ? &range : nullptr;
}

bool Machine::isMemory(int gpu, Address address, int64_t bytes) const {
  const Range *range = rangeOf(address, bytes);
  return range && (range->isPinned || range->gpu == gpu);
}

bool Machine::takeObject() {
  std::lock_guard lock(mutex);
  int gpu = currentGpu();
  if (gpu < 0)
    return true;
  if (options.objectBytes > totalBytesOf(gpu) - gpus[gpu].usedBytes)
    return false;
  gpus[gpu].usedBytes += options.objectBytes;
  return true;
}

void Machine::giveObject() {
  std::lock_guard lock(mutex);
  if (int gpu = currentGpu(); gpu >= 0)
    gpus[gpu].usedBytes -= options.objectBytes;
}

bool Machine::isCapturing(int gpu) const {
  return std::ranges::any_of(streams, [&](const auto &entry) {
    return entry.second->gpu == gpu && entry.second->captured;
  });
}

/// The one that was made last, but for the stream itself.
StreamState *Machine::otherStream(const StreamState &stream) {
  StreamState *last = nullptr;
  for (auto &[handle, other] : streams)
    if (other->gpu == stream.gpu && other.get() != &stream)
      last = other.get();
  return last;
}

void Machine::put(StreamState &given, Operation operation) {
  StreamState *stream = &given;
  if (!operation.awaited && mutates(Mutation::SwapStream))
    if (StreamState *other = otherStream(given))
      stream = other;
  for (const Access &access : operation.accesses)
    if (!isMemory(stream->gpu, access.address, access.bytes)) {
      fault(stream->gpu,
            operation.what + " uses " + std::to_string(access.bytes) +
                " bytes that are not all in the GPU's memory, or were freed",
            kIllegalAddress);
      return;
    }
  if (stream->captured) {
    stream->captured->push_back(std::move(operation));
    return;
  }
  constexpr ptrdiff_t room = 1024;
  if (groups > 0 && std::ssize(stream->operations) >= room &&
      std::ranges::count(stream->operations, false, &Operation::isOfSameCall) >=
          room) {
    fault(stream->gpu, "more operations on a stream than the driver has room "
                       "for, while ranks wait for one another");
    return;
  }
  stream->clock.join(gpus[stream->gpu].host);
  stream->clock.tick(stream->number);
  for (const Access &access : operation.accesses)
    if (auto other =
            shadow.use(access, stream->number, stream->clock, operation.what))
      fault(stream->gpu,
            operation.what + " and " + *other +
                " use the same memory, and no event is between them",
            kLaunchFailed);
  stream->operations.push_back(std::move(operation));
  ++stream->put;
  notify();
}

void Machine::run(StreamState &stream) {
  Operation operation = std::move(stream.operations.front());
  stream.operations.pop_front();
  ++stream.done;
  notify();
  try {
    if (operation.run && !gpus[stream.gpu].error)
      operation.run();
  } catch (const std::exception &error) {
    fault(stream.gpu, operation.what + ": " + error.what(), kLaunchFailed);
  }
  if (std::optional<std::string> what = takeEmulatorFault())
    fault(stream.gpu, *what, kLaunchFailed);
  stream.ends.push_back(std::chrono::steady_clock::now());
}

/// Whether its next operation can run.
bool Machine::isReady(const StreamState &stream) const {
  if (isHeld || stream.operations.empty())
    return false;
  const Operation &next = stream.operations.front();
  if (next.meets)
    return next.meets();
  return !next.awaited || next.awaited->done >= next.position;
}

void Machine::leave(int gpu) {
  std::lock_guard lock(mutex);
  gpus[gpu].hasLeft = true;
}

void Machine::hold(bool holds) {
  std::lock_guard lock(mutex);
  isHeld = holds;
  notify();
}

Status Machine::answerNotReady(int gpu) {
  // Who goes on asks a few times in vain, too.
  constexpr int64_t patience = 50;
  GpuState &own = gpus[gpu];
  if (std::exchange(own.change, changes) != changes)
    own.asked = 0;
  ++own.asked;
  auto waits = [&](const GpuState &state) {
    return state.hasLeft ||
           (state.change == changes && state.asked >= patience);
  };
  if (isHeld || !options.sharedDirectory.empty() ||
      !std::ranges::all_of(gpus, waits) ||
      std::ranges::any_of(
          streams, [&](const auto &entry) { return isReady(*entry.second); }))
    return kNotReady;
  return fault(gpu, "the ranks wait for one another", kLaunchFailed);
}

Status Machine::runUntil(int gpu, const std::function<bool()> &isDone) {
  std::vector<StreamState *> ready, elsewhere;
  while (!isDone()) {
    if (isHeld) {
      changed.wait(mutex);
      continue;
    }
    ready.clear();
    elsewhere.clear();
    bool meets = false;
    for (auto &[handle, stream] : streams) {
      if (isReady(*stream))
        (stream->gpu == gpu ? ready : elsewhere).push_back(stream.get());
      else if (stream->gpu == gpu && !stream->operations.empty())
        meets |= bool(stream->operations.front().meets);
    }
    if (ready.empty() && !meets)
      return fault(gpu, "the streams wait for one another", kLaunchFailed);
    // Other GPUs go on, whether or not their threads wait.
    if (ready.empty())
      ready = elsewhere;
    if (ready.empty()) {
      // No other process tells.
      if (options.sharedDirectory.empty())
        changed.wait(mutex);
      else
        changed.wait_for(mutex, std::chrono::milliseconds(1));
      continue;
    }
    std::ranges::sort(ready, {}, [](auto *stream) { return stream->number; });
    run(*ready[random() % ready.size()]);
  }
  return gpus[gpu].error;
}

void Machine::runSome(int gpu) {
  for (auto &[handle, stream] : streams)
    if (stream->gpu == gpu && isReady(*stream) && random() % 2)
      run(*stream);
}

} // namespace whale::runtime::cuda::test
