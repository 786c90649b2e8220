//===- ReadFile.cpp - Reading a tool's input --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Support/ReadFile.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace whale {

using Buffer = std::unique_ptr<MemoryBuffer>;

static Error fail(const Twine &what) {
  return createStringError(inconvertibleErrorCode(), what);
}

static Error failWithErrno() { return fail(std::strerror(errno)); }

static Error failTooLarge(int64_t limit) {
  return fail("it has more than " + Twine(limit >> 20) + " MiB");
}

/// Reads to the end what `text` begins.
static Expected<Buffer> readStream(int descriptor, StringRef path,
                                   int64_t limit, SmallString<0> text) {
  constexpr size_t kStep = size_t(1) << 20;
  while (int64_t(text.size()) <= limit) {
    size_t size = text.size();
    text.resize_for_overwrite(size + kStep);
    ssize_t count = ::read(descriptor, text.data() + size, kStep);
    if (count < 0 && errno != EINTR)
      return failWithErrno();
    text.truncate(size + size_t(std::max<ssize_t>(count, 0)));
    if (count == 0)
      return std::make_unique<SmallVectorMemoryBuffer>(std::move(text), path);
  }
  return failTooLarge(limit);
}

Expected<Buffer> readTextFile(StringRef path, int64_t limit) {
  bool isStandard = path == "-";
  // A pipe without a writer must not be waited for.
  int descriptor = isStandard ? STDIN_FILENO
                              : ::open(path.str().c_str(),
                                       O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return failWithErrno();
  scope_exit close([&] {
    if (!isStandard)
      ::close(descriptor);
  });
  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    return failWithErrno();
  if (S_ISREG(status.st_mode) && !isStandard) {
    if (status.st_size > limit)
      return failTooLarge(limit);
    ErrorOr<Buffer> buffer =
        MemoryBuffer::getOpenFile(descriptor, path, status.st_size);
    if (!buffer)
      return errorCodeToError(buffer.getError());
    return std::move(*buffer);
  }
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    return failWithErrno();
  }
  bool isDevice = S_ISCHR(status.st_mode) && !::isatty(descriptor);
  if (S_ISBLK(status.st_mode))
    return fail("it is a device");
  SmallString<0> text;
  if (!isStandard || isDevice) {
    char byte;
    ssize_t count = ::read(descriptor, &byte, 1);
    if (count > 0)
      text += byte;
    if (count > 0 && isDevice)
      return fail("it is a device");
    if (count == 0 && S_ISFIFO(status.st_mode))
      return fail("it is a pipe that nothing is written to");
    if (count < 0 && errno != EAGAIN)
      return failWithErrno();
  }
  if (!isStandard)
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return readStream(descriptor, path, limit, std::move(text));
}

} // namespace whale
