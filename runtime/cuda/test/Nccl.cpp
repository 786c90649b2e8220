//===- Nccl.cpp - The functions of NCCL of a test machine -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In come communicators and groups of sends and receives, out goes an operation
// of a stream for each group. It begins when it is the first of its stream; the
// n-th send from one rank to another moves its bytes when the group that it is
// in and that of the n-th receive have begun, and a group is done when all of
// its bytes have moved. Ranks are threads, each on a GPU of its own. What
// nccl.h forbids is a fault: ends that differ in their bytes, a communicator
// that is used before it is ready, a group that is not closed, memory that is
// not of the communicator's GPU.
//
//===----------------------------------------------------------------------===//

#include "cuda/test/Machine.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace whale::runtime::cuda::test {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

/// One side of a send and its receive.
struct End {
  Address address = 0;
  int64_t bytes = 0;
  bool isThere = false, hasBegun = false;
};
struct Meeting {
  End from, to;
  bool isDone = false;
};

/// What the ranks of a communicator share.
struct Ring {
  int ranks = 0;
  std::set<int> present, gpus;
  /// By sender and receiver, in their order.
  std::map<std::pair<int, int>, std::deque<Meeting>> meetings;
  NcclStatus error = 0;
};

struct Call {
  Stream stream;
  Address address;
  int64_t bytes;
  int peer;
  bool isSend;
};

struct State {
  std::shared_ptr<Ring> ring;
  int rank = 0, gpu = 0;
  /// How often it says that it is in progress.
  uint64_t delay = 0;
  bool isAborted = false, isFinal = false;
  /// Groups that are not done.
  int64_t open = 0;
  std::map<int, size_t> sends, receives;
  std::vector<Call> calls;

  bool isInProgress() const {
    return delay > 0 || int(ring->present.size()) < ring->ranks ||
           (isFinal && open > 0);
  }
};

std::map<uint64_t, std::weak_ptr<Ring>> rings;
std::map<Communicator, std::shared_ptr<State>> communicators;
thread_local int depth = 0;
thread_local std::vector<Communicator> grouped;

NcclStatus fail(const std::string &what, NcclStatus status) {
  Machine::get().fault(currentGpu(), "NCCL: " + what, kLaunchFailed);
  return status;
}

std::shared_ptr<State> find(Communicator handle, const char *call) {
  auto it = communicators.find(handle);
  if (it != communicators.end())
    return it->second;
  fail(std::string(call) + ": an unknown communicator", kNcclInvalidArgument);
  return nullptr;
}

NcclStatus getVersion(int *version) {
  *version = 22809;
  return 0;
}
const char *getErrorString(NcclStatus status) {
  return status == kNcclRemoteError ? "remote process exited or there was a "
                                      "network error"
                                    : "error";
}
const char *getLastError(Communicator) {
  static thread_local std::string copy;
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  copy = machine.lastFault;
  return copy.c_str();
}

NcclStatus getUniqueId(CommunicatorId *id) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  static uint64_t next = 0x6e63636c;
  ++next;
  *id = {};
  std::memcpy(id->bytes, &next, sizeof(next));
  return 0;
}

NcclStatus commInitRankConfig(Communicator *handle, int ranks,
                              CommunicatorId id, int rank,
                              CommunicatorConfig *config) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (config->magic != 0xcafebeef || config->size < sizeof(*config) ||
      config->blocking != 0)
    return fail("a communicator that blocks, or is not described",
                kNcclInvalidArgument);
  if (currentGpu() < 0 || rank < 0 || rank >= ranks)
    return fail("a communicator of no GPU, or no rank", kNcclInvalidArgument);
  uint64_t number = 0;
  std::memcpy(&number, id.bytes, sizeof(number));
  std::shared_ptr<Ring> ring = rings[number].lock();
  if (!ring) {
    rings[number] = ring = std::make_shared<Ring>();
    ring->ranks = ranks;
  }
  if (ring->ranks != ranks)
    return fail("ranks make one communicator of different sizes",
                kNcclInvalidArgument);
  if (!ring->present.insert(rank).second ||
      !ring->gpus.insert(currentGpu()).second)
    return fail("two ranks of a communicator are one, or on one GPU",
                kNcclInvalidUsage);
  auto state = std::make_shared<State>();
  state->ring = std::move(ring);
  state->rank = rank;
  state->gpu = currentGpu();
  state->delay = machine.draw() % 3;
  static uintptr_t next = 0x200000;
  *handle = reinterpret_cast<Communicator>(next += 16);
  communicators[*handle] = std::move(state);
  return kNcclInProgress;
}

