//===- CleanErrors.cpp - Standard error for terminals -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Support/CleanErrors.h"
#include "whale/System/Printable.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace whale {

int CleanErrors::kept = -1;
int CleanErrors::child = -1;
int CleanErrors::control = -1;

/// Prints a line, or the beginning of the last line.
static void print(std::string_view line) {
  bool isWhole = line.ends_with('\n');
  line.remove_suffix(isWhole);
  std::string shown = system::escaped(line) + (isWhole ? "\n" : "");
  for (std::string_view rest = shown; !rest.empty();) {
    ssize_t count = write(STDERR_FILENO, rest.data(), rest.size());
    if (count < 0 && errno != EINTR)
      return;
    rest.remove_prefix(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
}

/// Copies lines from a pipe to standard error until the pipe ends, or until
/// `control` is closed and the pipe is empty.
[[noreturn]] static void copyLines(int from, int control) {
  // This process must outlive the main process to print its last lines.
  for (int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE})
    std::signal(signal, SIG_IGN);
  std::string held;
  while (true) {
    pollfd ends[] = {{from, POLLIN, 0}, {control, POLLIN, 0}};
    if (poll(ends, 2, -1) < 0)
      continue; // interrupted by a signal
    char buffer[4096];
    ssize_t count = 0;
    if (ends[0].revents)
      count = read(from, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      break;
    size_t searched = held.size();
    held.append(buffer, static_cast<size_t>(count));
    for (size_t end; (end = held.find('\n', searched)) != held.npos;) {
      print(std::string_view(held).substr(0, end + 1));
      held.erase(0, end + 1);
      searched = 0;
    }
  }
  print(held);
  _exit(0);
}

CleanErrors::CleanErrors() {
  int lines[2], life[2];
  if (pipe2(lines, O_CLOEXEC) != 0)
    return;
  if (pipe2(life, O_CLOEXEC) != 0) {
    close(lines[0]);
    close(lines[1]);
    return;
  }
  kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  child = kept < 0 ? -1 : fork();
  if (child == 0) {
    for (int end : {lines[1], life[1], kept, STDIN_FILENO, STDOUT_FILENO})
      close(end);
    copyLines(lines[0], life[0]);
  }
  if (child > 0)
    dup2(lines[1], STDERR_FILENO);
  control = life[1];
  for (int end : {lines[0], lines[1], life[0]})
    close(end);
}

CleanErrors::~CleanErrors() { finish(); }

void CleanErrors::finish() {
  if (kept < 0)
    return;
  dup2(kept, STDERR_FILENO);
  close(control);
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR)
    ;
  close(kept);
  kept = child = control = -1;
}

} // namespace whale
