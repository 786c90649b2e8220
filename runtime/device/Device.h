//===- Device.h - What a rank computes on -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface between the executor and the hardware: one object for each
// rank, used by that rank's thread alone. The executor names memory by
// allocations and offsets; addresses are known to devices, and to the
// transports that they hand them to. Every device passes
// unittests/Runtime/DeviceConformance.cpp.
//
// Cost: an operation is a virtual call, which finds the addresses of its
// buffers by their indices. They are computed when a table is filled, linear in
// its buffers: for a class once in each run, for a function each time that it
// is run. What operations take is the device's.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_DEVICE_H
#define WHALE_RUNTIME_DEVICE_DEVICE_H

#include "program/BoundProgram.h"
#include "transport/Transport.h"
#include "whale/Runtime/Array.h"
#include "whale/Runtime/Trace.h"

namespace whale::runtime {

/// Where memory lies. To a device that computes in the host's memory all are
/// one.
enum class MemorySpace : uint8_t { Device, PinnedHost, Host };

/// What is in an allocation from an offset on; nothing without an allocation.
struct Region {
  const Buffer *allocation = nullptr;
  int64_t offset = 0;
  /// Of memory that the device has not allocated: whether operations read what
  /// is there before the run, and whether what they write there is wanted.
  bool isRead = true, isWritten = true;
  /// Whether it is of an array, of which the host reads nothing but by
  /// Buffer::host: a device of its own memory may keep the bytes there.
  bool isOfArray = false;
};

/// The buffers that instructions name by their indices. A device finds their
/// addresses when it fills the table, which costs instructions nothing then.
class BufferTable {
public:
  size_t size() const { return addresses.size(); }

private:
  friend class Device;
  std::vector<void *> addresses;
};

/// Reached when what was put on a queue before it is done.
struct Event {
  Queue queue = Queue::Compute;
  int64_t number = 0;
};

/// Operations of one queue run one after the other. Those of two queues are in
/// no order but that of the events that one of them waits for. A method that
/// takes a queue returns when the operation is on it, which may be long before
/// it runs; an operation that fails lets a later method throw its Error.
///
/// Instructions keep their address for the life of the program: a device may
/// prepare one when it first sees it and find it again by its address. Tables
/// may change as soon as a method has returned.
class Device {
public:
  virtual ~Device() = default;

  /// Called once on the rank's thread, before anything else.
  virtual void attachThread() = 0;
  /// Makes ready for the next run; no rank is inside a device of the program.
  /// Not before a run that may be repeated behind one that was left.
  virtual void reset() = 0;
  /// Returns when all queues are done; the rank puts nothing more on them in
  /// this run.
  virtual void finish() = 0;
  /// The same, but a run that was repeated may be left on the queues: what of
  /// it is in memory of others has been read, and the next one goes behind it.
  /// Returns what says whether it is over, or throws the Error that has ended
  /// it, from any thread; null if nothing was left.
  virtual std::function<bool()> leave() {
    finish();
    return nullptr;
  }

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  /// Memory for the life of the device, aligned to 64 bytes. Throws Error when
  /// there is no more.
  virtual std::shared_ptr<Buffer> allocate(MemorySpace space,
                                           int64_t bytes) = 0;
  /// Constants that are in the host's memory, where the device can read them.
  virtual std::shared_ptr<Buffer> adoptConstants(const void *data,
                                                 int64_t bytes) = 0;
  /// What is in memory of others is read after this, before the first operation
  /// of a run, and written until the run is finished.
  virtual void bind(BufferTable &table, std::span<const Region> regions) = 0;
  /// Fills a table with entries of another one.
  virtual void select(BufferTable &table, const BufferTable &from,
                      std::span<const BufferIndex> indices) = 0;

  /// `giveBack` frees what the caller keeps in the device's memory from run to
  /// run, and returns whether there was any. The device calls it, from any
  /// thread, when somebody else needs that memory, until it is given null.
  virtual void lend(std::function<bool()> /*giveBack*/) {}
  /// Frees what the device itself keeps from run to run; for `giveBack`, while
  /// no run is under way but one that was left, whose end it waits for.
  virtual void giveBack() {}

  /// The memory that operations want for themselves, one after the other.
  virtual int64_t workspaceBytes() const { return 0; }
  /// Gives it, at least so much, before `bind`; without it a device takes some.
  virtual void useWorkspace(const std::shared_ptr<Buffer> & /*memory*/) {}

  //===--------------------------------------------------------------------===//
  // Queues
  //===--------------------------------------------------------------------===//

  virtual Event record(Queue queue) = 0;
  /// What is put on the queue from now on runs after the event.
  virtual void wait(Queue queue, Event event) = 0;

  virtual void launch(Queue queue, const KernelLaunch &launch,
                      const BufferTable &table) = 0;
  virtual void matmul(Queue queue, const Matmul &matmul,
                      const BufferTable &table) = 0;
  virtual void convolution(Queue queue, const Convolution &convolution,
                           const BufferTable &table) = 0;
  virtual void call(Queue queue, const Call &call,
                    const BufferTable &table) = 0;
  /// The ranges are equal or disjoint.
  virtual void copy(Queue queue, const Copy &copy,
                    const BufferTable &table) = 0;

