//===- Coordinator.cpp - What connects the processes of a job -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the connections of all processes. Out: frames that all of them get (all
// have joined, what all have given, the first error, all have ended).
//
// One thread in a poll loop; it computes nothing that takes time. Whoever
// connects is a stranger until it has proved that it has the secret: a stranger
// that sends anything else, too much, or nothing for some seconds, is
// disconnected and changes nothing for the others. A process whose connection
// closes before it has said that it ends has died: an error for all others. One
// that is silent, or whose ranks do not go on in a step, is one after the
// limit.
//
// Cost: each turn of the loop looks at all connections and members, each frame
// of a gathering at all members. What processes have given is joined once all
// have, and sent whole to each: the square of the processes, times a text.
//
//===----------------------------------------------------------------------===//

#include "job/Coordinator.h"

#include "job/Members.h"
#include "job/Messages.h"
#include "job/ProgressLimit.h"
#include "job/Secret.h"
#include "job/Sockets.h"
#include "whale/System/Printable.h"
#include "whale/Version.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <iostream>
#include <list>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace whale::runtime::job {

using Clock = std::chrono::steady_clock;

struct Connection {
  int socket = -1;
  std::string in;
  /// Frames that are not sent yet, which may be as large as a program, and the
  /// same for all; and how many bytes of the first are on their way.
  std::deque<std::shared_ptr<const std::string>> out;
  size_t sent = 0;
  Clock::time_point since = Clock::now();
  /// What it has said first, as it was said, and the challenge that it got.
  std::optional<Hello> hello;
  std::string saidHello, challenge;
  std::optional<int64_t> process;
  bool isMember = false, isClosed = false;
};

namespace {
/// How long a stranger may take to prove that it has the secret, the others to
/// take the last error, and those that have not joined to come for it.
constexpr double strangersLimit = 10, farewellLimit = 5, latecomersLimit = 3;

class Server : public Coordinator {
public:
  Server(const JobOptions &options, const std::string &secret, int listener,
         int first);
  ~Server() override;
  void forget() override { closeAll(); }

private:
  void closeAll();
  void work();
  void poll();
  void accept();
  void refuseAll(const std::string &why);
  void read(Connection &connection);
  void write(Connection &connection);
  void send(Connection &connection, Kind kind, const std::string &fields);
  void handle(Connection &connection, const Frame &frame);
  void challenge(Connection &connection, const std::string &said);
  void greet(Connection &connection, const Frame &frame);
  void mourn(Connection &connection, const std::string &name);
  void join(Connection &connection);
  void gather();
  void lose(Connection &connection, int error = 0);
  void watch();
  void warn();
  double limit() const;
  double patience() const;
  void fail(const std::string &what);
  bool isTold() const;
  void sendAll(Kind kind, const std::string &fields);

  const JobOptions options;
  const std::string secret;
  int listener;
  int wakePipe[2] = {-1, -1};
  std::list<Connection> connections;
  Members members;
  Clock::time_point begin = Clock::now();
  Clock::time_point failed;
  std::string failure;
  bool isComplete = false, hasFailed = false, isOver = false;
  bool hasWarned = false;
  std::atomic<bool> isEnding = false;
  std::thread thread;
};
} // namespace

Server::Server(const JobOptions &options, const std::string &secret,
               int listener, int first)
    : options(options), secret(secret), listener(listener),
      members(static_cast<size_t>(options.processes)) {
  if (pipe2(wakePipe, O_CLOEXEC) != 0)
    throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
  fcntl(listener, F_SETFL, O_NONBLOCK);
  fcntl(first, F_SETFL, O_NONBLOCK);
  Connection &own = connections.emplace_back();
  own.socket = first;
  own.process = 0;
  members[0].place = placeOf(hostName(), getpid());
  join(own);
  thread = std::thread([this] { work(); });
}

Server::~Server() {
  isEnding = true;
  [[maybe_unused]] ssize_t put = ::write(wakePipe[1], "", 1);
  thread.join();
  closeAll();
}

