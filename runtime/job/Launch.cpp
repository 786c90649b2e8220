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
// on, so that no port is guessed.
//
// Cost: a fork and an exec for each process. Until all have ended, every 20 ms
// two system calls for each at most, or three where what it has printed is cut
// off at 1 MiB.
//
//===----------------------------------------------------------------------===//

#include "job/Secret.h"
#include "job/Sockets.h"
#include "whale/Runtime/Job.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <list>
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

/// What the processes of a host are started with.
struct Launch {
  int64_t first, count, total;
  std::string host;
  int port;
  /// Of the first process of all; else -1.
  int listener = -1;
  /// What they run: a child of fork throws nothing.
  std::string program;
  const std::vector<std::string> &arguments;
  const std::string &logDirectory;
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
  bool isKilled() const { return WIFSIGNALED(status); }
  bool hasFailed() const { return status != 0; }
  /// How it has ended, by what it has printed last.
  std::string failure() const;

private:
  void openOutput(const Launch &launch);
  [[noreturn]] void become(const Launch &launch) const;
  std::string lastLine() const;

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
  output = isLog ? open(file.c_str(),
                        O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644)
                 : memfd_create(file.c_str(), MFD_CLOEXEC);
  if (output < 0)
    throw Error(file + ": " + std::strerror(errno));
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

std::string Child::lastLine() const {
  std::string text(4096, '\0');
  struct stat file;
  if (output < 0 || fstat(output, &file) != 0)
    return "";
  off_t begin =
      std::max<off_t>(0, file.st_size - static_cast<off_t>(text.size()));
  ssize_t size = pread(output, text.data(), text.size(), begin);
  text.resize(std::max<ssize_t>(0, size));
  size_t end = text.find_last_not_of('\n');
  if (end == text.npos)
    return "";
  size_t before = text.rfind('\n', end);
  return text.substr(before == text.npos ? 0 : before + 1, end - before);
}

std::string Child::failure() const {
  // "error: " of whale-run, "whale.errors.RuntimeError: " of Python.
  constexpr std::string_view mark = "rror: ";
  std::string line = lastLine();
  if (size_t found = line.find(mark); found != line.npos)
    return line.substr(found + mark.size());
  std::string name = "process " + std::to_string(process) + " (host " +
                     job::hostName() + ", pid " + std::to_string(pid) + ")";
  return name + (isKilled() ? " was ended by signal " +
                                  std::to_string(WTERMSIG(status))
                            : " has ended with status " +
                                  std::to_string(WEXITSTATUS(status)));
}

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

/// Waits until all have ended. Returns the first that has failed, if any has;
/// `passedOn` becomes the signal that has come.
static const Child *watch(std::list<Child> &children, int &passedOn) {
  using Clock = std::chrono::steady_clock;
  // The others end by themselves, with the error, once one has. After a signal
  // they may have something to save.
  constexpr std::chrono::seconds graceOfFailure(4), graceOfSignal(8);
  constexpr std::chrono::milliseconds pause(20);
  std::optional<Clock::time_point> failed;
  const Child *firstFailed = nullptr;
  auto signalAll = [&](int number) {
    for (const Child &child : children)
      child.signal(number);
  };
  for (size_t running = children.size(); running > 0;) {
    for (Child &child : children) {
      if (!child.hasEnded())
        continue;
      --running;
      if (child.hasFailed() && !firstFailed) {
        firstFailed = &child;
        failed = Clock::now();
      }
    }
    if (endingSignal && !passedOn) {
      passedOn = endingSignal;
      failed = Clock::now();
      signalAll(passedOn);
    }
    if (failed &&
        Clock::now() - *failed > (passedOn ? graceOfSignal : graceOfFailure))
      signalAll(SIGKILL);
    if (running > 0)
      std::this_thread::sleep_for(pause);
  }
  return firstFailed;
}

int runProcesses(int64_t first, int64_t count, int64_t total,
                 const std::string &host, int port,
                 const std::vector<std::string> &arguments,
                 const std::string &logDirectory) {
  if (count == total)
    refuseOtherLaunchers();
  Launch launch = {first,
                   count,
                   total,
                   host,
                   port,
                   /*listener=*/-1,
                   std::filesystem::read_symlink("/proc/self/exe"),
                   arguments,
                   logDirectory};
  if (first == 0) {
    // Listening before anybody is started, so that no port is guessed.
    launch.listener = count == total ? job::listenOn(host, port)
                                     : job::listenForOthers(host, port);
    launch.port = job::portOf(launch.listener);
  }
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    action.sa_handler = [](int signal) { endingSignal = signal; };
    sigaction(signal, &action, nullptr);
  }
  std::list<Child> children;
  try {
    for (int64_t i = 0; i < count; ++i)
      children.emplace_back(launch, first + i);
  } catch (...) {
    for (const Child &child : children)
      child.signal(SIGKILL);
    throw;
  }
  if (launch.listener >= 0)
    close(launch.listener);
  int passedOn = 0;
  const Child *failed = watch(children, passedOn);
  if (passedOn)
    return -passedOn;
  if (!failed)
    return 0;
  // The first of them has printed the job's error, unless it was killed.
  if (children.front().isKilled())
    std::cerr << "error: " << failed->failure() << "\n";
  return 1;
}

} // namespace whale::runtime
