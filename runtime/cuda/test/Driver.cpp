//===- Driver.cpp - The driver's functions of a test machine --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In come the calls that cuda.h declares; what they do to the machine goes out
// (Machine.h). Each function takes the machine's lock, returns the error that
// the GPU has had, checks its parameters as CUDA documents them, and puts what
// it asks for on a stream. Those that wait let operations run. Events hold how
// far a stream has come, and its clock. The addresses of memory are those of
// the host. A call costs a look into a map for each handle and address.
//
//===----------------------------------------------------------------------===//

#include "cuda/test/DriverCalls.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace whale::runtime::cuda::test {

static thread_local int own = -1;
int currentGpu() { return own; }

Status errorOf(Machine &machine, const char *call) {
  if (own < 0)
    return machine.fault(-1, std::string(call) + " without a context",
                         kInvalidContext);
  return machine.gpus[own].error;
}

Status forbidCapture(Machine &machine, const char *call) {
  if (Status status = errorOf(machine, call))
    return status;
  if (machine.isCapturing(own))
    return machine.fault(own, std::string(call) + " during a capture",
                         kCaptureUnsupported);
  return 0;
}

Address shift(Machine &machine, Address address) {
  return machine.mutates(Mutation::ShiftAddress) ? address + 16 : address;
}

namespace {

constexpr Address kAlignment = 256;

Status init(unsigned) { return 0; }
Status getErrorName(Status, const char **text) {
  *text = "CUDA_ERROR_OF_TEST";
  return 0;
}
Status getErrorString(Status status, const char **text) {
  *text =
      status == kOutOfMemory ? "out of memory" : Machine::get().lastFaultText();
  return 0;
}
Status driverGetVersion(int *version) {
  *version = Machine::get().options.driverVersion;
  return 0;
}
Status deviceGetCount(int *count) {
  *count = Machine::get().options.gpus;
  return 0;
}
Status deviceGet(int *device, int ordinal) {
  if (ordinal < 0 || ordinal >= Machine::get().options.gpus)
    return kInvalidDevice;
  *device = ordinal;
  return 0;
}
Status deviceGetName(char *name, int length, int) {
  std::strncpy(name, "Test GPU", static_cast<size_t>(length));
  return 0;
}
Status deviceGetUuid(DeviceId *id, int device) {
  *id = {};
  id->bytes[0] = static_cast<char>(device);
  return 0;
}
Status deviceGetAttribute(int *value, int attribute, int device) {
  int capability = Machine::get().capabilityOf(device);
  *value = attribute == kCapabilityMajor       ? capability / 10
           : attribute == kCapabilityMinor     ? capability % 10
           : attribute == kMultiprocessorCount ? 2
                                               : 0;
  return 0;
}
Status deviceTotalMem(size_t *bytes, int device) {
  *bytes = static_cast<size_t>(Machine::get().totalBytesOf(device));
  return 0;
}
Status primaryCtxRetain(Context *context, int device) {
  *context = reinterpret_cast<Context>(static_cast<uintptr_t>(device) + 1);
  return 0;
}
Status primaryCtxRelease(int) { return 0; }
Status ctxSetCurrent(Context context) {
  own = static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1;
  return 0;
}

Status memGetInfo(size_t *free, size_t *total) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuMemGetInfo"))
    return status;
  *total = static_cast<size_t>(machine.totalBytesOf(own));
  *free = *total - static_cast<size_t>(machine.gpus[own].usedBytes);
  return 0;
}

Address allocate(Machine &machine, size_t bytes, bool isPinned) {
  size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void *data = std::aligned_alloc(kAlignment, whole);
  if (!data)
    return 0;
  // What nobody has written is large in every type.
  std::memset(data, 0x7F, whole);
  auto address = reinterpret_cast<Address>(data);
  machine.memory[address] = {static_cast<int64_t>(bytes), own, isPinned};
  return address;
}

Status memAlloc(Address *address, size_t bytes) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = forbidCapture(machine, "cuMemAlloc"))
    return status;
  if (bytes == 0)
    return machine.fault(own, "cuMemAlloc of no bytes");
  int64_t &used = machine.gpus[own].usedBytes;
  if (static_cast<int64_t>(bytes) > machine.totalBytesOf(own) - used)
    return kOutOfMemory;
  *address = allocate(machine, bytes, false);
  used += static_cast<int64_t>(bytes);
  return *address ? 0 : kOutOfMemory;
}

