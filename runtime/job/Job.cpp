//===- Job.cpp - A process of a job ---------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collectives of the processes of a job (gathering texts, comparing them,
// ending), and news of failures. A process has one connection with the
// coordinator, and a thread that reads it. Who calls a collective function
// sends a frame and sleeps until the thread has read the answer, or the job has
// failed. The first process also runs the coordinator, and is connected with it
// by a pair of sockets.
//
// Cost: gathering is a frame from each process, and to each one all texts
// together: the coordinator sends the square of the processes times a text.
// None is part of a step. Besides, a frame for each heartbeat, for which the
// thread asks all programs of the process for their progress. An error waits up
// to two seconds for that of another process.
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Job.h"
#include "whale/Runtime/Step.h"

#include "job/Coordinator.h"
#include "job/Greeting.h"
#include "job/Members.h"
#include "job/Messages.h"
#include "job/Secret.h"
#include "job/Sockets.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace whale::runtime {

using namespace job;
using Clock = std::chrono::steady_clock;
using Lock = std::unique_lock<std::mutex>;

namespace {
/// A job of one process.
class Alone : public Job {
public:
  int64_t process() const override { return 0; }
  int64_t processes() const override { return 1; }
  std::vector<std::string> allGather(const std::string &,
                                     const std::string &mine) override {
    return {mine};
  }
  std::string fail(const std::string &what) override { return what; }
  std::shared_ptr<void>
  onFailure(std::function<void(const std::string &)>) override {
    return nullptr;
  }
  std::shared_ptr<void> reportProgress(std::function<Progress()>) override {
    return nullptr;
  }
  void leave() override {}
};

class Joined : public Job {
public:
  explicit Joined(const JobOptions &options);
  ~Joined() override;

  int64_t process() const override { return options.process; }
  int64_t processes() const override { return options.processes; }
  std::vector<std::string> allGather(const std::string &name,
                                     const std::string &mine) override;
  std::string fail(const std::string &what) override;
  std::shared_ptr<void>
  onFailure(std::function<void(const std::string &)> callback) override;
  std::shared_ptr<void>
  reportProgress(std::function<Progress()> progress) override;
  void leave() override;
  void forget() override;
  void check() const override;

private:
  using Callback = std::function<void(const std::string &)>;
  /// A function that others call until they take it away.
  template <typename Function>
  struct Called {
    std::mutex mutex;
    Function callback;

    /// Takes it away when what is returned goes, which waits for a call.
    static std::shared_ptr<void>
    untilReleased(const std::shared_ptr<Called> &called) {
      return std::shared_ptr<void>(called.get(), [called](void *) {
        std::lock_guard lock(called->mutex);
        called->callback = nullptr;
      });
    }
  };
  using Listener = Called<Callback>;
  using Reporter = Called<std::function<Progress()>>;

  void meet();
  void tellLauncher();
  void stop();
  void send(Kind kind, const std::string &fields);
  void write(const std::string &bytes);
  void work();
  void take(const Frame &frame);
  void setError(const std::string &what);
  Progress progress();
  void beat();

  const JobOptions options;
  const std::string secret;
  int socket = -1;
  int wakePipe[2] = {-1, -1};
  std::unique_ptr<Coordinator> coordinator;
  /// Of another process, which has forked this one.
  bool isForgotten = false;

  std::mutex sendMutex, mutex;
  std::condition_variable changed;
  // Guarded by `mutex`.
  bool isWelcome = false, isOver = false, isEnding = false;
  std::optional<std::vector<std::string>> gathered;
  std::optional<std::string> error;
  std::vector<std::weak_ptr<Listener>> listeners;
  std::vector<std::weak_ptr<Reporter>> reporters;

  // Of the thread: bytes of frames that are not complete, when the coordinator
  // was last heard, and how long it may be silent (0: for ever), which it says.
  std::string in, coordinatorName = "process 0";
  Clock::time_point heard = Clock::now();
  std::chrono::milliseconds patience;
  std::thread thread;
};
} // namespace

Joined::Joined(const JobOptions &options)
    : options(options), secret(readSecret()),
      patience(static_cast<int64_t>(options.joinLimit * 1000)) {
  if (pipe2(wakePipe, O_CLOEXEC) != 0)
    throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
  try {
    meet();
  } catch (...) {
    stop();
    throw;
  }
}

/// Joins the others, or throws Error.
void Joined::meet() {
  if (options.process == 0) {
    int listener = options.listener;
    if (listener < 0)
      listener = listenForOthers(options.host, options.port);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      throw Error(std::string("cannot make a pair of sockets: ") +
                  std::strerror(errno));
    socket = pair[0];
    coordinator = Coordinator::create(options, secret, listener, pair[1]);
  } else {
    // The first process may have been given a socket that listens, but come to
    // it much later.
    Greeting greeting(options, secret, getpid(), Clock::now() + patience);
    socket = greeting.take(in);
  }
  thread = std::thread([this] {
    try {
      work();
    } catch (const std::bad_alloc &) {
      setError(name() + ": out of memory");
    }
  });
  Lock lock(mutex);
  changed.wait(lock, [&] { return isWelcome || error; });
  if (error)
    throw Error(*error);
  tellLauncher();
}

