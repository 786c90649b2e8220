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

#include "cuda/test/Machine.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace whale::runtime::cuda::test {

static thread_local int own = -1;
int currentGpu() { return own; }

namespace {

constexpr Address kAlignment = 256;
using Lock = std::lock_guard<std::recursive_mutex>;

/// The error of the GPU at hand, which every call returns.
Status errorOf(Machine &machine, const char *call) {
  if (own < 0)
    return machine.fault(-1, std::string(call) + " without a context",
                         kInvalidContext);
  return machine.gpus[own].error;
}

/// Faults where a call is made during a capture.
Status forbidCapture(Machine &machine, const char *call) {
  if (Status status = errorOf(machine, call))
    return status;
  if (machine.isCapturing(own))
    return machine.fault(own, std::string(call) + " during a capture",
                         kCaptureUnsupported);
  return 0;
}

template <typename Handles, typename Handle>
auto *find(Machine &machine, Handles &handles, Handle handle,
           const char *call) {
  auto it = handles.find(handle);
  if (it != handles.end())
    return it->second.get();
  machine.fault(own, std::string(call) + ": an unknown handle", kInvalidHandle);
  return static_cast<decltype(it->second.get())>(nullptr);
}

/// A handle that no other object has had.
template <typename Handle>
Handle newHandle() {
  static uintptr_t next = 0x100000;
  return reinterpret_cast<Handle>(next += 16);
}

Status init(unsigned) { return 0; }
Status getErrorName(Status, const char **text) {
  *text = "CUDA_ERROR_OF_TEST";
  return 0;
}
Status getErrorString(Status status, const char **text) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  static thread_local std::string copy;
  copy = status == kOutOfMemory      ? "out of memory"
         : machine.lastFault.empty() ? "error"
                                     : machine.lastFault;
  *text = copy.c_str();
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
Status deviceGetAttribute(int *value, int attribute, int) {
  int capability = Machine::get().options.capability;
  *value = attribute == kCapabilityMajor       ? capability / 10
           : attribute == kCapabilityMinor     ? capability % 10
           : attribute == kMultiprocessorCount ? 2
                                               : 0;
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
  *total = static_cast<size_t>(machine.options.memoryBytes);
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
  if (static_cast<int64_t>(bytes) > machine.options.memoryBytes - used)
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

/// Moves an address as a mutation says.
Address shift(Machine &machine, Address address) {
  return machine.mutates(Mutation::ShiftAddress) ? address + 16 : address;
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
    if (!machine.isMemory(address, size))
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
  state->number = machine.streams.empty()
                      ? 0
                      : std::prev(machine.streams.end())->second->number + 1;
  machine.streams[*handle] = std::move(state);
  return 0;
}
Status streamDestroy(Stream handle) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  auto it = machine.streams.find(handle);
  if (it == machine.streams.end())
    return machine.fault(own, "cuStreamDestroy: an unknown handle");
  if (!it->second->operations.empty() && !machine.gpus[own].error)
    machine.fault(own, "a stream is destroyed before it is done");
  machine.streams.erase(it);
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
  if (machine.mutates(Mutation::DropWait)) {
    Clock known = stream->clock;
    known.join(machine.gpus[own].host);
    machine.setRedundant(known.includes(state->clock));
    return 0;
  }
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
  auto it = machine.graphs.find(graph);
  if (it == machine.graphs.end())
    return machine.fault(own, "cuGraphInstantiate: an unknown handle");
  *executable = newHandle<GraphExec>();
  machine.executables[*executable] = it->second;
  return 0;
}
Status graphLaunch(GraphExec executable, Stream handle) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuGraphLaunch"))
    return status;
  StreamState *stream = find(machine, machine.streams, handle, "cuGraphLaunch");
  auto it = machine.executables.find(executable);
  if (!stream || it == machine.executables.end())
    return machine.fault(own, "cuGraphLaunch: an unknown handle");
  for (const Operation &operation : it->second)
    machine.put(*stream, operation);
  return machine.gpus[own].error;
}
Status graphExecDestroy(GraphExec executable) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  return machine.executables.erase(executable)
             ? 0
             : machine.fault(own, "cuGraphExecDestroy: an unknown handle");
}
Status graphDestroy(Graph graph) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  return machine.graphs.erase(graph)
             ? 0
             : machine.fault(own, "cuGraphDestroy: an unknown handle");
}

Status eventCreate(EventHandle *event, unsigned) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuEventCreate"))
    return status;
  *event = newHandle<EventHandle>();
  machine.events[*event] = std::make_unique<EventState>();
  return 0;
}
Status eventDestroy(EventHandle event) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  return machine.events.erase(event)
             ? 0
             : machine.fault(own, "cuEventDestroy: an unknown handle");
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
  if (machine.mutates(Mutation::DropRecord)) {
    machine.setRedundant(state->clock.includes(now) ||
                         machine.gpus[own].host.includes(now));
    return 0;
  }
  state->stream = stream;
  state->position = stream->put;
  state->clock = now;
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
    return kNotReady;
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

/// The number that follows a word of a text of PTX, from a place on.
int64_t numberAfter(const std::string &text, size_t from, const char *word) {
  size_t at = text.find(word, from);
  return at == text.npos ? 0 : std::atoll(text.c_str() + at + strlen(word));
}

