//===- MpiMover.cpp - Bytes between processes by MPI ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Non-blocking messages in a communicator of its own. One thread calls MPI, not
// always the one that started it, so MPI_THREAD_SERIALIZED suffices. A
// synchronous send is MPI_Issend: MPI may buffer others. MPI has no wait that
// sleeps, and moves data only inside of its functions. While messages are
// pending the thread polls, at first after yielding, later after naps; without
// any it sleeps longer, but not for ever, since MPI may still have to send what
// it has buffered. A mover may still be given up on a thread of its own when
// the process ends: who calls MPI holds a lock, and finds that it has ended.
// This file is a module of its own (libWhaleMpi.so), which is opened when it is
// needed: only what uses MPI is linked with it.
//
// Cost: a call of MPI for each message, or each GiB of it. A poll tests all
// pending messages: quadratic in these where they end one by one. 50 polls
// yield, later ones nap for 50 us; without pending messages sleeps are 50 ms
// after 100 naps.
//
//===----------------------------------------------------------------------===//

#include "transport/message/Mover.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <poll.h>
#include <sched.h>
#include <set>
#include <sys/eventfd.h>
#include <unistd.h>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

using namespace whale::runtime;

namespace {
using Clock = std::chrono::steady_clock;

/// How long the end of a process waits for the others, and an abort for MPI.
constexpr std::chrono::seconds flushLimit(5), cancelLimit(2);
/// Polls of pending messages that only yield; later ones nap.
constexpr int yields = 50;
constexpr std::chrono::microseconds nap(50);
/// Without pending messages: naps, after which it sleeps.
constexpr int idleNaps = 100;
constexpr std::chrono::milliseconds idleSleep(50);
/// A message of more bytes goes in parts, as MPI counts in ints.
constexpr size_t maxBytes = size_t(1) << 30;

/// Processes that were cut off may not come to the end of MPI, which waits for
/// all.
std::atomic<bool> endsWithoutMpi = false;

std::string textOf(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(error, text, &length);
  return {text, static_cast<size_t>(length)};
}

void check(int error, const char *what) {
  if (error != MPI_SUCCESS)
    throw Error(std::string("MPI: ") + what + ": " + textOf(error));
}

class MpiMover;
/// Of all that call MPI, also to end it.
std::recursive_mutex library;
using LibraryLock = std::lock_guard<std::recursive_mutex>;
/// With the lock: those that have not come to their end, in the order of their
/// making, which all processes share, and whether MPI has. A thread may look
/// there until the last.
std::vector<MpiMover *> &movers = *new std::vector<MpiMover *>;
bool hasEnded = false;

void endMpi();

/// Starts MPI unless the program has.
void startMpi() {
  // Ranks may be more than cores.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", /*overwrite=*/0);
  int isInitialized = 0, isFinalized = 0, level = 0;
  MPI_Initialized(&isInitialized);
  MPI_Finalized(&isFinalized);
  if (isFinalized)
    throw Error("MPI has ended in this process");
  if (isInitialized) {
    MPI_Query_thread(&level);
  } else {
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level),
          "cannot start");
    std::atexit(endMpi);
  }
  if (level < MPI_THREAD_SERIALIZED)
    throw Error("MPI was started without MPI_THREAD_SERIALIZED");
}

class MpiMover : public Mover {
public:
  explicit MpiMover(const Exchange &exchange);
  ~MpiMover() override;

  Tag maxTag() const override { return largestTag; }
  void send(int64_t process, Tag tag, const void *data, size_t bytes,
            bool isSynchronous, int64_t &pending) override;
  void receive(int64_t process, Tag tag, void *data, size_t bytes,
               int64_t &pending) override;
  bool progress() override;
  void sleep() override;
  void wake() override;
  const std::string &lossOf(int64_t process) const override {
    return losses[process];
  }
  void flush() override;
  bool cancel() override;

private:
  struct Call {
    int64_t *pending;
    int64_t process;
    bool isReceive;
  };

  void track(const Call &call, MPI_Request request, int error);
  void loseAtEnd(int64_t process, int64_t &pending);

  MPI_Comm communicator = MPI_COMM_NULL;
  Tag largestTag = 0;
  int event = -1;
  /// By process: its rank of MPI, and why it cannot be reached.
  std::vector<int> ranks;
  std::vector<std::string> losses;
  /// Two lists of equal length.
  std::vector<Call> calls;
  std::vector<MPI_Request> requests;
  std::vector<int> indices;
  std::vector<MPI_Status> statuses;
  /// Polls since a message ended.
  int polls = 0;
  bool isCancelled = false, isFlushed = false;
};

/// When the process ends. The other processes wait for what is flushed.
void endMpi() {
  LibraryLock lock(library);
  for (MpiMover *mover : movers)
    mover->flush();
  hasEnded = true;
  if (!endsWithoutMpi)
    MPI_Finalize();
}
} // namespace

MpiMover::MpiMover(const Exchange &exchange) {
  startMpi();
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::set<int> distinct;
  for (const std::string &address :
       exchange(std::to_string(rank) + "/" + std::to_string(size))) {
    int its = 0, total = 0;
    std::sscanf(address.c_str(), "%d/%d", &its, &total);
    ranks.push_back(its);
    distinct.insert(its);
  }
  if (distinct.size() != ranks.size() ||
      ranks.size() != static_cast<size_t>(size))
    throw Error("MPI has " + std::to_string(size) + " processes, the job has " +
                std::to_string(ranks.size()) +
                ": --transport=mpi needs them started by mpirun or srun "
                "--mpi=pmix");
  losses.resize(ranks.size());
  check(MPI_Comm_dup(MPI_COMM_WORLD, &communicator),
        "cannot make a communicator");
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  int *most = nullptr, isSet = 0;
  MPI_Comm_get_attr(communicator, MPI_TAG_UB, &most, &isSet);
  constexpr Tag least = 32767; // what the standard demands
  largestTag = isSet ? static_cast<Tag>(*most) : least;
  event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0)
    throw Error(std::string("cannot make an eventfd: ") + std::strerror(errno));
  LibraryLock lock(library);
  movers.push_back(this);
}