void Server::closeAll() {
  for (Connection &connection : connections)
    close(connection.socket);
  for (int file : {listener, wakePipe[0], wakePipe[1]})
    close(file);
}

void Server::work() {
  while (true) {
    bool isSent = std::ranges::all_of(connections, [](const Connection &each) {
      return each.isClosed || each.out.empty();
    });
    if (isEnding && isSent && isTold())
      return;
    if (isEnding && hasFailed && secondsSince(failed) > farewellLimit)
      return;
    poll();
    watch();
    connections.remove_if([](const Connection &each) {
      if (each.isClosed)
        close(each.socket);
      return each.isClosed;
    });
  }
}

void Server::poll() {
  std::vector<pollfd> files = {{listener, POLLIN, 0}, {wakePipe[0], POLLIN, 0}};
  std::vector<Connection *> order;
  for (Connection &each : connections) {
    short events = POLLIN;
    if (!each.out.empty())
      events |= POLLOUT;
    files.push_back({each.socket, events, 0});
    order.push_back(&each);
  }
  constexpr int milliseconds = 250;
  if (::poll(files.data(), files.size(), isEnding ? 10 : milliseconds) <= 0)
    return;
  if (char end; files[1].revents) [[maybe_unused]]
    ssize_t got = ::read(wakePipe[0], &end, 1);
  for (size_t i = 0; i < order.size(); ++i) {
    if (files[i + 2].revents & (POLLIN | POLLHUP | POLLERR))
      read(*order[i]);
    if (!order[i]->isClosed && (files[i + 2].revents & POLLOUT))
      write(*order[i]);
  }
  if (files[0].revents)
    accept();
}

void Server::accept() {
  // Of more strangers than that the one that came first has to go.
  auto isStranger = [](const Connection &each) {
    return !each.isMember && !each.isClosed;
  };
  size_t strangers = std::ranges::count_if(connections, isStranger);
  if (strangers > 64 + members.size())
    lose(*std::ranges::find_if(connections, isStranger));
  int socket =
      accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) {
    // Who waits there would stay, and so would this process.
    if (!isComplete && (errno == EMFILE || errno == ENFILE ||
                        errno == ENOBUFS || errno == ENOMEM))
      refuseAll(std::strerror(errno));
    return;
  }
  watchLink(socket);
  connections.emplace_back().socket = socket;
}

/// The job fails, as this process can accept no connection more. Those who
/// wait for one are told nothing.
void Server::refuseAll(const std::string &why) {
  fail(members.nameOf(members[0]) + " cannot accept connections: " + why);
  for (Member &member : members)
    member.knowsFailure = true;
}

void Server::read(Connection &connection) {
  char buffer[65536];
  while (!connection.isClosed) {
    ssize_t size = recv(connection.socket, buffer, sizeof(buffer), 0);
    if (size < 0 && errno == EINTR)
      continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    if (size <= 0)
      return lose(connection, size < 0 ? errno : 0);
    connection.in.append(buffer, size);
    // Any bytes are a sign of life: a long frame takes a while.
    if (connection.isMember)
      members[*connection.process].heard = Clock::now();
    bool isWrong = false;
    while (auto frame = decode(
               connection.in,
               connection.isMember ? membersBytes : strangersBytes, isWrong)) {
      handle(connection, *frame);
      if (connection.isClosed)
        return;
    }
    if (isWrong)
      return lose(connection);
  }
}

void Server::write(Connection &connection) {
  while (!connection.out.empty()) {
    const std::string &bytes = *connection.out.front();
    ssize_t size = ::send(connection.socket, bytes.data() + connection.sent,
                          bytes.size() - connection.sent, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR)
      continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    if (size < 0)
      return lose(connection, errno);
    connection.sent += size;
    if (connection.sent < bytes.size())
      continue;
    connection.out.pop_front();
    connection.sent = 0;
  }
}

void Server::send(Connection &connection, Kind kind,
                  const std::string &fields) {
  connection.out.push_back(
      std::make_shared<const std::string>(encode(kind, fields)));
  write(connection);
}