NcclStatus commGetAsyncError(Communicator handle, NcclStatus *status) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  std::shared_ptr<State> state = find(handle, "ncclCommGetAsyncError");
  if (!state)
    return kNcclInvalidArgument;
  machine.runSome(state->gpu);
  *status = state->ring->error      ? state->ring->error
            : state->isInProgress() ? NcclStatus(kNcclInProgress)
                                    : 0;
  if (state->delay)
    --state->delay;
  return 0;
}

NcclStatus commFinalize(Communicator handle) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  std::shared_ptr<State> state = find(handle, "ncclCommFinalize");
  if (!state)
    return kNcclInvalidArgument;
  if (state->isInProgress())
    return fail("a communicator is ended before it is ready",
                kNcclInvalidUsage);
  state->isFinal = true;
  return state->isInProgress() ? NcclStatus(kNcclInProgress) : 0;
}
NcclStatus commDestroy(Communicator handle) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  std::shared_ptr<State> state = find(handle, "ncclCommDestroy");
  if (!state)
    return kNcclInvalidArgument;
  if (!state->isFinal || state->open)
    return fail("a communicator is destroyed before it is done",
                kNcclInvalidUsage);
  communicators.erase(handle);
  return 0;
}
NcclStatus commAbort(Communicator handle) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  std::shared_ptr<State> state = find(handle, "ncclCommAbort");
  if (!state)
    return kNcclInvalidArgument;
  state->isAborted = true;
  communicators.erase(handle);
  machine.notify();
  return 0;
}

NcclStatus groupStart() {
  ++depth;
  return 0;
}

/// An end of a group's call, which is kept by the ring.
struct Part {
  Meeting *meeting;
  bool isSend;
};

/// Moves what can be moved. Returns whether that is all.
bool advance(State &state, const std::vector<Part> &parts) {
  bool isDone = true;
  for (const Part &part : parts) {
    Meeting &meeting = *part.meeting;
    End &own = part.isSend ? meeting.from : meeting.to;
    if (!own.hasBegun) {
      own.hasBegun = true;
      Machine::get().notify();
    }
    if (state.ring->error)
      return false;
    if (!meeting.isDone && meeting.from.hasBegun && meeting.to.hasBegun) {
      std::memmove(reinterpret_cast<void *>(meeting.to.address),
                   reinterpret_cast<void *>(meeting.from.address),
                   static_cast<size_t>(meeting.to.bytes));
      meeting.isDone = true;
      Machine::get().notify();
    }
    isDone &= meeting.isDone;
  }
  return isDone;
}

