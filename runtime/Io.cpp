//===- Io.cpp - Files, mapped and replaced whole ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Io.h"

#include "whale/Runtime/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace whale::runtime {

MappedFile::MappedFile(const std::filesystem::path &path) {
  auto fail = [&](const char *what) {
    throw Error(path.string() + ": " + what);
  };
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    fail(std::strerror(errno));
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    fail("not a regular file");
  }
  length = static_cast<size_t>(status.st_size);
  if (length)
    memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE,
                  descriptor, 0);
  int error = errno;
  close(descriptor);
  if (memory == MAP_FAILED)
    fail(std::strerror(error));
}

MappedFile::~MappedFile() {
  if (length)
    munmap(memory, length);
}

FileWriter::FileWriter(std::filesystem::path target) : path(std::move(target)) {
  std::error_code error;
  auto status = std::filesystem::status(path, error);
  bool isRegular = std::filesystem::is_regular_file(status);
  if (std::filesystem::exists(status) && !isRegular &&
      !std::filesystem::is_directory(status)) {
    file = std::fopen(path.c_str(), "wb");
  } else {
    if (isRegular && std::filesystem::is_symlink(path, error))
      path = std::filesystem::canonical(path);
    temporary = path;
    temporary += ".partial-" + std::to_string(getpid());
    file = std::fopen(temporary.c_str(), "wb");
  }
  if (!file)
    fail();
}

FileWriter::~FileWriter() {
  if (!file)
    return;
  std::fclose(file);
  if (!temporary.empty())
    std::remove(temporary.c_str());
}

void FileWriter::fail() const {
  throw Error(path.string() + ": cannot be written: " + std::strerror(errno));
}

void FileWriter::write(const void *data, size_t size) {
  if (size && std::fwrite(data, 1, size, file) != size)
    fail();
}

void FileWriter::flush() {
  if (std::fflush(file) != 0)
    fail();
}

void FileWriter::commit() {
  flush();
  bool closed = std::fclose(file) == 0;
  file = nullptr;
  if (temporary.empty()) {
    if (!closed)
      fail();
    return;
  }
  if (!closed || std::rename(temporary.c_str(), path.c_str()) != 0) {
    int error = errno;
    std::remove(temporary.c_str());
    errno = error;
    fail();
  }
}

} // namespace whale::runtime
