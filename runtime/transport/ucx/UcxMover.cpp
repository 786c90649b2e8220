//===- UcxMover.cpp - Bytes between processes by UCX ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One worker with an endpoint to each process, itself among them. Endpoints to
// other hosts report peers that die. Those to processes that let this one read
// their memory do not: UCX's shared memory has no such reports, and takes half
// the processor time of sockets. The coordinator sees which of them dies. Over
// sockets, the keep-alive of UCX 1.13 finds no broken link: that of the kernel,
// which it sets up, asks only while no data are on their way; in an idle
// connection UCX sends a message before the kernel has given up (20 s, 28 s).
// Connections with the coordinator find it, else the limit of progress.
//
// UCX asserts that it gets the files that it wants to open: where a process may
// not open as many, it does not begin.
//
// Cost: connecting takes five exchanges between all processes, and memory for
// each. A message is one call of UCX and a small allocation; up to 32 KiB it is
// sent whole, else the receiver asks for it first. Messages on their way are in
// an ordered set. A thread without work sleeps, by two system calls, until the
// worker's descriptor or that of `wake` becomes readable, at most 1 s.
//
//===----------------------------------------------------------------------===//

#include "HostId.h"
#include "transport/SharedFiles.h"
#include "transport/SharedMemory.h"
#include "transport/message/Mover.h"
#include "whale/Runtime/Libraries.h"
#include "whale/System/FileLimit.h"
#include "whale/System/LateLibrary.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <set>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

namespace whale::runtime {

namespace {
using Clock = std::chrono::steady_clock;

/// How long the end of a process waits for what others still have to receive,
/// and an abort for the library: what was sent to a dead process may never end.
constexpr std::chrono::seconds flushLimit(5);
constexpr std::chrono::milliseconds cancelLimit(500);
/// Messages of so many bytes at most are sent whole, and not asked for by the
/// receiver first, which would wake both ends once more: a copy costs less.
constexpr size_t wholeBytes = 32 << 10;
/// A sleep ends after so long, for the worker to look after its keep-alive.
constexpr std::chrono::milliseconds lookAfter(1000);
/// Files that are opened for UCX: of 1.13, 17 were counted with shared memory
/// and two interfaces, and three are for waiting; and for each other process.
constexpr size_t ownFiles = 20, filesOfPeer = 2;
/// Where no message wakes a process that waits for one, sleeps grow from the
/// first to the second.
constexpr std::chrono::microseconds firstNap(50), longestNap(500);

/// The functions of UCX. It is opened when it is first used: from then on it
/// handles signals of errors and watches the allocation of memory, which
/// programs that run in one process do without.
struct Ucx {
#define WHALE_UCX_FUNCTIONS(DO)                                                \
  DO(ucp_init_version)                                                         \
  DO(ucp_cleanup)                                                              \
  DO(ucp_ep_close_nbx)                                                         \
  DO(ucp_ep_create)                                                            \
  DO(ucp_request_cancel)                                                       \
  DO(ucp_request_check_status)                                                 \
  DO(ucp_request_free)                                                         \
  DO(ucp_tag_recv_nbx)                                                         \
  DO(ucp_tag_send_nbx)                                                         \
  DO(ucp_tag_send_sync_nbx)                                                    \
  DO(ucp_worker_arm)                                                           \
  DO(ucp_worker_create)                                                        \
  DO(ucp_worker_destroy)                                                       \
  DO(ucp_worker_flush_nbx)                                                     \
  DO(ucp_worker_get_address)                                                   \
  DO(ucp_worker_get_efd)                                                       \
  DO(ucp_worker_progress)                                                      \
  DO(ucp_worker_release_address)                                               \
  DO(ucs_status_string)

  WHALE_UCX_FUNCTIONS(WHALE_DECLARE_FUNCTION)

  const SharedFiles files;

  Ucx() {
    // What it would print are errors that are reported by us, or none; and it
    // leaves signals to the program: it takes SIGHUP for its own debugging.
    setenv("UCX_LOG_LEVEL", "fatal", /*overwrite=*/0);
    setenv("UCX_HANDLE_ERRORS", "none", /*overwrite=*/0);
    setenv("UCX_DEBUG_SIGNO", "0", /*overwrite=*/0);
    system::DeclaredLibrary library(
        kUcxFile, "UCX",
        "which moves data between processes (Debian's libucx0)");
    WHALE_UCX_FUNCTIONS(WHALE_FIND_FUNCTION)
#undef WHALE_UCX_FUNCTIONS
  }

