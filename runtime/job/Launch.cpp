//===- Launch.cpp - Starting the processes of a job -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a process finds its job, and how a host starts processes.
//
// fromEnvironment reads WHALE_PROCESSES and the like, asks PMIx, or reads the
// variables of srun or torchrun, in this order. runProcesses forks, runs this
// same program again with variables set, and watches: once a process has failed
// or a signal has come, the others have some seconds to end by themselves
// before they are killed. The socket on which the first process listens is
// opened before any is started and handed on, so that no port is guessed.
//
//===----------------------------------------------------------------------===//

#include "job/Pmix.h"
#include "job/Secret.h"
#include "job/Sockets.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <limits>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace whale::runtime {

static int64_t readNumber(const char *name, const char *text, int64_t most) {
  int64_t value = -1;
  const char *end = text + std::strlen(text);
  if (auto result = std::from_chars(text, end, value);
      result.ec != std::errc() || result.ptr != end || value < 0 ||
      value > most)
    throw Error(std::string(name) + ": '" + text +
                "' is no whole number from 0 to " + std::to_string(most));
  return value;
}

/// Reads the variable of a launcher; throws where it is missing.
static int64_t readVariable(const char *name, const char *because,
                            int64_t most) {
  const char *text = std::getenv(name);
  if (!text)
    throw Error(std::string(name) + " is not set, where " + because + " is");
  return readNumber(name, text, most);
}

/// Where the first process listens, by WHALE_HOST and WHALE_PORT, or by the
/// variables of another launcher. That listens on `otherPort` itself, so the
/// next one is taken.
static void readAddress(JobOptions &options, const char *otherHost,
                        const char *otherPort, const char *because) {
  constexpr int64_t most = 65535;
  const char *host = std::getenv("WHALE_HOST");
  if (!host && otherHost)
    host = std::getenv(otherHost);
  if (host)
    options.host = host;
  else if (options.processes > 1)
    throw Error(std::string(otherHost ? otherHost : "WHALE_HOST") +
                " is not set, where " + because + " is");
  if (std::getenv("WHALE_PORT") || !otherPort)
    options.port = static_cast<int>(readVariable("WHALE_PORT", because, most));
  else if (options.processes > 1)
    options.port =
        static_cast<int>(readVariable(otherPort, because, most - 1) + 1);
}

std::optional<JobOptions> JobOptions::fromEnvironment() {
  constexpr int64_t most = 1 << 20;
  JobOptions options;
  auto read = [&](const char *processes, const char *process) {
    options.processes = readVariable(processes, processes, most);
    options.process = readVariable(process, processes, most);
  };
  if (const char *given = "WHALE_PROCESSES"; std::getenv(given)) {
    read(given, "WHALE_PROCESS");
    readAddress(options, nullptr, nullptr, given);
    if (options.process == 0 && std::getenv("WHALE_LISTENER")) {
      options.listener =
          static_cast<int>(readVariable("WHALE_LISTENER", given, most));
      fcntl(options.listener, F_SETFD, FD_CLOEXEC);
    }
  } else if (job::hasPmix()) {
    const char *host = std::getenv("WHALE_HOST");
    options = job::joinPmix(host ? host : "");
  } else if (const char *given = "SLURM_STEP_NUM_TASKS"; std::getenv(given)) {
    // Tasks of srun. A batch script without srun has no number of tasks of a
    // step.
    read(given, "SLURM_PROCID");
    if (options.processes > 1 &&
        (!std::getenv("WHALE_HOST") || !std::getenv("WHALE_PORT")))
      throw Error("srun has started " + std::to_string(options.processes) +
                  " processes without PMIx: start them by srun --mpi=pmix, or "
                  "set WHALE_HOST and WHALE_PORT, where the first one listens");
    if (options.processes > 1)
      readAddress(options, nullptr, nullptr, given);
  } else if (const char *given = "WORLD_SIZE"; std::getenv(given)) {
    read(given, "RANK");
    readAddress(options, "MASTER_ADDR", "MASTER_PORT", given);
  } else {
    return std::nullopt;
  }
  if (options.processes < 1 || options.process >= options.processes)
    throw Error("process " + std::to_string(options.process) + " is none of " +
                std::to_string(options.processes));
  return options;
}

namespace {
/// Ended by signals that this process passes on.
volatile sig_atomic_t endingSignal = 0;

struct Child {
  pid_t pid;
  int64_t process;
  int status = 0;
  bool isRunning = true;
};
} // namespace

std::string logFile(const std::string &directory, int64_t process) {
  return directory + "/process-" + std::to_string(process) + ".log";
}

