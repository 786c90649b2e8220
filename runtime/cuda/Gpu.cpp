//===- Gpu.cpp - One GPU as a rank uses it --------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the entry points of the driver, and the number of a GPU. Out: its context
// and streams. Where a function of the driver fails, an Error has the GPU's
// name and the driver's text. Where a watch is set, a thread that waits asks
// the driver again and again, and calls the watch in between; else the driver
// blocks it. Memory that
// others of the process keep without need is asked back where it is short: one
// list of all lenders, those that give quickly first. Cost: a call of the
// driver each; one that finds too little memory asks each lender of the GPU
// once.
//
//===----------------------------------------------------------------------===//

#include "cuda/Gpu.h"

#include "cuda/Backoff.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>

namespace whale::runtime::cuda {

/// Asks the driver before there is a GPU that an error could name.
template <typename... Parameters, typename... Arguments>
static void ask(const system::Entry<Status(Parameters...)> &entry,
                Arguments... arguments) {
  if (Status status = entry.function(arguments...))
    throw Error(std::string("NVIDIA's driver: ") + entry.symbol + ": status " +
                std::to_string(status));
}

static GpuFacts findFacts(const Driver &driver, int number, int device) {
  GpuFacts facts;
  facts.number = number;
  char text[256] = {};
  ask(driver.deviceGetName, text, 255, device);
  facts.name = text;
  int major = 0, minor = 0;
  ask(driver.deviceGetAttribute, &major, kCapabilityMajor, device);
  ask(driver.deviceGetAttribute, &minor, kCapabilityMinor, device);
  facts.capability = major * 10 + minor;
  size_t bytes = 0;
  ask(driver.deviceTotalMem, &bytes, device);
  facts.memoryBytes = static_cast<int64_t>(bytes);
  return facts;
}

std::vector<GpuFacts> findGpus(const Libraries &libraries) {
  const Driver &driver = libraries.driver;
  int count = 0;
  ask(driver.init, 0u);
  ask(driver.deviceGetCount, &count);
  std::vector<GpuFacts> all;
  for (int number = 0; number < count; ++number) {
    int device = 0;
    ask(driver.deviceGet, &device, number);
    all.push_back(findFacts(driver, number, device));
  }
  return all;
}

Gpu::Gpu(const Libraries &libraries, int number)
    : libraries(libraries), driver(libraries.driver), blas(libraries.blas) {
  description = "GPU " + std::to_string(number);
  int count = 0;
  call(driver.init, 0u);
  call(driver.deviceGetCount, &count);
  if (number >= count)
    throw Error("there is no GPU " + std::to_string(number) +
                ": the driver finds " + std::to_string(count));
  call(driver.deviceGet, &device, number);
  GpuFacts facts = findFacts(driver, number, device);
  modelName = facts.name;
  description += " (" + modelName + ")";
  arch = facts.capability;
  call(driver.deviceGetAttribute, &processors, kMultiprocessorCount, device);
  call(driver.deviceGetUuid, &uuid, device);
  call(driver.primaryCtxRetain, &context, device);
  attach();
  for (Stream *stream : {&compute, &communication, &copies})
    call(driver.streamCreate, stream, unsigned(kStreamNonBlocking));
}

Gpu::~Gpu() {
  // What fails here has failed before, where it was said.
  driver.ctxSetCurrent.function(context);
  for (Stream stream : {compute, communication, copies})
    if (stream) {
      driver.streamSynchronize.function(stream);
      driver.streamDestroy.function(stream);
    }
  driver.primaryCtxRelease.function(device);
}

void Gpu::attach() const { call(driver.ctxSetCurrent, context); }

std::string Gpu::describe(Status status) const {
  const char *name = nullptr, *text = nullptr;
  driver.getErrorName.function(status, &name);
  driver.getErrorString.function(status, &text);
  return std::string(text ? text : "unknown error") + " (" +
         (name ? std::string(name) : std::to_string(status)) + ")";
}

void Gpu::fail(const char *function, Status status) const {
  // Errors of kernels, which the next call of any function returns.
  bool isLate = status >= kIllegalAddress && status <= kLaunchFailed;
  throw Error(description + ": " + function + ": " + describe(status) +
              (isLate ? "; an operation before this one may have failed: set "
                        "WHALE_CUDA_SYNCHRONOUS=1 to see which"
                      : ""));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

struct Lender::Entry {
  /// Held while it gives, and when it goes.
  std::mutex mutex;
  std::function<bool()> giveBack;
  const Driver *driver;
  int device;
};

namespace {
struct Lenders {
  std::mutex mutex;
  /// In the order in which they are asked.
  std::deque<std::weak_ptr<Lender::Entry>> entries;
};
} // namespace

/// Of the process; devices may outlive static objects.
static Lenders &lenders() {
  static auto *all = new Lenders;
  return *all;
}

Lender::Lender(const Gpu &gpu, Turn turn, std::function<bool()> giveBack)
    : entry(std::make_shared<Entry>()) {
  entry->giveBack = std::move(giveBack);
  entry->driver = &gpu.driver;
  entry->device = gpu.device;
  Lenders &all = lenders();
  std::lock_guard lock(all.mutex);
  std::erase_if(all.entries, [](const auto &each) { return each.expired(); });
  if (turn == Turn::First)
    all.entries.push_front(entry);
  else
    all.entries.push_back(entry);
}

Lender::~Lender() {
  std::lock_guard lock(entry->mutex);
  entry->giveBack = nullptr;
}

std::vector<std::shared_ptr<Lender::Entry>> Lender::findAll(const Gpu &gpu) {
  Lenders &all = lenders();
  std::lock_guard lock(all.mutex);
  std::vector<std::shared_ptr<Entry>> found;
  for (const auto &each : all.entries)
    if (std::shared_ptr<Entry> entry = each.lock();
        entry && entry->driver == &gpu.driver && entry->device == gpu.device)
      found.push_back(std::move(entry));
  return found;
}

static std::string inMiB(size_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

void Gpu::askLenders(const std::function<bool()> &isEnough) const {
  for (const auto &lender : Lender::findAll(*this)) {
    std::unique_lock lock(lender->mutex);
    bool hasGiven = lender->giveBack && lender->giveBack();
    lock.unlock();
    if (!hasGiven)
      continue;
    attach(); // the lender may have made another context the thread's
    if (isEnough())
      return;
  }
}

Address Gpu::allocate(int64_t bytes) const {
  auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  size_t free = 0, total = 0;
  Address address = 0;
  auto tryOnce = [&]() -> Status {
    call(driver.memGetInfo, &free, &total);
    return size > free ? Status(kOutOfMemory)
                       : driver.memAlloc.function(&address, size);
  };
  Status status = tryOnce();
  if (status == kOutOfMemory)
    askLenders([&] { return (status = tryOnce()) != kOutOfMemory; });
  if (status == kOutOfMemory)
    throw Error(description + " has too little free memory: " + inMiB(size) +
                " more are needed, " + inMiB(free) + " of its " + inMiB(total) +
                " are free");
  check(driver.memAlloc.symbol, status);
  return address;
}

void *Gpu::allocatePinned(int64_t bytes) const {
  void *data = nullptr;
  call(driver.memHostAlloc, &data,
       static_cast<size_t>(std::max<int64_t>(bytes, 1)),
       unsigned(kHostAllocPortable));
  return data;
}

Function Gpu::load(const std::string &text, const std::string &name,
                   Module &module) const {
  call(driver.moduleLoadDataEx, &module,
       static_cast<const void *>(text.c_str()), 0u, static_cast<int *>(nullptr),
       static_cast<void **>(nullptr));
  Function function = nullptr;
  call(driver.moduleGetFunction, &function, module, name.c_str());
  return function;
}

EventHandle Gpu::newEvent(unsigned flags) const {
  EventHandle event = nullptr;
  call(driver.eventCreate, &event, flags);
  return event;
}

bool Gpu::isReached(EventHandle event) const {
  Status status = driver.eventQuery.function(event);
  if (status == kNotReady)
    return false;
  check(driver.eventQuery.symbol, status);
  return true;
}

template <typename Handle>
void Gpu::wait(const system::Entry<Status(Handle)> &whole,
               const system::Entry<Status(Handle)> &query, Handle handle,
               const std::function<void()> &meanwhile) const {
  if (!watch && !meanwhile)
    return call(whole, handle);
  Status status;
  Backoff backoff;
  while ((status = query.function(handle)) == kNotReady) {
    if (watch)
      watch(true);
    if (meanwhile)
      meanwhile();
    backoff.pause();
  }
  if (watch)
    watch(false);
  check(query.symbol, status);
}

void Gpu::synchronize(Stream stream,
                      const std::function<void()> &meanwhile) const {
  wait(driver.streamSynchronize, driver.streamQuery, stream, meanwhile);
}
void Gpu::synchronize(EventHandle event,
                      const std::function<void()> &meanwhile) const {
  wait(driver.eventSynchronize, driver.eventQuery, event, meanwhile);
}

void Gpu::copy(void *dst, const void *src, int64_t bytes, Stream stream) const {
  if (bytes > 0)
    call(driver.memcpyAsync, addressOf(dst), addressOf(src),
         static_cast<size_t>(bytes), stream);
}

double Gpu::seconds(Stream stream, const std::function<void()> &put) const {
  using Clock = std::chrono::steady_clock;
  double least = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    synchronize(stream);
    auto begin = Clock::now();
    put();
    synchronize(stream);
    double time = std::chrono::duration<double>(Clock::now() - begin).count();
    least = attempt == 0 ? time : std::min(least, time);
  }
  return std::max(least, 1e-9);
}

} // namespace whale::runtime::cuda