Status release(Address address, bool isPinned, const char *call) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (own >= 0 && machine.isCapturing(own))
    return machine.fault(own, std::string(call) + " during a capture",
                         kCaptureUnsupported);
  auto it = machine.memory.find(address);
  if (it == machine.memory.end() || it->second.isPinned != isPinned)
    return machine.fault(own, std::string(call) + " of what is no allocation");
  Machine::Range range = it->second;
  for (const auto &[handle, stream] : machine.streams)
    for (const Operation &operation : stream->operations)
      for (const Access &access : operation.accesses)
        if (access.address < address + static_cast<Address>(range.bytes) &&
            address < access.address + static_cast<Address>(access.bytes))
          return machine.fault(own, std::string(call) + " of memory that " +
                                        operation.what + " has yet to use");
  machine.shadow.forget(address, range.bytes);
  if (!isPinned)
    machine.gpus[range.gpu].usedBytes -= range.bytes;
  machine.memory.erase(it);
  std::free(reinterpret_cast<void *>(address));
  return 0;
}
Status memFree(Address address) { return release(address, false, "cuMemFree"); }
Status memFreeHost(void *data) {
  return release(reinterpret_cast<Address>(data), true, "cuMemFreeHost");
}
Status memHostAlloc(void **data, size_t bytes, unsigned) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = forbidCapture(machine, "cuMemHostAlloc"))
    return status;
  *data = reinterpret_cast<void *>(allocate(machine, bytes, true));
  return *data ? 0 : kOutOfMemory;
}

Status memcpyAsync(Address dst, Address src, size_t bytes, Stream handle) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuMemcpyAsync"))
    return status;
  StreamState *stream = find(machine, machine.streams, handle, "cuMemcpyAsync");
  if (!stream)
    return kInvalidHandle;
  dst = shift(machine, dst);
  auto size = static_cast<int64_t>(bytes);
  for (Address address : {src, dst})
    if (!machine.isMemory(stream->gpu, address, size))
      return machine.fault(own, "a copy of " + std::to_string(bytes) +
                                    " bytes whose memory is not the GPU's, not "
                                    "pinned, or was freed");
  machine.put(*stream, {"a copy of " + std::to_string(bytes) + " bytes",
                        {{src, size, false}, {dst, size, true}},
                        [=] {
                          std::memmove(reinterpret_cast<void *>(dst),
                                       reinterpret_cast<void *>(src), bytes);
                        }});
  return machine.gpus[own].error;
}

Status streamCreate(Stream *handle, unsigned flags) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = forbidCapture(machine, "cuStreamCreate"))
    return status;
  if (flags != kStreamNonBlocking)
    return machine.fault(own, "a stream that waits for the legacy stream");
  *handle = newHandle<Stream>();
  auto state = std::make_unique<StreamState>();
  state->gpu = own;
  state->number = machine.madeStreams++;
  machine.streams[*handle] = std::move(state);
  return 0;
}
Status streamDestroy(Stream handle) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  StreamState *stream =
      find(machine, machine.streams, handle, "cuStreamDestroy");
  if (!stream)
    return kInvalidHandle;
  if (!stream->operations.empty() && !machine.gpus[own].error)
    machine.fault(own, "a stream is destroyed before it is done");
  machine.streams.erase(handle);
  return 0;
}
Status streamSynchronize(Stream handle) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuStreamSynchronize"))
    return status;
  StreamState *stream =
      find(machine, machine.streams, handle, "cuStreamSynchronize");
  if (!stream)
    return kInvalidHandle;
  if (stream->captured)
    return machine.fault(own, "cuStreamSynchronize during a capture",
                         kCaptureUnsupported);
  Status status =
      machine.runUntil(own, [&] { return stream->operations.empty(); });
  machine.gpus[own].host.join(stream->clock);
  return status;
}

Status streamQuery(Stream handle) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuStreamQuery"))
    return status;
  StreamState *stream = find(machine, machine.streams, handle, "cuStreamQuery");
  if (!stream)
    return kInvalidHandle;
  if (stream->captured)
    return machine.fault(own, "cuStreamQuery during a capture",
                         kCaptureUnsupported);
  machine.runSome(own);
  if (!stream->operations.empty())
    return machine.answerNotReady(own);
  machine.gpus[own].host.join(stream->clock);
  return machine.gpus[own].error;
}

Status streamWaitEvent(Stream handle, EventHandle event, unsigned) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuStreamWaitEvent"))
    return status;
  StreamState *stream =
      find(machine, machine.streams, handle, "cuStreamWaitEvent");
  EventState *state = find(machine, machine.events, event, "cuStreamWaitEvent");
  if (!stream || !state)
    return kInvalidHandle;
  if (stream->captured)
    return machine.fault(own, "a captured stream waits for an event outside",
                         kCaptureInvalidated);
  if (machine.mutates(Mutation::DropWait))
    return 0;
  // One that was not recorded is reached.
  if (!state->stream || state->stream == stream)
    return 0;
  Operation wait;
  wait.what = "a wait";
  wait.awaited = state->stream;
  wait.position = state->position;
  stream->clock.join(state->clock);
  machine.put(*stream, std::move(wait));
  return 0;
}

