//===- Tool.cpp - What a command does before all else -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/Tool.h"

#include "whale/System/Printable.h"
#include "whale/System/Staging.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace whale::system {

static constexpr std::array endingSignals = {SIGHUP, SIGINT, SIGTERM, SIGXCPU};

static bool isIgnored(int signal) {
  struct sigaction action;
  return sigaction(signal, nullptr, &action) == 0 &&
         action.sa_handler == SIG_IGN;
}

/// Which signals the process was started with ignored (by nohup, or in the
/// background), before anything installs a handler.
static const std::array<bool, endingSignals.size()> startedIgnored = [] {
  std::array<bool, endingSignals.size()> ignored;
  for (size_t i = 0; i < endingSignals.size(); ++i)
    ignored[i] = isIgnored(endingSignals[i]);
  return ignored;
}();

static int signalPipe[2];

/// All that is safe here is to wake the thread that cleans up.
static void onSignal(int signal) {
  int error = errno;
  auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] ssize_t written = write(signalPipe[1], &byte, 1);
  errno = error;
}

static void waitForSignal() {
  unsigned char signal = 0;
  ssize_t count;
  do
    count = read(signalPipe[0], &signal, 1);
  while (count < 0 && errno == EINTR);
  if (count != 1)
    return;
  abandonStaging();
  // SA_RESETHAND has given the signal its own effect back.
  kill(getpid(), signal);
}

static void handleSignals() {
  if (pipe2(signalPipe, O_CLOEXEC) != 0)
    return;
  try {
    std::thread(waitForSignal).detach();
  } catch (const std::system_error &) {
    return; // Then signals end the process as ever; the next one cleans up.
  }
  for (size_t i = 0; i < endingSignals.size(); ++i) {
    struct sigaction action = {};
    if (startedIgnored[i]) {
      action.sa_handler = SIG_IGN;
    } else {
      action.sa_handler = onSignal;
      // A second signal ends the process at once.
      action.sa_flags = SA_RESETHAND | SA_RESTART;
    }
    sigaction(endingSignals[i], &action, nullptr);
  }
}

/// What the exception at hand says; empty where there is none.
static std::string currentError() {
  try {
    if (std::current_exception())
      std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc &) {
    return "out of memory";
  } catch (const std::filesystem::filesystem_error &error) {
    return error.path1().string() + ": " + error.code().message();
  } catch (const std::exception &error) {
    return error.what();
  } catch (...) {
  }
  return "";
}

static void printError(const std::string &what) {
  std::fprintf(stderr, "error: %s\n", diagnosticLine(what).c_str());
}

/// What a thread has not caught ends the process as an error does.
[[noreturn]] static void onTerminate() {
  std::string what = currentError();
  printError(what.empty() ? "the process has ended for no known reason" : what);
  abandonStaging();
  _exit(1);
}

void requireAddressSpace(size_t mebibytes) {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= mebibytes << 20)
    return;
  printError("the limit of address space (ulimit -v) is " +
             std::to_string(limit.rlim_cur >> 20) +
             " MiB: it must be at least " + std::to_string(mebibytes) + " MiB");
  _exit(1);
}

int runTool(const std::function<int()> &run) {
  try {
    int status = run();
    if (std::cout.flush())
      return status;
    printError("cannot write the standard output");
  } catch (...) {
    std::string what = currentError();
    stopIfAbandoned();
    printError(what);
  }
  return 1;
}

void beginTool() {
  std::set_terminate(onTerminate);
  int descriptor;
  while ((descriptor = open("/dev/null", O_RDWR)) >= 0)
    if (descriptor > STDERR_FILENO) {
      close(descriptor);
      break;
    }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  // Where whoever has started this process ignores it, nobody can wait for what
  // this one starts.
  std::signal(SIGCHLD, SIG_DFL);
  handleSignals();
}

} // namespace whale::system