/// Who ends before that has not joined: nobody but the launcher knows then.
void Joined::tellLauncher() {
  if (options.launcher < 0)
    return;
  auto number = static_cast<uint64_t>(options.process);
  [[maybe_unused]] ssize_t put =
      ::write(options.launcher, &number, sizeof(number));
  close(options.launcher);
}

Joined::~Joined() { stop(); }

void Joined::stop() {
  {
    Lock lock(mutex);
    isEnding = true;
    changed.notify_all();
  }
  [[maybe_unused]] ssize_t put = ::write(wakePipe[1], "", 1);
  if (thread.joinable())
    thread.join();
  coordinator.reset();
  for (int *file : {&socket, &wakePipe[0], &wakePipe[1]})
    if (*file >= 0)
      close(std::exchange(*file, -1));
}

void Joined::send(Kind kind, const std::string &fields) {
  std::string bytes = encode(kind, fields);
  std::lock_guard lock(sendMutex);
  write(bytes);
}

/// With `sendMutex` held.
void Joined::write(const std::string &bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    ssize_t size =
        ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR)
      continue;
    if (size <= 0)
      return; // The thread sees that the connection is closed, too.
    sent += size;
  }
}

void Joined::setError(const std::string &what) {
  std::vector<std::weak_ptr<Listener>> called;
  {
    Lock lock(mutex);
    if (error || isOver)
      return;
    error = what;
    called = listeners;
    changed.notify_all();
  }
  for (const std::weak_ptr<Listener> &each : called)
    if (auto listener = each.lock()) {
      std::lock_guard lock(listener->mutex);
      if (listener->callback)
        std::exchange(listener->callback, nullptr)(what);
    }
}

void Joined::take(const Frame &frame) {
  FieldReader fields(frame.fields);
  if (frame.kind == Kind::Beat) {
    patience = std::chrono::milliseconds(fields.number());
    return;
  }
  if (frame.kind == Kind::Fail)
    return setError(fields.text());
  Lock lock(mutex);
  if (frame.kind == Kind::Welcome) {
    isWelcome = true;
    coordinatorName = fields.text();
  } else if (frame.kind == Kind::Gathered) {
    fields.text();
    std::vector<std::string> list;
    for (int64_t i = 0; i < options.processes; ++i)
      list.push_back(fields.text());
    gathered = std::move(list);
  } else if (frame.kind == Kind::Bye) {
    isOver = true;
  }
  changed.notify_all();
}

/// Of all programs together.
Progress Joined::progress() {
  std::vector<std::weak_ptr<Reporter>> called;
  {
    Lock lock(mutex);
    std::erase_if(reporters, [](const auto &each) { return each.expired(); });
    called = reporters;
  }
  Progress all;
  bool isInFirstStep = false;
  for (const std::weak_ptr<Reporter> &each : called) {
    std::shared_ptr<Reporter> reporter = each.lock();
    if (!reporter)
      continue;
    std::lock_guard lock(reporter->mutex);
    if (!reporter->callback)
      continue;
    Progress one = reporter->callback();
    all.count += one.count;
    all.steps += one.steps;
    all.slowestStep = std::max(all.slowestStep, one.slowestStep);
    isInFirstStep |= one.isInStep && one.steps == 0;
    // Several at once are rare, and the last says enough.
    bool isAtWork = one.isInStep || one.isInRelayout;
    if (isAtWork || all.ranks.empty())
      all.ranks = one.ranks;
    if (isAtWork) {
      all.busy = one.busy;
      all.waiting = one.waiting;
      all.awaited = one.awaited;
    }
    all.isInStep |= one.isInStep;
    all.running.insert(all.running.end(), one.running.begin(),
                       one.running.end());
    all.isInRelayout |= one.isInRelayout;
  }
  if (isInFirstStep)
    all.steps = 0;
  return all;
}

/// Not while something else is sent, which may wait for a coordinator that
/// takes nothing any more: what is sent is a sign of life, too.
void Joined::beat() {
  std::unique_lock lock(sendMutex, std::try_to_lock);
  if (!lock)
    return;
  write(encode(Kind::Beat, writeProgress(progress())));
}

