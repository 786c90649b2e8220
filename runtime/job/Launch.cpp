//===- Launch.cpp - Starting the processes of a job -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a number of processes for this host. Out: their common status.
// runProcesses forks, runs this same program again with variables set, and
// watches: once a process has failed or a signal has come, the others have some
// seconds to end by themselves before they are killed. Where the first one
// cannot print the error, this program prints that of another one. The socket
// on which the first process listens is opened before any is started and handed
// on, so that no port is guessed. Each process says by a pipe when it has
// joined the others; of one that ends before, the first process is told.
//
// Cost: a fork and an exec for each process. Until all have ended, every 20 ms
// two system calls for each at most, or three where what it has printed is cut
// off at 1 MiB.
//
//===----------------------------------------------------------------------===//

#include "job/Greeting.h"
#include "job/Members.h"
#include "job/Secret.h"
#include "job/Sockets.h"
#include "transport/SharedFiles.h"
#include "whale/System/Printable.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <list>
#include <set>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace whale::runtime {

namespace {
/// Ended by signals that this process passes on.
volatile sig_atomic_t endingSignal = 0;

/// What the processes of a host are started with, in one attempt.
struct Launch : LaunchOptions {
  int64_t attempt = 0;
  /// Of the first process of all; else -1.
  int listener = -1;
  /// A pipe for the numbers of those that have joined: where these are read,
  /// and where they are written.
  int joined[2] = {-1, -1};
  /// What they run: a child of fork throws nothing.
  std::string program = {};
};

/// A process of this host.
class Child {
public:
  Child(const Launch &launch, int64_t process);
  ~Child();
  Child(const Child &) = delete;
  Child &operator=(const Child &) = delete;

  /// Whether it has ended since the last call.
  bool hasEnded();
  void signal(int number) const {
    if (isRunning)
      kill(pid, number);
  }
  bool hasFailed() const { return status != 0; }
  /// That of a job which it has ended.
  int exitStatus() const { return WIFEXITED(status) ? WEXITSTATUS(status) : 1; }
  bool hasExited() const { return WIFEXITED(status); }
  /// Whether how it has ended says more than that it has: what it has printed
  /// last, which is no error, or a status of its own.
  bool hasWord() const {
    return hasFailed() && lastError().empty() &&
           (exitStatus() != 1 || !lastLine().empty());
  }
  /// Whether it has ended as one that prints why does.
  bool hasSaidWhy() const {
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
  }
  int64_t number() const { return process; }
  pid_t id() const { return pid; }
  /// Why it has ended, if it has printed that last.
  std::string lastError() const;
  /// What Python has printed of the exception that ended it, whole; empty where
  /// it has not, and where that is another process's failure.
  std::string traceback() const;
  /// "process 2 (host a, pid 77)".
  std::string name() const;
  /// "was ended by signal 9 (SIGKILL)".
  std::string end() const;
  std::string lastLine() const;
  /// How the process has ended, and what it has printed last.
  std::string endAndLastLine() const;
  /// The error, or how the process has ended.
  std::string failure() const;

private:
  void openOutput(const Launch &launch);
  [[noreturn]] void become(const Launch &launch) const;
  std::string lastBytes(off_t most) const;

  const int64_t process;
  pid_t pid = -1;
  int status = 0;
  bool isRunning = true;
  /// What it prints, or its errors alone, where nobody wants to read the rest;
  /// -1 where it prints where this process does.
  int output = -1;
  bool isLog = false;
};
} // namespace

std::string logFile(const std::string &directory, int64_t process) {
  return directory + "/process-" + std::to_string(process) + ".log";
}

void Child::openOutput(const Launch &launch) {
  isLog = !launch.logDirectory.empty();
  std::string file = isLog ? logFile(launch.logDirectory, process) : "errors";
  // What an earlier attempt has printed says why there is another one.
  int kept = launch.attempt == 0 ? O_TRUNC : 0;
  output = isLog ? open(file.c_str(),
                        O_RDWR | O_CREAT | kept | O_APPEND | O_CLOEXEC, 0644)
                 : memfd_create(file.c_str(), MFD_CLOEXEC);
  if (output < 0)
    throw Error((isLog ? file
                       : "what process " + std::to_string(process) +
                             " prints cannot be kept") +
                ": " + std::strerror(errno));
  if (!isLog)
    fcntl(output, F_SETFL, O_APPEND);
}

