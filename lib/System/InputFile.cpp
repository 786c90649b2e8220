//===- InputFile.cpp - Opening what a tool reads ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/InputFile.h"

#include "whale/System/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace whale::system {

InputFile::InputFile(const std::string &path, Dash dash)
    : isStandard(dash == Dash::Standard && path == "-") {
  // A pipe without a writer must not be waited for.
  descriptor = isStandard
                   ? STDIN_FILENO
                   : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    fail(std::strerror(errno));
  try {
    check();
  } catch (...) {
    if (!isStandard)
      close(descriptor);
    throw;
  }
}

InputFile::~InputFile() {
  if (!isStandard)
    close(descriptor);
}

void InputFile::fail(const char *what) const { throw Error(what); }

void InputFile::check() {
  struct stat status;
  if (fstat(descriptor, &status) != 0)
    fail(std::strerror(errno));
  if (S_ISREG(status.st_mode)) {
    // A part of standard input may have been read.
    if (!isStandard)
      size = static_cast<size_t>(status.st_size);
    return;
  }
  if (S_ISDIR(status.st_mode))
    fail(std::strerror(EISDIR));
  if (S_ISBLK(status.st_mode))
    fail("it is a device");
  bool isDevice = S_ISCHR(status.st_mode) && !isatty(descriptor);
  if (!isStandard || isDevice) {
    char byte;
    ssize_t count = read(descriptor, &byte, 1);
    if (count > 0 && isDevice)
      fail("it is a device");
    if (count > 0)
      beginning = byte;
    if (count == 0 && isDevice)
      size = 0;
    if (count == 0 && S_ISFIFO(status.st_mode))
      fail("it is a pipe that nothing is written to");
    if (count < 0 && errno != EAGAIN)
      fail(std::strerror(errno));
  }
  if (!isStandard)
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
}

} // namespace whale::system
