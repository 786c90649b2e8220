//===- Mail.cpp - Messages between processes of test machines -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cuda/test/Mail.h"

#include <fstream>

namespace fs = std::filesystem;

namespace whale::runtime::cuda::test {

Mail::Mail(fs::path given) : directory(std::move(given)) {
  fs::create_directories(directory);
}

void Mail::enter(int rank) const {
  std::ofstream(directory / ("rank-" + std::to_string(rank)));
}

int Mail::present() const {
  int count = 0;
  for (const fs::directory_entry &entry : fs::directory_iterator(directory))
    count += entry.path().filename().string().starts_with("rank-");
  return count;
}

/// A message is there as a whole.
void Mail::send(const std::string &message, const void *data,
                int64_t bytes) const {
  fs::path unfinished = directory / ("unfinished-" + message);
  std::ofstream(unfinished, std::ios::binary)
      .write(static_cast<const char *>(data), bytes);
  fs::rename(unfinished, directory / message);
}

bool Mail::isTaken(const std::string &message) const {
  return !fs::exists(directory / message);
}

int64_t Mail::bytesOf(const std::string &message) const {
  std::error_code error;
  auto bytes = fs::file_size(directory / message, error);
  return error ? -1 : static_cast<int64_t>(bytes);
}

void Mail::take(const std::string &message, void *data, int64_t bytes) const {
  fs::path path = directory / message;
  std::ifstream(path, std::ios::binary).read(static_cast<char *>(data), bytes);
  fs::remove(path);
}

} // namespace whale::runtime::cuda::test