static pid_t start(int64_t process, bool isPrinter, int64_t total,
                   const std::string &host, int port, int listener,
                   const std::vector<std::string> &arguments,
                   const std::string &logDirectory) {
  std::vector<char *> words;
  for (const std::string &argument : arguments)
    words.push_back(const_cast<char *>(argument.c_str()));
  words.push_back(nullptr);
  std::string log =
      logDirectory.empty() ? "/dev/null" : logFile(logDirectory, process);
  int file = -1;
  if (!isPrinter) {
    file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0)
      throw Error(log + ": " + std::strerror(errno));
  }
  std::string program = std::filesystem::read_symlink("/proc/self/exe");
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid != 0) {
    if (file >= 0)
      close(file);
    return pid;
  }
  // No child outlives the process that watches it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    std::signal(signal, SIG_DFL);
  setenv("WHALE_PROCESSES", std::to_string(total).c_str(), 1);
  setenv("WHALE_PROCESS", std::to_string(process).c_str(), 1);
  setenv("WHALE_HOST", host.c_str(), 1);
  setenv("WHALE_PORT", std::to_string(port).c_str(), 1);
  unsetenv("WHALE_LISTENER");
  if (process == 0 && listener >= 0) {
    setenv("WHALE_LISTENER", std::to_string(listener).c_str(), 1);
    fcntl(listener, F_SETFD, 0);
  }
  if (file >= 0) {
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
  }
  execv(program.c_str(), words.data());
  _exit(127);
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

int runProcesses(int64_t first, int64_t count, int64_t total,
                 const std::string &host, int port,
                 const std::vector<std::string> &arguments,
                 const std::string &logDirectory) {
  if (count == total)
    refuseOtherLaunchers();
  int listener = -1;
  if (first == 0) {
    // Listening before anybody is started, so that no port is guessed.
    listener = count == total ? job::listenOn(host, port)
                              : job::listenForOthers(host, port);
    port = job::portOf(listener);
  }
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    action.sa_handler = [](int signal) { endingSignal = signal; };
    sigaction(signal, &action, nullptr);
  }
  std::vector<Child> children;
  try {
    for (int64_t i = 0; i < count; ++i) {
      pid_t pid = start(first + i, i == 0, total, host, port, listener,
                        arguments, logDirectory);
      if (pid < 0)
        throw Error(std::string("cannot start a process: ") +
                    std::strerror(errno));
      children.push_back({pid, first + i});
    }
  } catch (...) {
    for (const Child &child : children)
      kill(child.pid, SIGKILL);
    throw;
  }
  if (listener >= 0)
    close(listener);

  using Clock = std::chrono::steady_clock;
  // The others end by themselves, with the error, once one has. After a signal
  // they may have something to save.
  constexpr std::chrono::seconds graceOfFailure(4), graceOfSignal(8);
  constexpr std::chrono::milliseconds pause(20);
  std::optional<Clock::time_point> failed;
  const Child *firstFailed = nullptr;
  size_t running = children.size();
  int passedOn = 0;
  while (running > 0) {
    for (Child &child : children) {
      if (!child.isRunning ||
          waitpid(child.pid, &child.status, WNOHANG) != child.pid)
        continue;
      child.isRunning = false;
      --running;
      if (child.status != 0 && !firstFailed) {
        firstFailed = &child;
        failed = Clock::now();
      }
    }
    if (endingSignal && !passedOn) {
      passedOn = endingSignal;
      failed = Clock::now();
      for (const Child &child : children)
        if (child.isRunning)
          kill(child.pid, passedOn);
    }
    if (failed &&
        Clock::now() - *failed > (passedOn ? graceOfSignal : graceOfFailure))
      for (const Child &child : children)
        if (child.isRunning)
          kill(child.pid, SIGKILL);
    if (running > 0)
      std::this_thread::sleep_for(pause);
  }
  if (passedOn)
    return -passedOn;
  if (!firstFailed)
    return 0;
  // The first of them has printed the job's error, unless it was killed.
  if (WIFSIGNALED(children.front().status))
    std::cerr << "error: process " << firstFailed->process << " (host "
              << job::hostName() << ", pid " << firstFailed->pid << ")"
              << (WIFSIGNALED(firstFailed->status)
                      ? std::string(" was ended by signal ") +
                            std::to_string(WTERMSIG(firstFailed->status))
                      : " has ended with status " +
                            std::to_string(WEXITSTATUS(firstFailed->status)))
              << "\n";
  return 1;
}

} // namespace whale::runtime