void Server::sendAll(Kind kind, const std::string &fields) {
  auto bytes = std::make_shared<const std::string>(encode(kind, fields));
  for (Member &member : members)
    if (member.connection) {
      member.connection->out.push_back(bytes);
      write(*member.connection);
    }
}

void Server::fail(const std::string &what) {
  if (hasFailed || isOver)
    return;
  hasFailed = true;
  failed = Clock::now();
  failure = what;
  for (Member &member : members)
    member.knowsFailure |= member.connection != nullptr;
  sendAll(Kind::Fail, FieldWriter().text(what).take());
}

/// Whether nobody who may still come would miss why the job has failed.
bool Server::isTold() const {
  return !hasFailed || isComplete || secondsSince(failed) > latecomersLimit ||
         secondsSince(begin) > options.joinLimit ||
         std::ranges::all_of(members, &Member::knowsFailure);
}

/// The connection has ended, with this error if it was not closed.
void Server::lose(Connection &connection, int error) {
  connection.isClosed = true;
  if (!connection.isMember) {
    if (connection.process)
      members[*connection.process].stranger = system::diagnosticLine(
          placeOf(connection.hello->host, connection.hello->processId));
    return;
  }
  Member &member = members[*connection.process];
  member.connection = nullptr;
  if (member.hasLeft)
    return;
  const Progress &last = member.progress;
  const std::string &doing = last.busy.empty() ? last.waiting : last.busy;
  fail(members.nameOf(member) +
       (isUnreachable(error) ? " cannot be reached any more"
                             : " has ended unexpectedly") +
       (last.isInStep && !doing.empty() ? ": when it was last heard, " + doing
                                        : "") +
       members.whoWait());
}

/// Answers to the first words of a stranger.
void Server::challenge(Connection &connection, const std::string &said) {
  connection.hello = Hello::read(said);
  if (!connection.hello)
    return lose(connection);
  const Hello &hello = *connection.hello;
  // This attempt has failed; a later one listens here soon.
  if (hello.attempt > static_cast<uint64_t>(options.attempt))
    return lose(connection);
  connection.saidHello = said;
  connection.challenge =
      FieldWriter().text(makeNonce()).text(options.program).take();
  if (hello.version == WHALE_VERSION_TEXT && hello.process < members.size() &&
      hello.processes == members.size() &&
      hello.attempt == static_cast<uint64_t>(options.attempt))
    connection.process = static_cast<int64_t>(hello.process);
  std::string proof =
      prove(secret, "coordinator", connection.saidHello, connection.challenge);
  send(connection, Kind::Challenge,
       connection.challenge + FieldWriter().text(proof).take());
}