  static const Ucx &get() {
    static const Ucx functions;
    return functions;
  }
};

void check(ucs_status_t status, const char *what) {
  if (status != UCS_OK)
    throw Error(std::string("UCX: ") + what + ": " +
                Ucx::get().ucs_status_string(status));
}

/// By process: whether this one, `self`, and it can read each other's memory.
std::vector<bool> whoseMemoryIsReadable(const Exchange &exchange, size_t self) {
  // What others try to read.
  static const uint64_t word =
      static_cast<uint64_t>(getpid()) ^ reinterpret_cast<uint64_t>(&word);
  struct Probe {
    pid_t process;
    const uint64_t *address;
    uint64_t value;
  };
  Probe mine = {getpid(), &word, word};
  std::string memory = memoryId();
  std::string bytes(reinterpret_cast<const char *>(&mine), sizeof(mine));
  std::vector<bool> isRead;
  for (const std::string &each : exchange(bytes + memory)) {
    Probe probe = {};
    uint64_t found = ~probe.value;
    if (each.size() > sizeof(probe) && each.substr(sizeof(probe)) == memory) {
      std::memcpy(&probe, each.data(), sizeof(probe));
      iovec to = {&found, sizeof(found)},
            from = {const_cast<uint64_t *>(probe.address), sizeof(found)};
      process_vm_readv(probe.process, &to, 1, &from, 1, 0);
    }
    isRead.push_back(found == probe.value);
  }
  // Both ends of a connection must find the same.
  return foundByBoth(exchange, self, isRead);
}

class UcxMover : public Mover {
public:
  explicit UcxMover(const Exchange &exchange);
  ~UcxMover() override;

  Tag maxTag() const override { return ~Tag(0); }
  void send(int64_t process, Tag tag, const void *data, size_t bytes,
            bool isSynchronous, int64_t &pending) override;
  void receive(int64_t process, Tag tag, void *data, size_t bytes,
               int64_t &pending) override;
  bool progress() override;
  void sleep() override;
  void wake() override { raise(wakeEvents); }
  bool isWatchable() const override { return !isUnwoken; }
  bool arm() override;
  void disarm() override { setWatched(false); }
  void watch() override;
  void wakeWatch() override { raise(wakeWatchEvents); }
  const std::string &lossOf(int64_t process) const override {
    // One that has ended after its last message is not missed.
    static const std::string none;
    const Peer &peer = peers[process];
    return peer.messages ? peer.loss : none;
  }
  void flush() override;
  bool cancel() override;

private:
  struct Peer {
    ucp_ep_h endpoint = nullptr;
    /// Messages to and from it that have not arrived.
    int64_t messages = 0;
    std::string loss;
  };
  /// What UCX calls back with: one for each request on its way.
  struct Call {
    UcxMover *mover;
    int64_t process;
    int64_t *pending;
    void *request = nullptr;
    /// Ended before UCX has returned the request: a receive that finds a
    /// message there may copy it from the sender's memory at once.
    bool hasEnded = false;
  };

  void connect(const Exchange &exchange);
  /// UCX matches messages by tags alone, whoever sends them.
  static ucp_tag_t tagOf(int64_t source, Tag tag) {
    return static_cast<ucp_tag_t>(source) << 32 | tag;
  }
  Call *depart(int64_t process, int64_t &pending);
  void arrive(const Call &call);
  ucs_status_t track(ucs_status_ptr_t request, Call *call);
  void complete(void *request, ucs_status_t status, Call *call);
  bool isIdle();
  void setWatched(bool value);
  static void raise(int event);
  static void clear(int event);
  bool progressUntil(const std::function<bool()> &isDone,
                     Clock::duration limit);
  void destroy();

  const Ucx &ucx = Ucx::get();
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  int workerEvents = -1, wakeEvents = -1;
  /// What `watch` sleeps on: an epoll instance with `wakeWatchEvents`, and with
  /// `workerEvents` while `isWatched`.
  int watched = -1, wakeWatchEvents = -1;
  bool isWatched = false;
  /// Whether some process sends by shared memory from another namespace of the
  /// network: what wakes who sleeps is a socket, which does not reach it.
  bool isUnwoken = false;
  std::chrono::microseconds nap = firstNap;
  std::vector<Peer> peers;
  /// This process.
  int64_t self = 0;
  std::set<Call *> calls;
  bool isCancelled = false;
};
} // namespace

UcxMover::UcxMover(const Exchange &exchange) {
  try {
    connect(exchange);
  } catch (...) {
    destroy();
    throw;
  }
}

void UcxMover::connect(const Exchange &exchange) {
  std::vector<std::string> hosts = exchange(hostId());
  system::needFiles(
      ownFiles + filesOfPeer * (hosts.size() - 1),
      ("UCX, for " + std::to_string(hosts.size()) + " processes,").c_str());
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  {
    SharedFiles::Told told(ucx.files);
    check(ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, nullptr,
                               &context),
          "cannot start");
  }
  ucp_worker_params_t workerParams = {};
  workerParams.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  workerParams.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check(ucx.ucp_worker_create(context, &workerParams, &worker),
        "cannot make a worker");
  check(ucx.ucp_worker_get_efd(worker, &workerEvents),
        "cannot wait for events");
  wakeEvents = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  wakeWatchEvents = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  watched = epoll_create1(EPOLL_CLOEXEC);
  epoll_event onWorker = {}, onWake = {EPOLLIN, {}};
  if (wakeEvents < 0 || wakeWatchEvents < 0 || watched < 0 ||
      epoll_ctl(watched, EPOLL_CTL_ADD, workerEvents, &onWorker) ||
      epoll_ctl(watched, EPOLL_CTL_ADD, wakeWatchEvents, &onWake))
    throw Error(std::string("cannot wait for events: ") + std::strerror(errno));