/// Puts the calls of a communicator in a group on their stream.
NcclStatus putGroup(Machine &machine, const std::shared_ptr<State> &state) {
  std::vector<Call> calls = std::exchange(state->calls, {});
  auto stream = machine.streams.find(calls.front().stream);
  if (stream == machine.streams.end() || stream->second->gpu != state->gpu)
    return fail("a stream that is unknown, or of another GPU",
                kNcclInvalidArgument);
  if (stream->second->captured)
    return fail("a group is captured, which the test machine does not know",
                kNcclInvalidUsage);
  Operation operation;
  operation.what = "a group of " + std::to_string(calls.size()) +
                   " sends and receives of rank " + std::to_string(state->rank);
  std::vector<Part> parts;
  for (const Call &call : calls) {
    if (call.stream != calls.front().stream)
      return fail("a group on two streams", kNcclInvalidUsage);
    size_t number =
        call.isSend ? state->sends[call.peer]++ : state->receives[call.peer]++;
    auto ends = call.isSend ? std::pair(state->rank, call.peer)
                            : std::pair(call.peer, state->rank);
    std::deque<Meeting> &meetings = state->ring->meetings[ends];
    // Meetings stay where they are when others are added.
    while (meetings.size() <= number)
      meetings.emplace_back();
    Meeting &meeting = meetings[number];
    (call.isSend ? meeting.from : meeting.to) = {call.address, call.bytes,
                                                 true};
    if (meeting.from.isThere && meeting.to.isThere &&
        meeting.from.bytes != meeting.to.bytes)
      return fail("rank " + std::to_string(ends.first) + " sends " +
                      std::to_string(meeting.from.bytes) + " bytes, rank " +
                      std::to_string(ends.second) + " receives " +
                      std::to_string(meeting.to.bytes),
                  kNcclInvalidUsage);
    parts.push_back({&meeting, call.isSend});
    operation.accesses.push_back({call.address, call.bytes, !call.isSend});
  }
  if (machine.groups++ == machine.options.failingGroup)
    state->ring->error = kNcclRemoteError;
  ++state->open;
  operation.meets = [&machine, state, parts = std::move(parts)] {
    return state->isAborted || machine.gpus[state->gpu].error ||
           advance(*state, parts);
  };
  operation.run = [state] { --state->open; };
  machine.put(*stream->second, std::move(operation));
  state->delay = machine.draw() % 2;
  if (machine.gpus[state->gpu].error)
    return kNcclUnhandledCudaError;
  return state->delay ? NcclStatus(kNcclInProgress) : 0;
}

NcclStatus groupEnd() {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (depth == 0)
    return fail("the end of a group that has not begun", kNcclInvalidUsage);
  if (--depth)
    return 0;
  NcclStatus all = 0;
  for (Communicator handle : std::exchange(grouped, {})) {
    std::shared_ptr<State> state = find(handle, "ncclGroupEnd");
    NcclStatus status =
        state ? putGroup(machine, state) : NcclStatus(kNcclInvalidArgument);
    if (status && (!all || all == kNcclInProgress))
      all = status;
  }
  return all;
}

NcclStatus add(Communicator handle, const Call &call, int type) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  std::shared_ptr<State> state =
      find(handle, call.isSend ? "ncclSend" : "ncclRecv");
  if (!state)
    return kNcclInvalidArgument;
  if (state->isFinal || state->isInProgress())
    return fail("a communicator is used before it is ready, or after its end",
                kNcclInvalidUsage);
  if (type != kNcclBytes || call.peer < 0 || call.peer >= state->ring->ranks)
    return fail("elements that are no bytes, or an unknown peer",
                kNcclInvalidArgument);
  const Machine::Range *range = machine.rangeOf(call.address, call.bytes);
  if (!range || range->isPinned || range->gpu != state->gpu)
    return fail(std::to_string(call.bytes) +
                    " bytes that are not all in the memory of the "
                    "communicator's GPU, or were freed",
                kNcclInvalidArgument);
  if (!std::ranges::count(grouped, handle))
    grouped.push_back(handle);
  state->calls.push_back(call);
  return 0;
}

NcclStatus addAlone(Communicator handle, const Call &call, int type) {
  groupStart();
  NcclStatus status = add(handle, call, type);
  NcclStatus end = groupEnd();
  return status ? status : end;
}

NcclStatus send(const void *data, size_t count, int type, int peer,
                Communicator handle, Stream stream) {
  return addAlone(
      handle,
      {stream, reinterpret_cast<Address>(data), int64_t(count), peer, true},
      type);
}
NcclStatus recv(void *data, size_t count, int type, int peer,
                Communicator handle, Stream stream) {
  return addAlone(
      handle,
      {stream, reinterpret_cast<Address>(data), int64_t(count), peer, false},
      type);
}

} // namespace

void fillNccl(Nccl &nccl) {
#define WHALE_CUDA_FILL_NCCL(member, ...) nccl.member.function = member;
  WHALE_CUDA_NCCL_FUNCTIONS(WHALE_CUDA_FILL_NCCL)
}

} // namespace whale::runtime::cuda::test