  /// The integer or truth value that a buffer holds when all that is on the
  /// queue is done; 0 for other types.
  virtual int64_t readInteger(Queue queue, const BufferTable &table,
                              BufferIndex buffer, DType dtype) = 0;

  //===--------------------------------------------------------------------===//
  // Transfers
  //===--------------------------------------------------------------------===//

  /// Lets the queue post the rank's part of a channel: the transfer begins some
  /// time after. Transfers are known by their numbers until they are waited
  /// for.
  virtual void start(Queue queue, const Start &start,
                     const BufferTable &table) = 0;
  /// The same for a copy of so many bytes between the memories of the host and
  /// the device. Copies are done in the order of their starts.
  virtual void startCopy(Queue queue, const Start &start, int64_t bytes,
                         const BufferTable &table) = 0;
  /// What is put on the queue from now on runs after the transfer is done with
  /// the rank's buffers. The seconds in the result are those that this method
  /// has waited.
  virtual Traffic waitFor(Queue queue, int64_t transfer) = 0;

  //===--------------------------------------------------------------------===//
  // Runs that are alike
  //===--------------------------------------------------------------------===//

  /// Puts all on the queues that a recorded part of a run of these buffers has
  /// put there; false if there is none. Parts of a run are known by their
  /// numbers.
  virtual bool repeat(const BufferTable &, size_t) { return false; }
  /// What is put on the compute queue until `endRecording` is all of that part
  /// of a run of these buffers, and will be the same in each: a device may
  /// record it, which runs it as late as then. Whether it does. Runs that were
  /// left are over when this returns.
  virtual bool beginRecording(const BufferTable &, size_t) { return false; }
  virtual void endRecording() {}

  //===--------------------------------------------------------------------===//
  // Costs
  //===--------------------------------------------------------------------===//

  using Clock = std::chrono::steady_clock;
  /// Marks, counted from 0, what was put on a queue before; not while a run is
  /// recorded. The first one may wait for the queues.
  virtual size_t mark(Queue) {
    marks.push_back(Clock::now());
    return marks.size() - 1;
  }
  /// When the queues had done what is marked, for which it waits.
  virtual std::span<const Clock::time_point> timesOfMarks() { return marks; }
  /// The next mark is number 0.
  void clearMarks() { marks.clear(); }

  /// The least seconds for so much arithmetic (in products of `product`, else
  /// in f32) and so many bytes, at peaks that are measured when first asked
  /// for.
  virtual double leastSeconds(double flops, double bytes,
                              std::optional<DType> product) = 0;

  /// Whose algorithm computes an operation that has run, and which, where a
  /// device has several: "cuBLASLt 66, tile 20".
  virtual std::string algorithmOf(const Instruction &) const { return ""; }

  /// Memory that the device has taken for its own purposes so far.
  virtual int64_t scratchBytes() const = 0;

  /// Of a device that moves transfers about: how many of this run it has ended
  /// behind operations that are behind their starts.
  virtual std::optional<int64_t> movedTransfers() const { return std::nullopt; }

protected:
  std::vector<Clock::time_point> marks;

  /// For devices alone.
  static std::vector<void *> &addressesOf(BufferTable &table) {
    return table.addresses;
  }
  static const std::vector<void *> &addressesOf(const BufferTable &table) {
    return table.addresses;
  }
  /// By part of the channel.
  static std::vector<PartBuffers> buffersOf(const Start &start,
                                            const BufferTable &table) {
    std::vector<PartBuffers> buffers;
    buffers.reserve(start.parts.size());
    auto at = [&](std::optional<BufferIndex> index) {
      return index ? table.addresses[*index] : nullptr;
    };
    for (const Start::Ends &part : start.parts)
      buffers.push_back({at(part.src), at(part.dst)});
    return buffers;
  }
};

/// The threads of a rank on the processor, and what its operations use in turn:
/// the devices of several programs may have one.
struct CpuContext;
std::shared_ptr<CpuContext> createCpuContext(int64_t threads);

class HostLinks;

/// A device of these CPU threads, which runs operations at once. Its transfers
/// go through `transport`, which outlives it; a device without one starts none.
/// Copies between host and device take as long as on `links`, where these are
/// given.
std::unique_ptr<Device>
createCpuDevice(std::shared_ptr<CpuContext> context,
                Transport *transport = nullptr, int64_t rank = 0,
                std::shared_ptr<HostLinks> links = nullptr);
inline std::unique_ptr<Device> createCpuDevice(int64_t threads,
                                               Transport *transport = nullptr,
                                               int64_t rank = 0) {
  return createCpuDevice(createCpuContext(threads), transport, rank);
}

/// For tests: the devices of all ranks of a program, each a CPU device whose
/// queues run as late, and in as odd an order, as events and waits allow
/// (device/late/LateQueues.h). The same seed gives the same order.
std::vector<std::unique_ptr<Device>>
createLateDevices(const format::Program &program, int64_t threads,
                  Transport &transport, uint64_t seed);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_DEVICE_H