Status streamBeginCapture(Stream handle, int) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuStreamBeginCapture"))
    return status;
  StreamState *stream =
      find(machine, machine.streams, handle, "cuStreamBeginCapture");
  if (!stream)
    return kInvalidHandle;
  if (stream->captured)
    return machine.fault(own, "a stream is captured twice");
  stream->captured = std::make_unique<std::vector<Operation>>();
  return 0;
}
Status streamEndCapture(Stream handle, Graph *graph) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  StreamState *stream =
      find(machine, machine.streams, handle, "cuStreamEndCapture");
  if (!stream || !stream->captured)
    return machine.fault(own, "the end of a capture that has not begun");
  *graph = newHandle<Graph>();
  machine.graphs[*graph] = std::move(*stream->captured);
  stream->captured.reset();
  return machine.gpus[own].error;
}
Status graphInstantiate(GraphExec *executable, Graph graph,
                        unsigned long long) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  const auto *recorded =
      find(machine, machine.graphs, graph, "cuGraphInstantiate");
  if (!recorded)
    return kInvalidHandle;
  if (!machine.takeObject())
    return kOutOfMemory;
  *executable = newHandle<GraphExec>();
  auto &operations = machine.executables[*executable] = *recorded;
  for (size_t i = 1; i < operations.size(); ++i)
    operations[i].isOfSameCall = true;
  return 0;
}
Status graphLaunch(GraphExec executable, Stream handle) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuGraphLaunch"))
    return status;
  StreamState *stream = find(machine, machine.streams, handle, "cuGraphLaunch");
  const auto *operations =
      find(machine, machine.executables, executable, "cuGraphLaunch");
  if (!stream || !operations)
    return kInvalidHandle;
  ++machine.graphLaunches;
  for (const Operation &operation : *operations)
    machine.put(*stream, operation);
  return machine.gpus[own].error;
}
Status graphExecDestroy(GraphExec executable) {
  Status status =
      destroy(&Machine::executables, executable, "cuGraphExecDestroy");
  if (!status)
    Machine::get().giveObject();
  return status;
}
Status graphDestroy(Graph graph) {
  return destroy(&Machine::graphs, graph, "cuGraphDestroy");
}

Status eventCreate(EventHandle *event, unsigned flags) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuEventCreate"))
    return status;
  *event = newHandle<EventHandle>();
  machine.events[*event] = std::make_unique<EventState>();
  machine.events[*event]->hasTime = !(flags & kEventDisableTiming);
  return 0;
}
Status eventDestroy(EventHandle event) {
  return destroy(&Machine::events, event, "cuEventDestroy");
}
Status eventRecord(EventHandle event, Stream handle) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuEventRecord"))
    return status;
  StreamState *stream = find(machine, machine.streams, handle, "cuEventRecord");
  EventState *state = find(machine, machine.events, event, "cuEventRecord");
  if (!stream || !state)
    return kInvalidHandle;
  if (stream->captured)
    return machine.fault(own, "an event of a captured stream, which the test "
                              "machine does not know");
  Clock now = stream->clock;
  now.join(machine.gpus[own].host);
  if (machine.mutates(Mutation::DropRecord))
    return 0;
  state->stream = stream;
  state->position = stream->put;
  state->clock = now;
  state->recorded = std::chrono::steady_clock::now();
  return 0;
}
Status eventQuery(EventHandle event) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuEventQuery"))
    return status;
  EventState *state = find(machine, machine.events, event, "cuEventQuery");
  if (!state)
    return kInvalidHandle;
  machine.runSome(own);
  if (state->stream && state->stream->done < state->position)
    return machine.answerNotReady(own);
  machine.gpus[own].host.join(state->clock);
  return machine.gpus[own].error;
}
Status eventSynchronize(EventHandle event) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuEventSynchronize"))
    return status;
  EventState *state =
      find(machine, machine.events, event, "cuEventSynchronize");
  if (!state)
    return kInvalidHandle;
  Status status = machine.runUntil(own, [&] {
    return !state->stream || state->stream->done >= state->position;
  });
  machine.gpus[own].host.join(state->clock);
  return status;
}
Status eventElapsedTime(float *milliseconds, EventHandle begin,
                        EventHandle end) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuEventElapsedTime"))
    return status;
  std::array<std::chrono::steady_clock::time_point, 2> times;
  for (EventHandle event : {begin, end}) {
    EventState *state =
        find(machine, machine.events, event, "cuEventElapsedTime");
    if (!state || !state->stream || !state->hasTime)
      return kInvalidHandle;
    if (state->stream->done < state->position)
      return kNotReady;
    auto &time = times[event == end];
    time = state->recorded;
    if (state->position > 0)
      time = std::max(time, state->stream->ends[state->position - 1]);
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(times[1] - times[0]).count();
  return 0;
}

} // namespace

void fillDriver(Driver &driver) {
#define WHALE_CUDA_FILL(member, ...) driver.member.function = member;
  WHALE_CUDA_DRIVER_FUNCTIONS(WHALE_CUDA_FILL)
}

} // namespace whale::runtime::cuda::test