/// The cubin that lies at `image`, of those that the machine was given: its
/// text, and its architecture.
const std::pair<std::string, int> *findCubin(const Machine &machine,
                                             const char *image) {
  for (const auto &[bytes, cubin] : machine.cubins) {
    // Up to the first difference, as the image may be a shorter one.
    size_t same = 0;
    while (same < bytes.size() && bytes[same] == image[same])
      ++same;
    if (same == bytes.size())
      return &cubin;
  }
  return nullptr;
}

Status moduleLoadDataEx(Module *module, const void *image, unsigned, int *,
                        void **) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = forbidCapture(machine, "cuModuleLoadDataEx"))
    return status;
  bool isCubin =
      std::strncmp(static_cast<const char *>(image), "\177ELF", 4) == 0;
  std::string text;
  if (isCubin) {
    const auto *cubin = findCubin(machine, static_cast<const char *>(image));
    if (!cubin)
      return kInvalidImage;
    if (cubin->second != machine.options.capability)
      return kNoBinaryForGpu;
    text = cubin->first;
  } else {
    text = static_cast<const char *>(image);
  }
  size_t target = text.find(".target sm_");
  if (target == text.npos)
    return kInvalidPtx;
  if (numberAfter(text, target, ".target sm_") > machine.options.capability)
    return kNoBinaryForGpu;
  auto given = machine.texts.find(text);
  if (given == machine.texts.end())
    return machine.fault(own, "a module that the test machine was not given");
  ++(isCubin ? machine.loadedCubins : machine.loadedTexts);
  *module = newHandle<Module>();
  machine.modules[*module];
  for (const auto &[name, kernel] : given->second) {
    size_t entry = text.find(".entry " + name + "(");
    if (entry == text.npos)
      continue;
    TestKernel loaded = kernel;
    loaded.threads = numberAfter(text, entry, ".maxntid ");
    size_t parameters = 0, end = text.find(')', entry);
    for (size_t at = text.find(".param", entry); at < end;
         at = text.find(".param", at + 1))
      ++parameters;
    if (parameters != kernel.bytes.size())
      return machine.fault(own, name + " has other parameters in PTX");
    machine.modules[*module][name] = machine.addKernel(std::move(loaded));
  }
  return 0;
}
Status moduleUnload(Module module) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  auto it = machine.modules.find(module);
  if (it == machine.modules.end())
    return machine.fault(own, "cuModuleUnload: an unknown handle");
  for (const auto &[name, function] : it->second)
    machine.kernels.erase(function);
  machine.modules.erase(it);
  return 0;
}
Status moduleGetFunction(Function *function, Module module, const char *name) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  auto it = machine.modules.find(module);
  if (it == machine.modules.end())
    return machine.fault(own, "cuModuleGetFunction: an unknown handle");
  auto found = it->second.find(name);
  if (found == it->second.end())
    return kNotFound;
  *function = found->second;
  return 0;
}

Status launchKernel(Function function, unsigned blocks, unsigned y, unsigned z,
                    unsigned threads, unsigned ty, unsigned tz, unsigned shared,
                    Stream handle, void **parameters, void **) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuLaunchKernel"))
    return status;
  StreamState *stream =
      find(machine, machine.streams, handle, "cuLaunchKernel");
  auto it = machine.kernels.find(function);
  if (!stream || it == machine.kernels.end())
    return machine.fault(own, "cuLaunchKernel: an unknown handle",
                         kInvalidHandle);
  const TestKernel &kernel = it->second;
  std::string what = "kernel " + kernel.name;
  int64_t extent = kernel.extent;
  bool isByBlock = blocks == extent;
  bool isByThread =
      int64_t(blocks) * threads >= extent &&
      (int64_t(blocks) - 1) * threads < std::max<int64_t>(extent, 1);
  if (threads != kernel.threads || y * z * ty * tz != 1 || shared != 0 ||
      (!isByBlock && !isByThread))
    return machine.fault(own, what + " with " + std::to_string(blocks) +
                                  " blocks of " + std::to_string(threads) +
                                  " threads");
  std::vector<void *> buffers;
  std::vector<Access> accesses;
  for (size_t i = 0; i < kernel.bytes.size(); ++i) {
    Address address = *static_cast<Address *>(parameters[i]);
    if (kernel.bytes[i])
      address = shift(machine, address);
    buffers.push_back(reinterpret_cast<void *>(address));
    if (kernel.bytes[i])
      accesses.push_back({address, kernel.bytes[i], i >= kernel.inputs});
  }
  machine.put(*stream,
              {what, std::move(accesses),
               [&machine, kernel, buffers, extent]() mutable {
                 if (machine.launches++ == machine.options.faultingKernel)
                   throw Error("an injected fault");
                 if (extent > 0)
                   kernel.function(buffers.data(), 0, extent);
               }});
  return machine.gpus[own].error;
}

} // namespace

void fillDriver(Driver &driver) {
#define WHALE_CUDA_FILL(member, ...) driver.member.function = member;
  WHALE_CUDA_DRIVER_FUNCTIONS(WHALE_CUDA_FILL)
}

} // namespace whale::runtime::cuda::test
