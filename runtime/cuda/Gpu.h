//===- Gpu.h - One GPU as a rank uses it ------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_GPU_H
#define WHALE_RUNTIME_CUDA_GPU_H

#include "cuda/Libraries.h"
#include "whale/Runtime/Array.h"
#include "whale/Runtime/Trace.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>

namespace whale::runtime::cuda {

/// What a GPU is, before it is used.
struct GpuFacts {
  /// As the driver counts them.
  int number = 0;
  /// "NVIDIA H100".
  std::string name;
  /// 90 for sm_90.
  int capability = 0;
  int64_t memoryBytes = 0;
};
/// All that this process sees. Throws Error.
std::vector<GpuFacts> findGpus(const Libraries &libraries);

/// Memory by its first address. From any thread.
class MemoryRanges {
public:
  void add(Address address, int64_t bytes) {
    std::lock_guard lock(mutex);
    ranges.emplace(address, std::max<int64_t>(bytes, 1));
  }
  void remove(Address address) {
    std::lock_guard lock(mutex);
    ranges.erase(address);
  }
  bool contains(Address address) const {
    std::lock_guard lock(mutex);
    auto after = ranges.upper_bound(address);
    if (after == ranges.begin())
      return false;
    auto [begin, bytes] = *std::prev(after);
    return address < begin + static_cast<Address>(bytes);
  }

private:
  mutable std::mutex mutex;
  std::map<Address, int64_t> ranges;
};

/// The context, the streams and the events of a rank. Its methods are called on
/// threads that have attached themselves; they throw Error with the name of the
/// function that failed and the driver's text.
class Gpu {
public:
  /// Throws Error where there is no GPU of that number.
  Gpu(const Libraries &libraries, int number);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  /// Makes its context that of the calling thread.
  void attach() const;
  /// For destructors: whether there is still anything to give back to.
  bool tryAttach() const noexcept {
    return !driver.ctxSetCurrent.function(context);
  }

  template <typename... Parameters, typename... Arguments>
  void call(const system::Entry<Status(Parameters...)> &entry,
            Arguments... arguments) const {
    check(entry.symbol, tryCall(entry, arguments...));
  }
  /// Its status. Where the GPU has too little memory for it, as for modules and
  /// recorded graphs, it is called again when lenders have given some back.
  template <typename... Parameters, typename... Arguments>
  Status tryCall(const system::Entry<Status(Parameters...)> &entry,
                 Arguments... arguments) const {
    Status status = entry.function(arguments...);
    if (status == kOutOfMemory)
      askLenders([&] {
        status = entry.function(arguments...);
        return status != kOutOfMemory;
      });
    return status;
  }
  /// The same for libraries' own objects, and for what they compute without
  /// reading what they write, as they load a kernel when it is first needed:
  /// whatever one says, it may lack memory.
  template <typename... Parameters, typename... Arguments>
  int tryLibrary(const system::Entry<int(Parameters...)> &entry,
                 Arguments... arguments) const {
    int status = entry.function(arguments...);
    if (status)
      askLenders([&] { return !(status = entry.function(arguments...)); });
    return status;
  }
  /// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  std::string describe(Status status) const;
  [[noreturn]] void fail(const char *function, Status status) const;
  void check(const char *function, Status status) const {
    if (status)
      fail(function, status);
  }

  /// "GPU 0 (NVIDIA H100)".
  const std::string &name() const { return description; }
  /// "NVIDIA H100", which other GPUs may be, too.
  const std::string &model() const { return modelName; }
  /// 90 for sm_90.
  int capability() const { return arch; }
  const DeviceId &id() const { return uuid; }
  /// Whether memory of one is memory of the other.
  bool sharesWith(const Gpu &other) const {
    return context == other.context && &driver == &other.driver;
  }
  int multiprocessors() const { return processors; }

  /// At least one byte, aligned to 256. Where less is free, lenders of the GPU
  /// give back what they keep; if that is not enough, it is refused, with
  /// numbers.
  Address allocate(int64_t bytes) const;
  void *allocatePinned(int64_t bytes) const;

  /// The kernel `name` of a text of PTX, as long as `module` is loaded.
  Function load(const std::string &text, const std::string &name,
                Module &module) const;

  Stream stream(Queue queue) const {
    return queue == Queue::Compute ? compute : communication;
  }
  EventHandle newEvent(unsigned flags = kEventDisableTiming) const;
  void record(EventHandle event, Stream stream) const {
    call(driver.eventRecord, event, stream);
  }
  void wait(Stream stream, EventHandle event) const {
    call(driver.streamWaitEvent, stream, event, 0u);
  }
  void copy(void *dst, const void *src, int64_t bytes, Stream stream) const;
  /// Return when what was put there before is done; `meanwhile` is called again
  /// and again.
  void synchronize(Stream stream,
                   const std::function<void()> &meanwhile = {}) const;
  void synchronize(EventHandle event,
                   const std::function<void()> &meanwhile = {}) const;
  bool isReached(EventHandle event) const;
  /// What `put` puts on the stream takes, the shortest of four times.
  double seconds(Stream stream, const std::function<void()> &put) const;

  /// Called with true again and again by a thread that waits for the GPU, and
  /// with false when it waits no more; what it throws ends the waiting.
  std::function<void(bool isWaiting)> watch;

  const Libraries &libraries;
  const Driver &driver;
  const BlasLt &blas;
  Stream compute = nullptr, communication = nullptr;
  /// For what moves between the host and the GPU.
  Stream copies = nullptr;
  /// What devices have allocated for the rank.
  const std::shared_ptr<MemoryRanges> owned = std::make_shared<MemoryRanges>();

private:
  friend class Lender;
  int device = 0;
  /// Asks lenders of the GPU one after the other, and calls `isEnough` after
  /// each that has given memory back, until it says so.
  void askLenders(const std::function<bool()> &isEnough) const;
  template <typename Handle>
  void wait(const system::Entry<Status(Handle)> &whole,
            const system::Entry<Status(Handle)> &query, Handle handle,
            const std::function<void()> &meanwhile) const;

  Context context = nullptr;
  std::string modelName, description;
  DeviceId uuid = {};
  int arch = 0, processors = 1;
};

/// Somebody who keeps memory of a GPU that he can do without for now. While it
/// lives, `giveBack` is called where a call of anyone in this process finds too
/// little free memory there: from any thread, and perhaps by its own owner's
/// allocation. It frees what is not in use, allocates nothing, and
/// returns whether it has freed anything.
class Lender {
public:
  /// Those that are quick to have theirs again are asked first.
  enum class Turn : uint8_t { First, Last };
  Lender(const Gpu &gpu, Turn turn, std::function<bool()> giveBack);
  /// Waits for a call that is under way.
  ~Lender();
  Lender(const Lender &) = delete;
  Lender &operator=(const Lender &) = delete;

  struct Entry;

private:
  friend class Gpu;
  static std::vector<std::shared_ptr<Entry>> findAll(const Gpu &gpu);
  std::shared_ptr<Entry> entry;
};

inline Address addressOf(const void *data) {
  return reinterpret_cast<Address>(data);
}

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_GPU_H
