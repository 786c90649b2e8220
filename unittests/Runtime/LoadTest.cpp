//===- LoadTest.cpp - Programs whose files have checksums -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramFiles.h"
#include "whale/ProgramFormat/ProgramPlace.h"
#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/ProgramFormat/WriteProgram.h"
#include "whale/Runtime/Program.h"
#include "whale/System/Checksum.h"
#include "whale/System/Io.h"

#include <gtest/gtest.h>

using namespace whale::runtime;
using namespace whale::runtime::test;
using nlohmann::json;

namespace {

TEST(LoadTest, TablesMayBeFiles) {
  TemporaryDirectory directory;
  json root = richProgram(directory.path());
  for (const char *file : {"kernels.so", "constants.bin"})
    root["hashes"][file] = whale::system::Checksum::of(
        whale::system::MappedFile(directory.path() / file).text());
  whale::format::ProgramText text = whale::format::writeProgram(
      whale::format::readProgram(root.dump(), "rich"), {}, /*mostBytes=*/1);
  // A function, two classes, two channels.
  EXPECT_EQ(text.tables.size(), 5u);
  writeFile(directory.path() / "manifest.json", text.manifest);
  for (const auto &[name, table] : text.tables) {
    writeFile(directory.path() / name, table);
    EXPECT_TRUE(whale::format::isProgramFile(name)) << name;
  }
  Program program = Program::load(directory.path());
  std::vector<float> weights(16), batch(32, 3.0f), copied(32);
  std::vector<Array> results = program.run(
      std::vector{Array::fromHost(DType::F32, {4, 4}, weights.data()),
                  Array::fromHost(DType::F32, {8, 4}, batch.data())});
  results[1].toHost(copied.data());
  EXPECT_EQ(copied, batch);

  writeFile(directory.path() / "classes-0.json",
            text.tables["classes-0.json"] + " ");
  try {
    Program::load(directory.path());
    ADD_FAILURE();
  } catch (const Error &error) {
    EXPECT_EQ(error.what(),
              (directory.path() / "classes-0.json").string() +
                  ": differs from its hash in manifest.json: it was damaged, "
                  "or is another program's");
  }
}

TEST(LoadTest, ChecksumsFindDamage) {
  TemporaryDirectory directory;
  richProgram(directory.path());
  std::string sums;
  for (const char *file : {"manifest.json", "kernels.so", "constants.bin"})
    sums += whale::format::checksumLine(
        file, whale::system::Checksum::of(readFile(directory.path() / file)));
  writeFile(directory.path() / "checksums.txt", sums);
  EXPECT_NO_THROW(Program::load(directory.path()));
  for (const char *file : {"manifest.json", "kernels.so", "constants.bin"}) {
    std::string bytes = readFile(directory.path() / file);
    std::string damaged = bytes;
    damaged[damaged.size() / 2] ^= 1;
    writeFile(directory.path() / file, damaged);
    EXPECT_THROW(Program::load(directory.path()), Error);
    writeFile(directory.path() / file, bytes);
  }
  EXPECT_NO_THROW(Program::load(directory.path()));
}

} // namespace