  ucp_address_t *address = nullptr;
  size_t length = 0;
  check(ucx.ucp_worker_get_address(worker, &address, &length),
        "has no address");
  std::string mine(reinterpret_cast<const char *>(address), length);
  ucx.ucp_worker_release_address(worker, address);
  std::vector<std::string> addresses = exchange(mine);
  self = std::ranges::find(addresses, mine) - addresses.begin();
  std::vector<bool> canRead = whoseMemoryIsReadable(exchange, self);
  // The vector keeps its memory from here on: UCX is given its elements.
  peers.resize(addresses.size());
  for (size_t i = 0; i < peers.size(); ++i) {
    ucp_ep_params_t ep = {};
    ep.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                    UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                    UCP_EP_PARAM_FIELD_ERR_HANDLER;
    ep.address = reinterpret_cast<const ucp_address_t *>(addresses[i].data());
    ep.err_mode =
        canRead[i] ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
    ep.err_handler.cb = [](void *peer, ucp_ep_h, ucs_status_t status) {
      static_cast<Peer *>(peer)->loss = Ucx::get().ucs_status_string(status);
    };
    ep.err_handler.arg = &peers[i];
    ucs_status_t status = ucx.ucp_ep_create(worker, &ep, &peers[i].endpoint);
    if (status == UCS_ERR_UNREACHABLE) {
      // Where UCX finds no sockets (no interface is listed in /sys/class/net),
      // there is only shared memory, also between hosts that are namespaces.
      isUnwoken |= hosts[i] != hosts[self];
      ep.err_mode = UCP_ERR_HANDLING_MODE_NONE;
      status = ucx.ucp_ep_create(worker, &ep, &peers[i].endpoint);
    }
    check(status, "cannot connect to another process");
  }
  // One that only sends may have ended before others have its memory.
  exchange("");
}

void UcxMover::destroy() {
  for (Peer &peer : peers) {
    if (!peer.endpoint)
      continue;
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    ucs_status_ptr_t request = ucx.ucp_ep_close_nbx(peer.endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) {
      progressUntil(
          [&] {
            return ucx.ucp_request_check_status(request) != UCS_INPROGRESS;
          },
          flushLimit);
      ucx.ucp_request_free(request);
    }
  }
  if (worker)
    ucx.ucp_worker_destroy(worker);
  if (context)
    ucx.ucp_cleanup(context);
  for (int file : {watched, wakeWatchEvents, wakeEvents})
    if (file >= 0)
      close(file);
}

UcxMover::~UcxMover() {
  // After an abort the process is about to end. Until then, what is on its way
  // to and from others may still use memory, and UCX with it.
  if (!isCancelled)
    destroy();
}

bool UcxMover::progressUntil(const std::function<bool()> &isDone,
                             Clock::duration limit) {
  auto end = Clock::now() + limit;
  while (!isDone()) {
    if (ucx.ucp_worker_progress(worker))
      continue;
    if (Clock::now() > end)
      return false;
    usleep(50);
  }
  return true;
}

UcxMover::Call *UcxMover::depart(int64_t process, int64_t &pending) {
  ++pending;
  ++peers[process].messages;
  return new Call{this, process, &pending};
}

void UcxMover::arrive(const Call &call) {
  --*call.pending;
  --peers[call.process].messages;
}

void UcxMover::complete(void *request, ucs_status_t status, Call *call) {
  // A message that was lost stays pending: its memory is not what was sent.
  Peer &peer = peers[call->process];
  if (status == UCS_OK)
    arrive(*call);
  else if (peer.loss.empty())
    peer.loss = ucx.ucs_status_string(status);
  if (!call->request) {
    call->hasEnded = true; // `track` does the rest
    return;
  }
  calls.erase(call);
  delete call;
  ucx.ucp_request_free(request);
}

/// Keeps the request that UCX returned for `call`, which it calls back with
/// unless there is none, as the message has ended already. Returns why it could
/// not be started.
ucs_status_t UcxMover::track(ucs_status_ptr_t request, Call *call) {
  if (UCS_PTR_IS_PTR(request) && !call->hasEnded) {
    call->request = request;
    calls.insert(call);
    return UCS_OK;
  }
  if (UCS_PTR_IS_PTR(request))
    ucx.ucp_request_free(request);
  else if (!UCS_PTR_IS_ERR(request))
    arrive(*call);
  ucs_status_t status =
      UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK;
  delete call;
  return status;
}

