//===- Mail.h - Messages between processes of test machines -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_TEST_MAIL_H
#define WHALE_RUNTIME_CUDA_TEST_MAIL_H

#include <cstdint>
#include <filesystem>
#include <string>

namespace whale::runtime::cuda::test {

/// The messages of a communicator, as files of a directory that its processes
/// share. A message that was received is gone.
class Mail {
public:
  explicit Mail(std::filesystem::path directory);

  void enter(int rank) const;
  /// How many ranks have entered.
  int present() const;

  void send(const std::string &message, const void *data, int64_t bytes) const;
  bool isTaken(const std::string &message) const;
  /// The bytes of a message that is there, else -1.
  int64_t bytesOf(const std::string &message) const;
  void take(const std::string &message, void *data, int64_t bytes) const;

private:
  std::filesystem::path directory;
};

} // namespace whale::runtime::cuda::test

#endif // WHALE_RUNTIME_CUDA_TEST_MAIL_H
