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
// its bytes have moved. Ranks are threads, each on a GPU of its own, or, where
// the machine shares a directory with others, of several processes (Mail.h).
// What nccl.h forbids is a fault: ends that differ in their bytes, a
// communicator that is used before it is ready, a group that is not closed,
// memory that is not of the communicator's GPU.
//
// Cost: a group is asked whether it can go on whenever it is the first of its
// stream: a look at each of its sends and receives. Each byte is copied once,
// by way of a file between processes. Meetings are kept as long as their
// communicator: memory grows with the sends.
//
//===----------------------------------------------------------------------===//

#include "cuda/test/DriverCalls.h"
#include "cuda/test/Mail.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unistd.h>

namespace whale::runtime::cuda::test {
namespace {

/// One side of a send and its receive.
struct End {
  Address address = 0;
  int64_t bytes = 0;
  bool isThere = false, hasBegun = false, isDone = false;
};
struct Meeting {
  End from, to;
};

/// What the ranks of a communicator share.
struct Ring {
  int ranks = 0;
  std::set<int> present, gpus;
  /// Ranks of this process that have ended it.
  size_t finals = 0;
  /// By sender and receiver, in their order.
  std::map<std::pair<int, int>, std::deque<Meeting>> meetings;
  NcclStatus error = 0;
  /// If ranks may be in other processes.
  std::optional<Mail> mail;

  bool isComplete() const {
    return (mail ? mail->present() : int(present.size())) == ranks;
  }
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
  bool isAborted = false, isFinal = false, isConnected = false;
  /// Groups that are not done.
  int64_t open = 0;
  std::map<int, size_t> sends, receives;
  std::vector<Call> calls;

