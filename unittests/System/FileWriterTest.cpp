//===- FileWriterTest.cpp - Files that are written whole ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What goes past the cache of the system is what a file holds then, whatever
// its size, on a disk and on file systems in memory, which may refuse that.
//
//===----------------------------------------------------------------------===//

#include "whale/System/Io.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <numeric>
#include <unistd.h>

namespace whale::system {
namespace {

class FileWriterTest : public testing::TestWithParam<const char *> {};

TEST_P(FileWriterTest, WritesDirectly) {
  if (access(GetParam(), W_OK) != 0)
    GTEST_SKIP() << GetParam() << " cannot be written";
  std::string path =
      std::string(GetParam()) + "/whale-direct-" + std::to_string(getpid());
  constexpr size_t block = FileWriter::blockBytes;
  for (size_t size : {size_t(0), size_t(1), block, 3 * block, 5 * block + 17}) {
    std::unique_ptr<void, void (*)(void *)> memory(
        std::aligned_alloc(block, 6 * block), std::free);
    auto *data = static_cast<char *>(memory.get());
    std::iota(data, data + size, 0);
    FileWriter file(path);
    size_t first = size / 2 / block * block;
    file.writeDirectly(data, first);
    file.writeDirectly(data + first, size - first);
    file.sync();
    file.commit();
    std::ifstream written(path, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(written), {}),
              std::string(data, size));
  }
  unlink(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(Places, FileWriterTest,
                         testing::Values(".", "/tmp", "/dev/shm"));

} // namespace
} // namespace whale::system
