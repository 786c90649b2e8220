//===- Choices.cpp - What was measured to be quickest ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Choices.h"

#include "whale/Runtime/Types.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace whale::runtime::cuda {

namespace {
/// The open file, locked. Each has a lock of its own, also in one process.
class LockedFile {
public:
  explicit LockedFile(const std::string &path) : path(path) {
    descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC,
                      0666); // as the user's mask has it
    if (descriptor < 0)
      fail("opened");
    while (flock(descriptor, LOCK_EX) != 0)
      if (errno != EINTR) {
        int error = errno;
        close(descriptor);
        errno = error;
        fail("locked");
      }
  }
  ~LockedFile() { close(descriptor); }
  LockedFile(const LockedFile &) = delete;
  LockedFile &operator=(const LockedFile &) = delete;

  std::string read() const {
    std::string text;
    char block[4096];
    while (true) {
      ssize_t count = ::read(descriptor, block, sizeof(block));
      if (count == 0)
        return text;
      if (count > 0)
        text.append(block, static_cast<size_t>(count));
      else if (errno != EINTR)
        fail("read");
    }
  }

  void append(const std::string &line) const {
    for (size_t done = 0; done < line.size();) {
      ssize_t count = write(descriptor, line.data() + done, line.size() - done);
      if (count >= 0)
        done += static_cast<size_t>(count);
      else if (errno != EINTR)
        fail("written");
    }
  }

private:
  [[noreturn]] void fail(const char *what) const {
    throw Error(path + " (WHALE_CUDA_CHOICES) cannot be " + what + ": " +
                std::strerror(errno));
  }

  const std::string path;
  int descriptor = -1;
};
} // namespace

std::string Choices::find(const std::string &key,
                          const std::function<std::string()> &measure) const {
  LockedFile file(path);
  std::string text = file.read();
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    std::string line = text.substr(begin, end - begin);
    size_t tab = line.find('\t');
    if (tab == std::string::npos || end == std::string::npos)
      throw Error(path +
                  " (WHALE_CUDA_CHOICES) has a line that is not a key, "
                  "a tab and a choice: '" +
                  line + "'");
    if (line.compare(0, tab, key) == 0)
      return line.substr(tab + 1);
    begin = end + 1;
  }
  std::string choice = measure();
  file.append(key + '\t' + choice + '\n');
  return choice;
}

} // namespace whale::runtime::cuda