void UcxMover::send(int64_t process, Tag tag, const void *data, size_t bytes,
                    bool isSynchronous, int64_t &pending) {
  Call *call = depart(process, pending);
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  if (bytes <= wholeBytes)
    param.op_attr_mask |= UCP_OP_ATTR_FLAG_FAST_CMPL;
  param.user_data = call;
  param.cb.send = [](void *request, ucs_status_t status, void *data) {
    auto *call = static_cast<Call *>(data);
    call->mover->complete(request, status, call);
  };
  Peer &peer = peers[process];
  ucs_status_t status = track(
      isSynchronous ? ucx.ucp_tag_send_sync_nbx(peer.endpoint, data, bytes,
                                                tagOf(self, tag), &param)
                    : ucx.ucp_tag_send_nbx(peer.endpoint, data, bytes,
                                           tagOf(self, tag), &param),
      call);
  // The peer may be lost before UCX has called the handler of errors. The
  // message stays pending, as do those that were posted before.
  if (status != UCS_OK && peer.loss.empty())
    peer.loss = ucx.ucs_status_string(status);
}

void UcxMover::receive(int64_t process, Tag tag, void *data, size_t bytes,
                       int64_t &pending) {
  Call *call = depart(process, pending);
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.user_data = call;
  param.cb.recv = [](void *request, ucs_status_t status,
                     const ucp_tag_recv_info_t *, void *data) {
    auto *call = static_cast<Call *>(data);
    call->mover->complete(request, status, call);
  };
  check(track(ucx.ucp_tag_recv_nbx(worker, data, bytes, tagOf(process, tag),
                                   ~ucp_tag_t(0), &param),
              call),
        "cannot receive a message");
}

/// Whether the worker's descriptor becomes readable when there is something to
/// do; false where there is now.
bool UcxMover::isIdle() {
  ucs_status_t status = ucx.ucp_worker_arm(worker);
  if (status == UCS_ERR_BUSY)
    return false;
  check(status, "cannot wait for events");
  return true;
}

bool UcxMover::progress() {
  if (!ucx.ucp_worker_progress(worker))
    return false;
  nap = firstNap;
  return true;
}

void UcxMover::sleep() {
  std::chrono::microseconds time = lookAfter;
  if (isUnwoken && !calls.empty()) {
    time = nap;
    nap = std::min(nap * 2, longestNap);
  }
  pollfd files[] = {{workerEvents, POLLIN, 0}, {wakeEvents, POLLIN, 0}};
  timespec limit = {time.count() / 1'000'000, time.count() % 1'000'000 * 1000};
  if (isIdle() && ppoll(files, 2, &limit, nullptr) > 0 && files[1].revents)
    clear(wakeEvents);
}

bool UcxMover::arm() {
  if (!isIdle())
    return false;
  setWatched(true);
  return true;
}

void UcxMover::watch() {
  epoll_event event;
  if (epoll_wait(watched, &event, 1, lookAfter.count()) > 0)
    clear(wakeWatchEvents);
}

void UcxMover::setWatched(bool value) {
  if (isWatched == value)
    return;
  isWatched = value;
  epoll_event event = {};
  event.events = value ? uint32_t(EPOLLIN) : 0;
  if (epoll_ctl(watched, EPOLL_CTL_MOD, workerEvents, &event))
    throw Error(std::string("cannot wait for events: ") + std::strerror(errno));
}

void UcxMover::raise(int event) {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t put = write(event, &one, sizeof(one));
}

void UcxMover::clear(int event) {
  uint64_t count;
  [[maybe_unused]] ssize_t got = read(event, &count, sizeof(count));
}

void UcxMover::flush() {
  ucp_request_param_t param = {};
  ucs_status_ptr_t request = ucx.ucp_worker_flush_nbx(worker, &param);
  if (!UCS_PTR_IS_PTR(request))
    return;
  progressUntil(
      [&] { return ucx.ucp_request_check_status(request) != UCS_INPROGRESS; },
      flushLimit);
  ucx.ucp_request_free(request);
}

bool UcxMover::cancel() {
  isCancelled = true;
  for (Call *call : std::vector<Call *>(calls.begin(), calls.end()))
    if (calls.contains(call))
      ucx.ucp_request_cancel(worker, call->request);
  return progressUntil([&] { return calls.empty(); }, cancelLimit);
}

std::unique_ptr<Mover> createUcxMover(const Exchange &exchange) {
  return std::make_unique<UcxMover>(exchange);
}

} // namespace whale::runtime
