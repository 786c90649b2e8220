//===- Emulator.cpp - Blocks of GPU threads on a processor ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a kernel for GPUs, compiled for the processor, its buffers and a range of
// blocks. Out: what it computes, or the first fault. A block is run in turns:
// each thread that can goes on until it waits or is done. After a turn, a
// shuffle whose lanes have all come gets its values, and a barrier that all
// threads have reached lets them pass. If neither is so and threads are left,
// the kernel is wrong; all then run to their ends without waiting, so that no
// stack has to be unwound, and the fault is kept for the device to ask for.
//
// Cost: in blocks whose threads may wait, a thread is a fiber with a stack of
// 64 KiB that is used again, and each of its waits is two switches and a pass
// over the block's threads. Each access to memory searches the kernel's buffers
// and a record of who has read and written these bytes.
//
//===----------------------------------------------------------------------===//

#include "emulator/Emulator.h"

#include "emulator/Shadow.h"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace whale::runtime {

using namespace format;

namespace {

namespace context = boost::context;

constexpr int32_t kWarp = 32;
/// Of a thread; kernels have small arrays in it.
constexpr size_t kStackBytes = 64 * 1024;

/// Called for each access.
std::atomic<EmulatorObserver> observer = nullptr;

std::atomic<uint64_t> seed = 0;

/// The first fault since it was taken.
struct Fault {
  std::atomic<bool> any = false;
  std::mutex mutex;
  std::optional<std::string> text;
};

Fault &fault() {
  static auto *fault = new Fault;
  return *fault;
}

void report(const EmulatedKernel &kernel, int32_t block,
            const std::string &what) {
  std::lock_guard lock(fault().mutex);
  fault().any = true;
  if (!fault().text)
    fault().text = std::string("kernel ") + kernel.name + ", block " +
                   std::to_string(block) + ": " + what;
}

/// Of the kernel that this thread of the process runs.
struct Launch {
  const EmulatedKernel *kernel = nullptr;
  void **arguments = nullptr;
  Shadow buffers, shared;
  /// Of the block that is run: the barriers that its threads have passed.
  uint32_t barriers = 0;
  /// What wrong addresses are replaced by.
  alignas(16) char nowhere[64];
};
thread_local Launch launch;

enum class State : uint8_t { Ready, AtBarrier, AtShuffle, Done };

struct Shuffle {
  ShuffleMode mode;
  uint32_t mask, value, operand, clamp;
  uint64_t result;
};

struct Block;

/// A thread of a block, which the kernel knows by its first member.
struct Thread {
  EmulatedThread seen;
  Block *block;
  State state;
  Shuffle shuffle;
  context::fiber own, scheduler;

  static Thread &of(EmulatedThread *seen) {
    return *reinterpret_cast<Thread *>(seen);
  }
  void yield(State wait) {
    state = wait;
    scheduler = std::move(scheduler).resume();
  }
};

struct Block {
  const EmulatedKernel *kernel;
  std::vector<Thread> threads;
  /// Something is wrong: nothing waits any more.
  bool failed = false;