Child::Child(const Launch &launch, int64_t process) : process(process) {
  if (process != launch.first)
    openOutput(launch);
  pid_t parent = getpid();
  pid = fork();
  if (pid < 0)
    throw Error(std::string("cannot start a process: ") + std::strerror(errno));
  if (pid > 0)
    return;
  // No child outlives the process that watches it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);
  become(launch);
}

Child::~Child() {
  if (output >= 0)
    close(output);
}

void Child::become(const Launch &launch) const {
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    std::signal(signal, SIG_DFL);
  setenv("WHALE_PROCESSES", std::to_string(launch.total).c_str(), 1);
  setenv("WHALE_PROCESS", std::to_string(process).c_str(), 1);
  setenv("WHALE_HOST", launch.host.c_str(), 1);
  setenv("WHALE_PORT", std::to_string(launch.port).c_str(), 1);
  setenv("WHALE_ATTEMPT", std::to_string(launch.attempt).c_str(), 1);
  setenv("WHALE_LAUNCHER", std::to_string(launch.joined[1]).c_str(), 1);
  fcntl(launch.joined[1], F_SETFD, 0);
  unsetenv("WHALE_LISTENER");
  if (process == 0 && launch.listener >= 0) {
    setenv("WHALE_LISTENER", std::to_string(launch.listener).c_str(), 1);
    fcntl(launch.listener, F_SETFD, 0);
  }
  if (output >= 0) {
    dup2(isLog ? output : open("/dev/null", O_WRONLY | O_CLOEXEC),
         STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  std::vector<char *> words;
  for (const std::string &argument : launch.arguments)
    words.push_back(const_cast<char *>(argument.c_str()));
  words.push_back(nullptr);
  execv(launch.program.c_str(), words.data());
  _exit(127);
}

bool Child::hasEnded() {
  // What is kept for its last line alone must not grow.
  constexpr off_t mostBytes = 1 << 20;
  struct stat file;
  if (output >= 0 && !isLog && fstat(output, &file) == 0 &&
      file.st_size > mostBytes) [[maybe_unused]]
    int done = ftruncate(output, 0);
  if (!isRunning || waitpid(pid, &status, WNOHANG) != pid)
    return false;
  isRunning = false;
  return true;
}

std::string Child::lastBytes(off_t most) const {
  struct stat file;
  if (output < 0 || fstat(output, &file) != 0)
    return "";
  std::string text(static_cast<size_t>(std::min(most, file.st_size)), '\0');
  ssize_t size = pread(output, text.data(), text.size(),
                       file.st_size - static_cast<off_t>(text.size()));
  text.resize(std::max<ssize_t>(0, size));
  // Below an exception JAX says that it has shortened the traceback.
  if (size_t note = text.rfind("\n--------------------\nFor simplicity, JAX");
      note != text.npos && text.find('\n', note + 22) >= text.size() - 1)
    text.resize(note + 1);
  // That others miss it does not say why it has ended.
  size_t last = text.size() < 2 ? 0 : text.rfind('\n', text.size() - 2) + 1;
  std::string own = "error: process " + std::to_string(process) + " (";
  if (text.compare(last, own.size(), own) == 0 &&
      text.find(") has ended, where ", last) != text.npos)
    text.resize(last);
  return text;
}

std::string Child::lastLine() const {
  std::string text = lastBytes(4096);
  size_t end = text.find_last_not_of('\n');
  if (end == text.npos)
    return "";
  size_t before = text.rfind('\n', end);
  return text.substr(before == text.npos ? 0 : before + 1, end - before);
}

std::string Child::traceback() const {
  if (!hasSaidWhy() || lastError().starts_with("process "))
    return "";
  std::string text = lastBytes(1 << 16);
  size_t begin = text.find("Traceback (most recent call last):");
  return begin == text.npos ? "" : text.substr(begin);
}

std::string Child::lastError() const {
  // "error: " of whale-run, "whale.errors.RuntimeError: " of Python.
  constexpr std::string_view mark = "rror: ";
  std::string line = lastLine();
  size_t found = line.find(mark);
  if (found == line.npos)
    return "";
  // What other exceptions say may be no sentence: that of a KeyError is a key.
  std::string_view kind(line.data(), found);
  bool isOther = kind.size() > 1 && kind.find(' ') == kind.npos &&
                 !kind.starts_with("whale.");
  return isOther ? line : line.substr(found + mark.size());
}

std::string Child::end() const {
  if (!WIFSIGNALED(status))
    return "has ended with status " + std::to_string(WEXITSTATUS(status));
  int number = WTERMSIG(status);
  std::string text = "was ended by signal " + std::to_string(number);
  const char *name = sigabbrev_np(number);
  return name ? text + " (SIG" + name + ")" : text;
}

std::string Child::name() const {
  return "process " + std::to_string(process) + " (" +
         job::placeOf(job::hostName(), pid) + ")";
}

std::string Child::endAndLastLine() const {
  std::string line = lastLine();
  return name() + " " + end() +
         (line.empty() ? "" : ", and has printed last: " + line);
}

std::string Child::failure() const {
  std::string error = lastError();
  return !error.empty() ? error : endAndLastLine();
}

namespace {
/// Tells the first process of one that has ended before it had joined. Goes on
/// until that is told, which may not listen yet, or this object goes.
class Report {
public:
  Report(const Launch &launch, const Child &child) {
    JobOptions options;
    options.process = child.number();
    options.processes = launch.total;
    options.host = launch.host;
    options.port = launch.port;
    options.attempt = launch.attempt;
    std::string what = child.lastError();
    if (what.empty())
      what = "it " + child.end();
    thread = std::jthread([this, options, what = what.substr(0, mostBytes),
                           pid = child.id()](const std::stop_token &stop) {
      bool isTold = false;
      for (auto limit = Clock::now() + patience;
           !isTold && !stop.stop_requested() && Clock::now() < limit;)
        try {
          job::Greeting(options, job::readSecret(), pid, Clock::now() + attempt,
                        what);
          isTold = true;
        } catch (const Error &) {
          std::this_thread::sleep_for(pause);
        }
      isOver = true;
    });
  }

  bool hasEnded() const { return isOver; }

private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t mostBytes = 1000;
  // The first process may have to load much before it listens.
  static constexpr std::chrono::seconds patience{30};
  static constexpr std::chrono::milliseconds attempt{200}, pause{20};

  std::atomic<bool> isOver = false;
  std::jthread thread;
};

/// Which processes have joined, and reports of those that have ended before.
class Absent {
public:
  explicit Absent(const Launch &launch) : launch(launch) {}

  void add(const Child &ended) {
    readJoined();
    // Who would be told is the first.
    if (ended.number() != 0 && !joined.contains(ended.number()))
      reports.emplace_back(launch, ended);
  }
  /// Whether nobody had, where all have ended.
  bool noneHasJoined() {
    readJoined();
    return joined.empty();
  }
  /// Whether the first process, of another host, may still have to be told.
  bool isTelling() const {
    return launch.first > 0 && !std::ranges::all_of(reports, &Report::hasEnded);
  }

private:
  void readJoined() {
    uint64_t number;
    while (read(launch.joined[0], &number, sizeof(number)) == sizeof(number))
      joined.insert(static_cast<int64_t>(number));
  }

  const Launch &launch;
  std::set<int64_t> joined;
  std::list<Report> reports;
};
} // namespace

/// Each process of another launcher would begin a job of its own, and all write
/// the same files.
static void refuseOtherLaunchers() {
  for (const char *name :
       {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE"})
    if (const char *text = std::getenv(name); text && std::atoll(text) > 1)
      throw Error(std::string("--nprocs: ") + text +
                  " processes have been started already (" + name +
                  "): leave it out, or say by --coordinator and --node which "
                  "of the hosts each is");
}

/// Waits until all have ended. Returns the one whose failure is to be told, if
/// any has failed: the first that has ended without a word, of itself, as what
/// others have printed is that they miss it; else the first. `passedOn` becomes
/// the signal that has come, `noneHasJoined` whether each was alone.
static const Child *watch(const Launch &launch, std::list<Child> &children,
                          int &passedOn, bool &noneHasJoined) {
  using Clock = std::chrono::steady_clock;
  // The others end by themselves, with the error, once one has. After a signal
  // they may have a state to save.
  constexpr std::chrono::seconds graceOfFailure(4), graceOfSignal(30);
  constexpr std::chrono::milliseconds pause(20);
  std::optional<Clock::time_point> failed;
  const Child *toTell = nullptr;
  bool hasSignalled = false;
  Absent absent(launch);
  auto signalAll = [&](int number) {
    hasSignalled = true;
    for (const Child &child : children)
      child.signal(number);
  };
  auto isTelling = [&] { return toTell && !passedOn && absent.isTelling(); };
  for (size_t running = children.size(); running > 0 || isTelling();) {
    for (Child &child : children) {
      if (!child.hasEnded())
        continue;
      --running;
      absent.add(child);
      if (!child.hasFailed())
        continue;
      if (!toTell)
        failed = Clock::now();
      // A large process ends later than those that lose it.
      if (!toTell ||
          (toTell->hasSaidWhy() && !child.hasSaidWhy() && !hasSignalled))
        toTell = &child;
    }
    if (endingSignal && !passedOn) {
      passedOn = endingSignal;
      failed = Clock::now();
      signalAll(passedOn);
    }
    if (failed &&
        Clock::now() - *failed > (passedOn ? graceOfSignal : graceOfFailure))
      signalAll(SIGKILL);
    if (running > 0 || isTelling())
      std::this_thread::sleep_for(pause);
  }
  noneHasJoined = absent.noneHasJoined();
  return toTell;
}

namespace {
/// How an attempt has ended.
struct Attempt {
  /// As runProcesses returns it.
  int status;
  /// Whether another one may end better.
  bool mayBeRepeated = false;
};
} // namespace

static Attempt runOnce(Launch launch) {
  if (pipe2(launch.joined, O_CLOEXEC | O_NONBLOCK) != 0)
    throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
  if (launch.first == 0) {
    // Listening before anybody is started, so that no port is guessed.
    launch.listener = launch.count == launch.total
                          ? job::listenOn(launch.host, launch.port)
                          : job::listenForOthers(launch.host, launch.port);
    launch.port = job::portOf(launch.listener);
  }
  std::list<Child> children;
  try {
    for (int64_t i = 0; i < launch.count; ++i)
      children.emplace_back(launch, launch.first + i);
  } catch (...) {
    for (const Child &child : children)
      child.signal(SIGKILL);
    throw;
  }
  if (launch.listener >= 0)
    close(launch.listener);
  int passedOn = 0;
  close(launch.joined[1]);
  bool noneHasJoined = false;
  const Child *failed = watch(launch, children, passedOn, noneHasJoined);
  close(launch.joined[0]);
  if (failed)
    SharedFiles::sweep();
  if (passedOn)
    return {-passedOn};
  if (!failed && noneHasJoined && launch.total > 1) {
    std::cerr << "error: none of the processes has joined the others: each has "
                 "run all of the script by itself; call wh.init_distributed() "
                 "at its beginning\n";
    return {1};
  }
  if (!failed)
    return {0};
  auto raised = std::ranges::find_if(
      children, [](const Child &child) { return !child.traceback().empty(); });
  if (raised != children.end())
    std::cerr << raised->name() + ":\n" + raised->traceback();
  if (!children.front().hasSaidWhy())
    std::cerr << "error: " + system::diagnosticLine(failed->failure()) + "\n";
  // The first of them has printed the job's error, that another one is lost:
  // which may take longer to end.
  else if (raised == children.end())
    if (auto lost = std::find_if(
            std::next(children.begin()), children.end(),
            [&](const Child &child) {
              return child.hasWord() && (&child == failed || child.hasExited());
            });
        lost != children.end())
      std::cerr << "note: " + system::diagnosticLine(lost->endAndLastLine()) +
                       "\n";
  return {failed->exitStatus(), /*mayBeRepeated=*/true};
}

int runProcesses(const LaunchOptions &options) {
  if (options.count == options.total)
    refuseOtherLaunchers();
  // Where whoever has started this one ignores it, the end of a child would not
  // be heard of.
  std::signal(SIGCHLD, SIG_DFL);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    action.sa_handler = [](int signal) { endingSignal = signal; };
    sigaction(signal, &action, nullptr);
  }
  std::string program = std::filesystem::read_symlink("/proc/self/exe");
  for (int64_t attempt = 0;; ++attempt) {
    Launch launch{options};
    launch.attempt = attempt;
    launch.program = program;
    Attempt made = runOnce(std::move(launch));
    if (!made.mayBeRepeated || attempt == options.restarts)
      return made.status;
    std::cerr << "remark: starting all processes again: attempt " << attempt + 2
              << " of " << options.restarts + 1 << "\n";
  }
}

} // namespace whale::runtime
