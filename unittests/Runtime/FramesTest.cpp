//===- FramesTest.cpp - What processes tell each other --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "job/Messages.h"

#include <gtest/gtest.h>

#include <random>

using namespace whale::runtime::job;

namespace {

/// Takes all frames that begin `bytes`.
std::vector<Frame> decodeAll(std::string &bytes, bool &isWrong,
                             size_t most = membersBytes) {
  std::vector<Frame> frames;
  while (auto frame = decode(bytes, most, isWrong))
    frames.push_back(*frame);
  return frames;
}

TEST(Frames, ComeInPieces) {
  std::string all;
  for (int i = 0; i < 20; ++i)
    all += encode(Kind::Gather,
                  FieldWriter().text(std::string(i * 7, 'x')).take());
  std::string bytes;
  std::vector<Frame> frames;
  bool isWrong = false;
  for (char each : all) {
    bytes.push_back(each);
    for (const Frame &frame : decodeAll(bytes, isWrong))
      frames.push_back(frame);
    ASSERT_FALSE(isWrong);
  }
  ASSERT_EQ(frames.size(), 20u);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(frames[i].kind, Kind::Gather);
    EXPECT_EQ(FieldReader(frames[i].fields).text(), std::string(i * 7, 'x'));
  }
  EXPECT_TRUE(bytes.empty());
}

TEST(Frames, AreNotTooLong) {
  std::string bytes = encode(Kind::Hello, std::string(strangersBytes + 1, 'x'));
  bool isWrong = false;
  // It is refused before it has arrived.
  bytes.resize(5);
  EXPECT_TRUE(decodeAll(bytes, isWrong, strangersBytes).empty());
  EXPECT_TRUE(isWrong);
}

/// Changes, cuts off or puts in some bytes.
void damage(std::string &bytes, std::mt19937 &random) {
  for (int i = random() % 5; i > 0; --i) {
    size_t at = random() % bytes.size();
    if (random() % 2)
      bytes[at] = static_cast<char>(random());
    else if (random() % 2)
      bytes.resize(at + 1);
    else
      bytes.insert(at, 1, static_cast<char>(random()));
  }
}

TEST(Frames, RandomFieldsAreNothingOrMessages) {
  std::mt19937 random(7);
  int read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string hello = Hello{.version = "1.0",
                              .process = random(),
                              .processes = random(),
                              .nonce = std::string(32, 'n'),
                              .host = "host",
                              .processId = random(),
                              .program = "",
                              .failure = ""}
                            .write();
    damage(hello, random);
    if (auto words = Hello::read(hello)) {
      EXPECT_EQ(words->write(), hello);
      ++read;
    }
    whale::runtime::Progress progress;
    progress.busy = "rank 1 is in 'add'";
    progress.awaited.assign(random() % 4, random());
    progress.running.assign(random() % 3, "'step'");
    std::string beat = writeProgress(progress);
    damage(beat, random);
    if (auto words = readProgress(beat))
      EXPECT_LE(words->awaited.size() * 8 + words->running.size() * 8,
                beat.size());
  }
  EXPECT_GT(read, 1000);
}

TEST(Frames, RandomBytesAreNothingOrFrames) {
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    for (int i = random() % 4; i >= 0; --i)
      bytes += encode(static_cast<Kind>(1 + random() % 9),
                      FieldWriter()
                          .number(random())
                          .text(std::string(random() % 40, 'y'))
                          .take());
    damage(bytes, random);
    size_t size = bytes.size();
    bool isWrong = false;
    size_t taken = 0;
    for (const Frame &frame : decodeAll(bytes, isWrong, strangersBytes)) {
      taken += frame.fields.size() + 5;
      FieldReader reader(frame.fields);
      reader.number();
      EXPECT_LE(reader.text().size(), frame.fields.size());
      reader.text();
      EXPECT_TRUE(reader.isWrong());
    }
    EXPECT_EQ(taken + bytes.size(), size);
  }
}

} // namespace