  void fail(const std::string &what);
  bool passBarrier();
  bool completeShuffles();
  bool completeShuffle(int32_t warp, uint32_t mask);
  std::string describeWaits() const;
};

void Block::fail(const std::string &what) {
  failed = true;
  report(*kernel, threads[0].seen.block, what);
}

std::string Block::describeWaits() const {
  auto count = [&](State state) {
    return std::to_string(
        std::count_if(threads.begin(), threads.end(),
                      [&](const Thread &t) { return t.state == state; }));
  };
  return "its threads wait for ever: " + count(State::AtBarrier) +
         " at a barrier, " + count(State::AtShuffle) + " at a shuffle, " +
         count(State::Done) + " done";
}

bool Block::passBarrier() {
  for (Thread &thread : threads)
    if (thread.state != State::AtBarrier)
      return false;
  for (Thread &thread : threads)
    thread.state = State::Ready;
  ++launch.barriers;
  return true;
}

/// PTX's shfl.sync for the lanes of `mask`, if all of them have come.
bool Block::completeShuffle(int32_t warp, uint32_t mask) {
  auto lane = [&](int32_t number) -> Thread * {
    size_t index = static_cast<size_t>(warp) * kWarp + number;
    return index < threads.size() ? &threads[index] : nullptr;
  };
  auto waits = [&](Thread *thread) {
    return thread && thread->state == State::AtShuffle &&
           thread->shuffle.mask == mask;
  };
  for (int32_t number = 0; number < kWarp; ++number)
    if (mask >> number & 1 && lane(number) && !waits(lane(number)))
      return false;
  for (int32_t number = 0; number < kWarp; ++number) {
    Thread *thread = lane(number);
    if (!(mask >> number & 1) || !thread)
      continue;
    Shuffle &shuffle = thread->shuffle;
    int32_t operand = shuffle.operand & 31, clamp = shuffle.clamp & 31;
    int32_t segment = shuffle.clamp >> 8 & 31;
    int32_t low = number & segment, high = low | (clamp & ~segment);
    int32_t source;
    bool isInside;
    switch (shuffle.mode) {
    case ShuffleMode::Up:
      source = number - operand;
      isInside = source >= high;
      break;
    case ShuffleMode::Down:
      source = number + operand;
      isInside = source <= high;
      break;
    case ShuffleMode::Xor:
      source = number ^ operand;
      isInside = source <= high;
      break;
    case ShuffleMode::Index:
    default:
      source = low | (operand & ~segment);
      isInside = source <= high;
      break;
    }
    if (!isInside)
      source = number;
    if (!(mask >> source & 1) || !lane(source)) {
      fail("a shuffle reads lane " + std::to_string(source) +
           ", which takes no part in it");
      source = number;
    }
    shuffle.result =
        lane(source)->shuffle.value | (isInside ? uint64_t(1) << 32 : 0);
  }
  for (int32_t number = 0; number < kWarp; ++number)
    if (mask >> number & 1 && lane(number))
      lane(number)->state = State::Ready;
  return true;
}

bool Block::completeShuffles() {
  bool any = false;
  for (size_t number = 0; number < threads.size(); ++number) {
    Thread &thread = threads[number];
    if (thread.state != State::AtShuffle)
      continue;
    auto lane = static_cast<int32_t>(number % kWarp);
    if (!(thread.shuffle.mask >> lane & 1)) {
      fail("lane " + std::to_string(lane) +
           " shuffles, but is not in its mask");
      return any;
    }
    any |= completeShuffle(static_cast<int32_t>(number) / kWarp,
                           thread.shuffle.mask);
  }
  return any;
}

//===----------------------------------------------------------------------===//
// What kernels call
//===----------------------------------------------------------------------===//

void waitAtBarrier(EmulatedThread *seen) {
  Thread &thread = Thread::of(seen);
  if (!thread.block->failed)
    thread.yield(State::AtBarrier);
}

uint64_t shuffle(EmulatedThread *seen, int32_t mode, uint32_t mask,
                 uint32_t value, uint32_t operand, uint32_t clamp) {
  Thread &thread = Thread::of(seen);
  thread.shuffle = {
      static_cast<ShuffleMode>(mode), mask, value, operand, clamp, value};
  if (!thread.block->failed)
    thread.yield(State::AtShuffle);
  return thread.shuffle.result;
}

/// The kernel's buffer that has these bytes; null if there is none.
void *findBuffer(const void *address, int32_t bytes, int64_t &size) {
  for (int32_t i = 0; i < launch.kernel->numBuffers; ++i) {
    auto *buffer = static_cast<char *>(launch.arguments[i]);
    int64_t offset = static_cast<const char *>(address) - buffer;
    size = launch.kernel->bufferBytes[i];
    if (offset >= 0 && offset + bytes <= size)
      return buffer;
  }
  return nullptr;
}

void *access(EmulatedThread *seen, void *array, int64_t arrayBytes,
             void *address, int32_t bytes, int32_t alignment, int32_t kind) {
  auto fail = [&](const std::string &what) {
    report(*launch.kernel, seen->block,
           "thread " + std::to_string(seen->thread) +
               (kind & kWrites ? " writes " : " reads ") +
               std::to_string(bytes) + " bytes " + what);
    return launch.nowhere;
  };
  if (!array)
    array = findBuffer(address, bytes, arrayBytes);
  if (!array)
    return fail("outside of all buffers");
  int64_t offset =
      static_cast<char *>(address) - static_cast<const char *>(array);
  if (offset < 0 || offset + bytes > arrayBytes)
    return fail("at byte " + std::to_string(offset) +
                (kind & kOfSharedMemory ? " of shared memory of "
                                        : " of a buffer of ") +
                std::to_string(arrayBytes));
  if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(alignment))
    return fail("at an address that is no multiple of " +
                std::to_string(alignment));
  bool isShared = kind & kOfSharedMemory;
  Shadow &shadow = isShared ? launch.shared : launch.buffers;
  std::string problem =
      shadow.access(address, bytes, kind & kWrites,
                    {seen->block, seen->thread, launch.barriers}, isShared);
  if (!problem.empty())
    fail("at byte " + std::to_string(offset) +
         (isShared ? " of shared memory" : " of a buffer") + problem);
  if (EmulatorObserver notify = observer.load(std::memory_order_relaxed))
    notify(address, bytes, kind);
  return address;
}