void Server::greet(Connection &connection, const Frame &frame) {
  auto refuse = [&](const std::string &what) {
    send(connection, Kind::Fail, FieldWriter().text(what).take());
    lose(connection);
  };
  if (frame.kind == Kind::Hello && !connection.hello)
    return challenge(connection, frame.fields);
  if (frame.kind != Kind::Proof || !connection.hello)
    return lose(connection);
  FieldReader fields(frame.fields);
  std::string proof = fields.text();
  if (!fields.isComplete() ||
      !isEqual(proof, prove(secret, "process", connection.saidHello,
                            connection.challenge)))
    return refuse("this process has another WHALE_SECRET than the first one");
  // From here on it is one of ours: what is wrong with it is an error for all.
  const Hello &hello = *connection.hello;
  std::string place = placeOf(hello.host, hello.processId);
  std::string number = std::to_string(hello.process);
  std::string name = "process " + number + " (" + place + ")";
  auto attempt = static_cast<uint64_t>(options.attempt);
  // What is left of an attempt that has failed is no reason to fail again.
  if (hello.attempt < attempt)
    return refuse(name + " is of attempt " + std::to_string(hello.attempt + 1) +
                  " of the job, which is at its attempt " +
                  std::to_string(attempt + 1));
  if (!hello.failure.empty()) {
    mourn(connection, name);
    return lose(connection);
  }
  std::string what;
  if (hello.version != WHALE_VERSION_TEXT)
    what = name + " is of another version: " + hello.version +
           ", the first process is " + WHALE_VERSION_TEXT;
  else if (!connection.process)
    what = name + " is one of " + std::to_string(hello.processes) +
           " processes, the first process is one of " +
           std::to_string(members.size());
  else if (members[*connection.process].connection ||
           members[*connection.process].hasLeft)
    what = "two processes are process " + number + ": " +
           members.nameOf(members[*connection.process]) + " and " + name;
  else if (!hello.program.empty() && !options.program.empty() &&
           hello.program != options.program)
    what = "the program differs: process 0 has " + options.program + ", " +
           name + " has " + hello.program;
  // Once the job is at work, what comes is not one of its processes.
  bool isAtWork = std::ranges::any_of(members, [](const Member &each) {
    return each.progress.isInStep || each.progress.steps > 0;
  });
  if (!what.empty() && !isAtWork)
    fail(what);
  if (hasFailed && connection.process)
    members[*connection.process].knowsFailure = true;
  if (hasFailed || !what.empty())
    return refuse(hasFailed ? failure : what);
  members[*connection.process].place = place;
  join(connection);
}

/// Of a process, called `name`, that has ended before it had joined.
void Server::mourn(Connection &connection, const std::string &name) {
  std::optional<int64_t> process = std::exchange(connection.process, {});
  if (!process)
    return;
  Member &member = members[*process];
  if (isComplete || member.connection || member.hasLeft)
    return;
  member.knowsFailure = true;
  fail(name + " has not joined: " + connection.hello->failure);
}

void Server::join(Connection &connection) {
  connection.isMember = true;
  Member &member = members[*connection.process];
  member.connection = &connection;
  member.heard = member.advanced = Clock::now();
  isComplete = std::ranges::all_of(
      members, [](const Member &each) { return each.connection != nullptr; });
  if (isComplete)
    sendAll(Kind::Welcome,
            FieldWriter().text(members.nameOf(members[0])).take());
}

void Server::handle(Connection &connection, const Frame &frame) {
  if (!connection.isMember)
    return greet(connection, frame);
  Member &member = members[*connection.process];
  FieldReader fields(frame.fields);
  if (frame.kind == Kind::Gather) {
    std::string name = fields.text();
    member.given = {name, fields.text()};
    member.advanced = Clock::now();
    gather();
  } else if (frame.kind == Kind::Fail) {
    fail(fields.text());
  } else if (frame.kind == Kind::Beat) {
    std::optional<Progress> next = readProgress(frame.fields);
    if (!next)
      return lose(connection);
    bool isMoving = next->count != member.progress.count;
    member.progress = *next;
    if (isMoving || !member.isWaiting())
      member.advanced = Clock::now();
    if (member.isWaiting())
      member.outside = Clock::now();
    // So the member sees that the first process lives.
    send(connection, Kind::Beat,
         FieldWriter().number(static_cast<uint64_t>(limit() * 1e3)).take());
  } else if (frame.kind == Kind::Bye) {
    member.hasLeft = true;
    member.left = Clock::now();
    gather();
    // Who leaves because of a failure is told that, not that all went well.
    if (!hasFailed && std::ranges::all_of(members, [](const Member &each) {
          return each.hasLeft;
        })) {
      sendAll(Kind::Bye, "");
      isOver = true;
    }
  } else {
    return lose(connection);
  }
  if (fields.isWrong())
    lose(connection);
}

