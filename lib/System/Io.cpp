//===- Io.cpp - Files, mapped and replaced whole ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/Io.h"

#include "whale/System/Error.h"
#include "whale/System/InputFile.h"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace whale::system {

MappedFile::MappedFile(const std::filesystem::path &path) {
  try {
    InputFile file(path.string());
    if (!file.getSize())
      throw Error("not a regular file");
    length = *file.getSize();
    if (length)
      memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE,
                    file.getDescriptor(), 0);
    if (memory == MAP_FAILED)
      throw Error(std::strerror(errno));
  } catch (const Error &error) {
    throw Error(path.string() + ": " + error.what());
  }
}

MappedFile::~MappedFile() {
  if (length)
    munmap(memory, length);
}

/// The descriptor that a path like /dev/stdout or /dev/fd/3 stands for, or -1.
/// Opened by its path, a file would be written over from its beginning.
static int standardDescriptor(const std::filesystem::path &path) {
  if (path == "/dev/stdout")
    return STDOUT_FILENO;
  if (path == "/dev/stderr")
    return STDERR_FILENO;
  std::filesystem::path parent = path.parent_path();
  if (parent != "/dev/fd" && parent != "/proc/self/fd")
    return -1;
  std::string digits = path.filename();
  int descriptor = -1;
  auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), descriptor);
  return error == std::errc() && !*end ? descriptor : -1;
}

/// Opens what is no regular file. A pipe must have a reader, or get one within
/// some seconds: without one, opening it would wait for ever.
static FILE *openSpecial(const std::filesystem::path &path) {
  constexpr std::chrono::milliseconds pause(10), longest(5000);
  int descriptor;
  for (auto waited = pause;
       (descriptor = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0;
       waited += pause) {
    if (errno == ENXIO && std::filesystem::is_fifo(path) && waited > longest)
      throw Error(path.string() +
                  ": cannot be written: it is a pipe that nobody reads");
    if (errno != ENXIO || waited > longest)
      return nullptr;
    std::this_thread::sleep_for(pause);
  }
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return fdopen(descriptor, "wb");
}

FileWriter::FileWriter(std::filesystem::path target) : path(std::move(target)) {
  if (int descriptor = standardDescriptor(path); descriptor >= 0) {
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (copy < 0 || !(file = fdopen(copy, "wb")))
      fail(errno);
    return;
  }
  std::error_code error;
  auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status))
    fail(EISDIR);
  if (std::filesystem::exists(status) &&
      !std::filesystem::is_regular_file(status)) {
    file = openSpecial(path);
  } else {
    try {
      staging.emplace(path);
    } catch (const std::system_error &failure) {
      fail(failure.code().value());
    }
    file = std::fopen(staging->place().c_str(), "wbxe");
  }
  if (!file)
    fail(errno);
}

FileWriter::~FileWriter() {
  if (file)
    std::fclose(file);
}

void FileWriter::fail(int error) const {
  throw Error(path.string() + ": cannot be written: " + std::strerror(error));
}

void FileWriter::write(const void *data, size_t size) {
  if (size && std::fwrite(data, 1, size, file) != size)
    fail(errno);
}

void FileWriter::writeAll(const char *data, size_t size) {
  while (size) {
    ssize_t written = ::write(fileno(file), data, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0 && errno == EINVAL && isDirect) {
      mayBeDirect = false;
      setDirect(false);
      continue;
    }
    if (written < 0)
      fail(errno);
    data += written;
    size -= static_cast<size_t>(written);
    // What is left has another alignment.
    if (isDirect && written % blockBytes)
      setDirect(false);
  }
}

/// Some file systems refuse it, and are written as others.
void FileWriter::setDirect(bool wanted) {
  int descriptor = fileno(file), flags = fcntl(descriptor, F_GETFL);
  int changed = wanted ? flags | O_DIRECT : flags & ~O_DIRECT;
  bool isDone = flags >= 0 && fcntl(descriptor, F_SETFL, changed) == 0;
  mayBeDirect &= isDone;
  isDirect = wanted && isDone;
}

void FileWriter::writeDirectly(const void *data, size_t size) {
  auto *bytes = static_cast<const char *>(data);
  size_t blocks = size / blockBytes * blockBytes;
  if (blocks && staging && mayBeDirect && !isDirect)
    setDirect(true);
  writeAll(bytes, blocks);
  if (blocks == size)
    return;
  if (isDirect)
    setDirect(false);
  mayBeDirect = false;
  writeAll(bytes + blocks, size - blocks);
}

void FileWriter::flush() {
  if (std::fflush(file) != 0)
    fail(errno);
}

void FileWriter::sync() {
  flush();
  // What is no regular file has no place on a disk.
  if (fsync(fileno(file)) != 0 && errno != EINVAL && errno != EROFS)
    fail(errno);
}

void FileWriter::commit() {
  flush();
  if (std::fclose(std::exchange(file, nullptr)) != 0)
    fail(errno);
  if (!staging)
    return;
  try {
    staging->commitFile();
  } catch (const std::system_error &failure) {
    fail(failure.code().value());
  }
}

void syncDirectory(const std::filesystem::path &directory) {
  int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Some file systems know no sync of directories.
  bool isDone = descriptor >= 0 && (fsync(descriptor) == 0 || errno == EINVAL);
  int error = errno;
  if (descriptor >= 0)
    close(descriptor);
  if (!isDone)
    throw Error(directory.string() + ": " + std::strerror(error));
}

} // namespace whale::system