/// Runs one block whose threads may wait for one another.
void runBlock(const EmulatedKernel &kernel, void **buffers, int32_t number,
              std::vector<uint64_t> &shared) {
  thread_local context::pooled_fixedsize_stack stacks(kStackBytes);
  Block block;
  block.kernel = &kernel;
  block.threads.resize(static_cast<size_t>(kernel.threads));
  std::vector<size_t> order(block.threads.size());
  std::iota(order.begin(), order.end(), 0);
  uint64_t start = seed.load(std::memory_order_relaxed);
  std::mt19937_64 random(start + static_cast<uint64_t>(number));
  for (size_t i = 0; i < order.size(); ++i) {
    Thread &thread = block.threads[i];
    thread.seen = {&emulatorFunctions(), shared.data(), static_cast<int32_t>(i),
                   number};
    thread.block = &block;
    thread.state = State::Ready;
    thread.own =
        context::fiber(std::allocator_arg, stacks,
                       [&thread, &kernel, buffers](context::fiber &&scheduler) {
                         thread.scheduler = std::move(scheduler);
                         kernel.body(&thread.seen, buffers);
                         thread.state = State::Done;
                         return std::move(thread.scheduler);
                       });
  }
  while (true) {
    if (start != 0)
      std::shuffle(order.begin(), order.end(), random);
    bool isDone = true;
    for (size_t i : order) {
      Thread &thread = block.threads[i];
      if (block.failed && thread.state != State::Done)
        thread.state = State::Ready;
      if (thread.state == State::Ready)
        thread.own = std::move(thread.own).resume();
      isDone &= thread.state == State::Done;
    }
    if (isDone)
      return;
    if (block.failed)
      continue;
    if (!block.completeShuffles() && !block.passBarrier() && !block.failed)
      block.fail(block.describeWaits());
  }
}

void run(const EmulatedKernel *kernel, void **buffers, int64_t begin,
         int64_t end) {
  launch.kernel = kernel;
  launch.arguments = buffers;
  launch.buffers.forget();
  if (kernel->sharedBytes > kernel->mostSharedBytes)
    report(*kernel, static_cast<int32_t>(begin),
           "it has " + std::to_string(kernel->sharedBytes) +
               " bytes of shared memory: a block of its GPU has at most " +
               std::to_string(kernel->mostSharedBytes));
  // What is not written holds no number that anybody would expect.
  std::vector<uint64_t> shared;
  for (int64_t iteration = begin; iteration < end; ++iteration) {
    if (kernel->isByBlock) {
      shared.assign(static_cast<size_t>(kernel->sharedBytes + 7) / 8,
                    0x7ff7dead7fa0deadULL);
      launch.shared.forget();
      launch.barriers = 0;
      runBlock(*kernel, buffers, static_cast<int32_t>(iteration), shared);
      continue;
    }
    EmulatedThread thread = {&emulatorFunctions(), nullptr,
                             static_cast<int32_t>(iteration % kernel->threads),
                             static_cast<int32_t>(iteration / kernel->threads)};
    kernel->body(&thread, buffers);
  }
}

} // namespace

const EmulatorFunctions &emulatorFunctions() {
  static constexpr EmulatorFunctions functions = {run, waitAtBarrier, shuffle,
                                                  access};
  return functions;
}

void setEmulatorObserver(EmulatorObserver value) {
  observer.store(value, std::memory_order_relaxed);
}

void setEmulatorSeed(uint64_t value) {
  seed.store(value, std::memory_order_relaxed);
}

std::optional<std::string> takeEmulatorFault() {
  std::lock_guard lock(fault().mutex);
  fault().any = false;
  return std::exchange(fault().text, std::nullopt);
}

bool hasEmulatorFault() { return fault().any.load(std::memory_order_relaxed); }

} // namespace whale::runtime