/// Answers once all processes have given something.
void Server::gather() {
  const Member *given = nullptr, *gone = nullptr;
  for (const Member &member : members) {
    if (member.given)
      given = &member;
    else if (member.hasLeft)
      gone = &member;
    else
      return;
  }
  if (!given)
    return;
  if (gone)
    return fail(members.nameOf(*gone) + " has ended, where " +
                members.nameOf(*given) + " exchanges " + given->given->first);
  FieldWriter fields;
  fields.text(given->given->first);
  for (Member &member : members) {
    if (member.given->first != given->given->first)
      return fail(members.nameOf(member) + " exchanges " + member.given->first +
                  ", where " + members.nameOf(*given) + " exchanges " +
                  given->given->first);
    fields.text(member.given->second);
  }
  std::string name = given->given->first, all = fields.take();
  for (Member &member : members) {
    member.given.reset();
    member.advanced = Clock::now();
  }
  if (all.size() >= membersBytes)
    return fail(name + " of all processes have " + std::to_string(all.size()) +
                " bytes, more than processes tell each other (" +
                std::to_string(membersBytes) + ")");
  sendAll(Kind::Gathered, all);
}

/// Seconds in which the job may make no progress inside a step.
double Server::limit() const {
  double slowest = 0;
  uint64_t steps = ~uint64_t(0);
  for (const Member &member : members) {
    slowest = std::max(slowest, member.progress.slowestStep);
    steps = std::min(steps, member.progress.steps);
  }
  return progressLimit(options, steps, slowest);
}

/// The same while some relayout, which no step was like, may go on.
double Server::patience() const {
  bool isInRelayout = std::ranges::any_of(
      members, [](const Member &each) { return each.progress.isInRelayout; });
  return isInRelayout && !options.progressLimit
             ? std::max(limit(), firstStepsLimit)
             : limit();
}

void Server::watch() {
  for (Connection &each : connections)
    if (!each.isMember && !each.isClosed &&
        secondsSince(each.since) > strangersLimit)
      lose(each);
  if (hasFailed || isOver)
    return;
  if (!isComplete) {
    if (secondsSince(begin) > options.joinLimit)
      fail(members.missing() + " not joined within " +
           std::to_string(static_cast<int64_t>(options.joinLimit)) +
           " seconds" + members.whoProvedNothing());
    return;
  }
  if (std::string what = members.whoWaitsInVain(options.reportSeconds);
      !what.empty())
    return fail(what);
  warn();
  double limit = this->limit();
  if (limit <= 0)
    return;
  auto within =
      " for " + std::to_string(static_cast<int64_t>(limit)) + " seconds";
  std::string waiting = members.whoWait();
  for (const Member &member : members)
    if (!member.hasLeft && secondsSince(member.heard) > limit)
      return fail(members.nameOf(member) + " has given no sign of life" +
                  within + ": it was stopped, or its host cannot be reached" +
                  waiting);
  // In a step all wait for the slowest: it is one that waits for none. Who
  // waits outside of one waits for others as well.
  limit = patience();
  const Member *stuck = nullptr;
  for (const Member &member : members) {
    if (member.hasLeft || !member.isWaiting() ||
        secondsSince(member.advanced) <= limit)
      continue;
    if (!stuck ||
        (stuck->progress.busy.empty() && !member.progress.busy.empty()))
      stuck = &member;
  }
  bool isMoving = std::ranges::any_of(members, [&](const Member &member) {
    return !member.hasLeft && secondsSince(member.advanced) <= limit;
  });
  if (stuck && !isMoving)
    fail(members.nameOf(*stuck) + " has made no progress" + within +
         (stuck->progress.busy.empty() ? "" : ": " + stuck->progress.busy) +
         members.whoRunOtherSteps() + waiting);
}

/// Says once who keeps the others waiting by what it does outside of steps: it
/// may compile or load data, which is no failure.
void Server::warn() {
  constexpr double reports = 60;
  std::string what = members.whoLetsWait(reports * options.reportSeconds);
  if (!what.empty() && !hasWarned)
    std::cerr << "warning: " << system::diagnosticLine(what) + "\n";
  hasWarned = !what.empty();
}

std::unique_ptr<Coordinator> Coordinator::create(const JobOptions &options,
                                                 const std::string &secret,
                                                 int listener, int first) {
  return std::make_unique<Server>(options, secret, listener, first);
}

} // namespace whale::runtime::job