  bool isInProgress() {
    isConnected = isConnected || ring->isComplete();
    return delay > 0 || !isConnected ||
           (isFinal && (open > 0 || ring->finals < ring->present.size()));
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

/// Calls `work` with the machine, locked, and the communicator.
template <typename Work>
NcclStatus with(Communicator handle, const char *call, Work work) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  auto it = communicators.find(handle);
  if (it == communicators.end())
    return fail(std::string(call) + ": an unknown communicator",
                kNcclInvalidArgument);
  return work(machine, std::shared_ptr<State>(it->second));
}

NcclStatus getVersion(int *version) {
  *version = Machine::get().options.ncclVersion;
  return 0;
}
const char *getErrorString(NcclStatus status) {
  return status == kNcclRemoteError ? "remote process exited or there was a "
                                      "network error"
                                    : "error";
}
const char *getLastError(Communicator) {
  return Machine::get().lastFaultText();
}

NcclStatus getUniqueId(CommunicatorId *id) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  // Other processes name others.
  static uint64_t next = static_cast<uint64_t>(getpid()) << 32;
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
  if (machine.begunCommunicators++ == machine.options.failingCommunicator)
    return kNcclInvalidUsage;
  uint64_t number = 0;
  std::memcpy(&number, id.bytes, sizeof(number));
  std::shared_ptr<Ring> ring = rings[number].lock();
  if (!ring) {
    rings[number] = ring = std::make_shared<Ring>();
    ring->ranks = ranks;
    if (const std::string &shared = machine.options.sharedDirectory;
        !shared.empty())
      ring->mail.emplace(std::filesystem::path(shared) /
                         std::to_string(number));
  }
  if (ring->ranks != ranks)
    return fail("ranks make one communicator of different sizes",
                kNcclInvalidArgument);
  if (!ring->present.insert(rank).second ||
      !ring->gpus.insert(currentGpu()).second)
    return fail("two ranks of a communicator are one, or on one GPU",
                kNcclInvalidUsage);
  if (ring->mail)
    ring->mail->enter(rank);
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
  return with(handle, "ncclCommGetAsyncError",
              [&](Machine &machine, const std::shared_ptr<State> &state) {
                machine.runSome(state->gpu);
                *status = state->ring->error      ? state->ring->error
                          : state->isInProgress() ? NcclStatus(kNcclInProgress)
                                                  : 0;
                if (state->delay)
                  --state->delay;
                return NcclStatus(0);
              });
}

NcclStatus commFinalize(Communicator handle) {
  return with(handle, "ncclCommFinalize",
              [&](Machine &, const std::shared_ptr<State> &state) {
                if (state->isInProgress())
                  return fail("a communicator is ended before it is ready",
                              kNcclInvalidUsage);
                if (!std::exchange(state->isFinal, true))
                  ++state->ring->finals;
                return NcclStatus(state->isInProgress() ? kNcclInProgress : 0);
              });
}
NcclStatus commDestroy(Communicator handle) {
  return with(handle, "ncclCommDestroy",
              [&](Machine &machine, const std::shared_ptr<State> &state) {
                if (!state->isFinal || state->isInProgress())
                  return fail("a communicator is destroyed before it is done",
                              kNcclInvalidUsage);
                ++machine.destroyed;
                communicators.erase(handle);
                return NcclStatus(0);
              });
}
NcclStatus commAbort(Communicator handle) {
  return with(handle, "ncclCommAbort",
              [&](Machine &machine, const std::shared_ptr<State> &state) {
                state->isAborted = true;
                communicators.erase(handle);
                ++machine.aborted;
                machine.notify();
                bool takesGroups = machine.options.ncclVersion >= 22200;
                if (depth > 0 && !takesGroups)
                  return fail("an abort in a group", kNcclInvalidUsage);
                bool isLast =
                    std::ranges::none_of(communicators, [&](const auto &other) {
                      return other.second->gpu == state->gpu;
                    });
                if (depth == 0 && takesGroups && !isLast)
                  return fail("an abort that may wait for another one, and is "
                              "in no group with it",
                              kNcclInvalidUsage);
                return NcclStatus(0);
              });
}

NcclStatus groupStart() {
  ++depth;
  return 0;
}

/// An end of a group's call, which is kept by the ring.
struct Part {
  Meeting *meeting;
  bool isSend;
  /// Of the meeting, between processes.
  std::string name;
};

void *memoryOf(const End &end) { return reinterpret_cast<void *>(end.address); }

/// Moves the bytes of a meeting whose other end may be in another process, as
/// far as they can be.
void advance(State &state, const Part &part, bool begins) {
  const Mail &mail = *state.ring->mail;
  End &own = part.isSend ? part.meeting->from : part.meeting->to;
  if (part.isSend) {
    if (begins)
      mail.send(part.name, memoryOf(own), own.bytes);
    own.isDone = mail.isTaken(part.name);
    return;
  }
  int64_t bytes = mail.bytesOf(part.name);
  if (bytes < 0)
    return;
  if (bytes != own.bytes) {
    state.ring->error =
        fail(part.name + " is of " + std::to_string(bytes) +
                 " bytes, its receiver expects " + std::to_string(own.bytes),
             kNcclInvalidUsage);
    return;
  }
  mail.take(part.name, memoryOf(own), own.bytes);
  own.isDone = true;
}

/// Moves what can be moved. Returns whether that is all.
bool advance(State &state, const std::vector<Part> &parts) {
  bool isDone = true;
  for (const Part &part : parts) {
    auto &[from, to] = *part.meeting;
    End &own = part.isSend ? from : to;
    bool begins = !std::exchange(own.hasBegun, true);
    if (begins)
      Machine::get().notify();
    if (state.ring->error)
      return false;
    if (own.isDone)
      continue;
    if (state.ring->mail) {
      advance(state, part, begins);
    } else if (from.hasBegun && to.hasBegun) {
      std::memmove(memoryOf(to), memoryOf(from), static_cast<size_t>(to.bytes));
      from.isDone = to.isDone = true;
      Machine::get().notify();
    }
    isDone &= own.isDone;
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
    parts.push_back({&meeting, call.isSend,
                     std::to_string(ends.first) + "-" +
                         std::to_string(ends.second) + "-" +
                         std::to_string(number)});
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

/// By another communicator of the rank, if a mutation says so.
NcclStatus putOrSwap(Machine &machine, const std::shared_ptr<State> &state) {
  for (const auto &[handle, other] : communicators) {
    if (other == state || other->gpu != state->gpu)
      continue;
    if (!machine.mutates(Mutation::SwapCommunicator))
      break;
    other->calls = std::exchange(state->calls, {});
    for (const Call &call : other->calls)
      if (call.peer >= other->ring->ranks)
        return fail("an unknown peer", kNcclInvalidArgument);
    return putGroup(machine, other);
  }
  return putGroup(machine, state);
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
    NcclStatus status = with(handle, "ncclGroupEnd", putOrSwap);
    if (status && (!all || all == kNcclInProgress))
      all = status;
  }
  return all;
}

NcclStatus add(Communicator handle, Call call, int type) {
  return with(
      handle, call.isSend ? "ncclSend" : "ncclRecv",
      [&](Machine &machine, const std::shared_ptr<State> &state) {
        if (state->isFinal || state->isInProgress())
          return fail("a communicator is used before it is ready, or after its "
                      "end",
                      kNcclInvalidUsage);
        if (type != kNcclBytes || call.peer < 0 ||
            call.peer >= state->ring->ranks)
          return fail("elements that are no bytes, or an unknown peer",
                      kNcclInvalidArgument);
        call.address = shift(machine, call.address);
        const Machine::Range *range = machine.rangeOf(call.address, call.bytes);
        if (!range || range->isPinned || range->gpu != state->gpu)
          return fail(std::to_string(call.bytes) +
                          " bytes that are not all in the memory of the "
                          "communicator's GPU, or were freed",
                      kNcclInvalidArgument);
        if (!std::ranges::count(grouped, handle))
          grouped.push_back(handle);
        state->calls.push_back(call);
        return NcclStatus(0);
      });
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