MpiMover::~MpiMover() {
  {
    LibraryLock lock(library);
    std::erase(movers, this);
    if (!isCancelled && !endsWithoutMpi && !hasEnded)
      MPI_Comm_free(&communicator);
  }
  if (event >= 0)
    close(event);
}

void MpiMover::track(const Call &call, MPI_Request request, int error) {
  polls = 0;
  ++*call.pending;
  if (error != MPI_SUCCESS) {
    losses[call.process] = textOf(error);
    return;
  }
  calls.push_back(call);
  requests.push_back(request);
}

void MpiMover::loseAtEnd(int64_t process, int64_t &pending) {
  ++pending;
  losses[process] = "MPI has ended in this process";
}

void MpiMover::send(int64_t process, Tag tag, const void *data, size_t bytes,
                    bool isSynchronous, int64_t &pending) {
  LibraryLock lock(library);
  if (hasEnded)
    return loseAtEnd(process, pending);
  auto *start = isSynchronous ? &MPI_Issend : &MPI_Isend;
  const auto *from = static_cast<const char *>(data);
  do {
    size_t part = std::min(bytes, maxBytes);
    MPI_Request request = MPI_REQUEST_NULL;
    int error = start(from, static_cast<int>(part), MPI_BYTE, ranks[process],
                      static_cast<int>(tag), communicator, &request);
    track({&pending, process, false}, request, error);
    from += part;
    bytes -= part;
  } while (bytes > 0);
}

void MpiMover::receive(int64_t process, Tag tag, void *data, size_t bytes,
                       int64_t &pending) {
  LibraryLock lock(library);
  if (hasEnded)
    return loseAtEnd(process, pending);
  auto *to = static_cast<char *>(data);
  do {
    size_t part = std::min(bytes, maxBytes);
    MPI_Request request = MPI_REQUEST_NULL;
    int error = MPI_Irecv(to, static_cast<int>(part), MPI_BYTE, ranks[process],
                          static_cast<int>(tag), communicator, &request);
    track({&pending, process, true}, request, error);
    to += part;
    bytes -= part;
  } while (bytes > 0);
}

bool MpiMover::progress() {
  LibraryLock lock(library);
  if (hasEnded)
    return false;
  if (requests.empty()) {
    // It moves what is buffered.
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator, &flag,
               MPI_STATUS_IGNORE);
    return false;
  }
  int size = static_cast<int>(requests.size()), count = 0;
  indices.resize(requests.size());
  statuses.resize(requests.size());
  int error = MPI_Testsome(size, requests.data(), &count, indices.data(),
                           statuses.data());
  if (count == MPI_UNDEFINED || count == 0)
    return false;
  polls = 0;
  for (int i = 0; i < count; ++i) {
    const Call &call = calls[indices[i]];
    int status = error == MPI_ERR_IN_STATUS ? statuses[i].MPI_ERROR : error;
    if (status == MPI_SUCCESS)
      --*call.pending;
    else if (status != MPI_ERR_PENDING)
      losses[call.process] = textOf(status);
  }
  // Requests that have ended are null now.
  size_t kept = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i] == MPI_REQUEST_NULL)
      continue;
    requests[kept] = requests[i];
    calls[kept++] = calls[i];
  }
  requests.resize(kept);
  calls.resize(kept);
  return true;
}

void MpiMover::sleep() {
  ++polls;
  std::chrono::nanoseconds time = nap;
  if (!requests.empty() && polls <= yields) {
    sched_yield();
    time = {};
  } else if (requests.empty() && polls > idleNaps) {
    time = idleSleep;
  }
  pollfd file = {event, POLLIN, 0};
  timespec limit = {time.count() / 1000000000, time.count() % 1000000000};
  if (ppoll(&file, 1, &limit, nullptr) <= 0)
    return;
  uint64_t count;
  [[maybe_unused]] ssize_t got = read(event, &count, sizeof(count));
}

void MpiMover::wake() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t put = write(event, &one, sizeof(one));
}

void MpiMover::flush() {
  LibraryLock lock(library);
  if (hasEnded || isFlushed || isCancelled)
    return;
  isFlushed = true;
  // What MPI has buffered is sent only inside of its functions.
  MPI_Request request;
  int isDone = MPI_Ibarrier(communicator, &request) != MPI_SUCCESS;
  auto end = Clock::now() + flushLimit;
  while (!isDone && Clock::now() < end) {
    if (MPI_Test(&request, &isDone, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      break;
    if (!isDone)
      usleep(50);
  }
  if (!isDone)
    endsWithoutMpi = true;
}

bool MpiMover::cancel() {
  isCancelled = endsWithoutMpi = true;
  LibraryLock lock(library);
  // Open MPI cannot cancel sends: they read memory at most.
  for (size_t i = 0; i < requests.size(); ++i)
    if (calls[i].isReceive && !hasEnded)
      MPI_Cancel(&requests[i]);
  auto end = Clock::now() + cancelLimit;
  while (std::ranges::any_of(calls, &Call::isReceive) && !hasEnded &&
         Clock::now() < end)
    if (!progress())
      usleep(50);
  return calls.empty();
}

extern "C" Mover *whaleCreateMpiMover(const Exchange &exchange) {
  return new MpiMover(exchange);
}