void Joined::work() {
  auto interval = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double>(options.reportSeconds));
  auto nextBeat = Clock::now();
  while (true) {
    bool isWrong = false;
    while (auto frame = decode(in, membersBytes, isWrong))
      take(*frame);
    if (isWrong)
      setError("the connection with the first process carries nonsense");
    {
      Lock lock(mutex);
      if (isEnding)
        return;
    }
    if (Clock::now() >= nextBeat) {
      beat();
      nextBeat = Clock::now() + interval;
    }
    pollfd files[] = {{socket, POLLIN, 0}, {wakePipe[0], POLLIN, 0}};
    if (poll(files, 2, static_cast<int>(interval.count())) < 0)
      continue;
    // Of a process that was stopped itself there is something to read.
    if (!files[0].revents) {
      if (patience.count() > 0 && Clock::now() - heard > patience) {
        setError(coordinatorName +
                 ", which coordinates the others, has given no sign of life "
                 "for " +
                 std::to_string(patience.count() / 1000) +
                 " seconds: it was stopped, or its host cannot be reached");
        // A thread that sends to it goes on.
        shutdown(socket, SHUT_RDWR);
      }
      continue;
    }
    char buffer[65536];
    ssize_t size = recv(socket, buffer, sizeof(buffer), 0);
    if (size < 0 && errno == EINTR)
      continue;
    if (size <= 0) {
      setError(coordinatorName + ", which coordinates the others, " +
               (size < 0 && isUnreachable(errno) ? "cannot be reached any more"
                                                 : "has ended unexpectedly"));
      // Only `isEnding` ends the thread.
      Lock lock(mutex);
      changed.wait(lock, [&] { return isEnding; });
      return;
    }
    // Any bytes are a sign of life: a long frame takes a while.
    heard = Clock::now();
    in.append(buffer, size);
  }
}

void Joined::forget() {
  isForgotten = true;
  for (int *file : {&socket, &wakePipe[0], &wakePipe[1]})
    close(std::exchange(*file, -1));
  if (coordinator)
    coordinator->forget();
}

void Joined::check() const {
  if (isForgotten)
    throw Error("a child of process " + std::to_string(options.process) +
                " (fork) takes no part in what the processes do together");
}

std::vector<std::string> Joined::allGather(const std::string &name,
                                           const std::string &mine) {
  check();
  if (mine.size() > mostGathered)
    throw Error(name + " has " + std::to_string(mine.size()) +
                " bytes, more than processes tell each other (" +
                std::to_string(mostGathered) + ")");
  send(Kind::Gather, FieldWriter().text(name).text(mine).take());
  Lock lock(mutex);
  changed.wait(lock, [&] { return gathered || error; });
  if (error)
    throw Error(*error);
  return *std::exchange(gathered, std::nullopt);
}

std::string Joined::fail(const std::string &what) {
  if (isForgotten)
    return what;
  send(Kind::Fail, FieldWriter().text(what).take());
  // Another process may have been first.
  constexpr std::chrono::seconds patience(2);
  {
    Lock lock(mutex);
    if (isOver)
      return what;
    changed.wait_for(lock, patience, [&] { return error.has_value(); });
  }
  setError(what);
  Lock lock(mutex);
  return error ? *error : what;
}

std::shared_ptr<void> Joined::onFailure(Callback callback) {
  auto listener = std::make_shared<Listener>();
  listener->callback = std::move(callback);
  std::optional<std::string> already;
  {
    Lock lock(mutex);
    already = error;
    std::erase_if(listeners, [](const auto &each) { return each.expired(); });
    if (!already)
      listeners.push_back(listener);
  }
  if (already)
    std::exchange(listener->callback, nullptr)(*already);
  return Listener::untilReleased(listener);
}

std::shared_ptr<void>
Joined::reportProgress(std::function<Progress()> progress) {
  auto reporter = std::make_shared<Reporter>();
  reporter->callback = std::move(progress);
  {
    Lock lock(mutex);
    reporters.push_back(reporter);
  }
  // The others know at once which ranks are here.
  beat();
  return Reporter::untilReleased(reporter);
}

void Joined::leave() {
  check();
  send(Kind::Bye, "");
  Lock lock(mutex);
  changed.wait(lock, [&] { return isOver || error; });
  if (!isOver)
    throw Error(*error);
}

std::string Job::name() const {
  return "process " + std::to_string(process()) + " (" +
         placeOf(hostName(), getpid()) + ")";
}

void Job::agree(
    const std::vector<std::pair<std::string, std::string>> &fields) {
  FieldWriter writer;
  for (const auto &[name, value] : fields)
    writer.text(value);
  std::vector<std::string> all = allGather("what must be equal", writer.take());
  // All see the same texts, and so find the same difference.
  std::vector<FieldReader> readers(all.begin(), all.end());
  for (const auto &[name, value] : fields) {
    std::string first = readers[0].text();
    for (size_t i = 1; i < all.size(); ++i)
      if (std::string other = readers[i].text(); other != first)
        throw Error(name + " differs: process 0 has " + first + ", process " +
                    std::to_string(i) + " has " + other);
  }
}

std::vector<std::string>
Job::together(const std::string &name,
              const std::function<std::string()> &action) {
  if (processes() == 1)
    return {action()};
  std::string mine;
  try {
    mine = "+" + action();
  } catch (const Interrupted &) {
    throw;
  } catch (const std::exception &error) {
    mine = "!" + this->name() + ": " + error.what();
  }
  std::vector<std::string> all = allGather(name, mine);
  for (std::string &each : all) {
    if (each.starts_with("!"))
      throw Error(each.substr(1));
    each.erase(0, 1);
  }
  return all;
}

std::shared_ptr<Job> Job::join(const JobOptions &options) {
  if (options.processes == 1)
    return std::make_shared<Alone>();
  if (!isLoopback(options.host))
    requireSecret();
  return std::make_shared<Joined>(options);
}

} // namespace whale::runtime
