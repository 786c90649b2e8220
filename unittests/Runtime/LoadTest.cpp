//===- LoadTest.cpp - Programs whose files have checksums -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramFiles.h"
#include "program/BoundProgram.h"
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

// One error before anything runs, whatever it is that lies in a host.
TEST(LoadTest, GpusTakeNothingFromHosts) {
  auto faultOf = [](const whale::format::Program &program) -> std::string {
    try {
      checkTarget(program, "step");
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  whale::format::Program program;
  program.target = "cuda";
  program.ranks.resize(1);
  program.arguments.resize(1);
  program.arguments[0].name = "arg0";
  program.results.resize(1);
  program.results[0].name = "result0";
  whale::format::Collective copy;
  copy.kind = "send_recv";
  program.channels[4] = std::make_shared<whale::format::Collective>(copy);
  EXPECT_EQ(faultOf(program), "");
  const std::string goesOn =
      ", which this runtime copies from and to on processors alone";

  copy.kind = "host_to_device";
  program.channels[4] = std::make_shared<whale::format::Collective>(copy);
  EXPECT_EQ(faultOf(program),
            "step: channels: channel 4, host_to_device, is between the "
            "memories of host and device" +
                goesOn);
  program.results[0].isInHost = true;
  EXPECT_EQ(faultOf(program),
            "step: results: result0 is in the memory of the host" + goesOn);
  program.arguments[0].isInHost = true;
  EXPECT_EQ(faultOf(program),
            "step: arguments: arg0 is in the memory of the host" + goesOn);
  program.target = "cpu";
  EXPECT_EQ(faultOf(program), "");
}

} // namespace
