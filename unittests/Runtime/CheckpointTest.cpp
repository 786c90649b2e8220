//===- CheckpointTest.cpp - Saving and reading states -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Checkpoint.h"
#include "ProgramFiles.h"
#include "checkpoint/Shares.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <numeric>
#include <random>

using namespace whale::runtime;
using namespace whale::runtime::test;
namespace fs = std::filesystem;

namespace {

std::vector<float> valuesOf(const Array &array) {
  std::vector<float> values(elementCount(array.shape()));
  array.toHost(values.data());
  return values;
}

/// A tensor of ascending numbers.
Array count(const Shape &shape) {
  std::vector<float> values(elementCount(shape));
  std::iota(values.begin(), values.end(), 1.0f);
  return Array::fromHost(DType::F32, shape, values.data());
}

std::shared_ptr<const Layout> rows(Shape shape, std::vector<int64_t> extents) {
  auto layout = std::make_shared<Layout>(Layout{shape, {}});
  int64_t start = 0;
  for (int64_t extent : extents) {
    Box box = Box::whole(shape);
    box.start[0] = start;
    box.size[0] = extent;
    layout->boxes.push_back(box);
    start += extent;
  }
  return layout;
}

std::string errorOf(const std::function<void()> &action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

class CheckpointTest : public ::testing::Test {
protected:
  fs::path place() const { return directory.path() / "states"; }
  void save(Checkpointer &checkpointer, int64_t step) {
    checkpointer.save(step,
                      {{"w", count({6, 4}).relayout(rows({6, 4}, {1, 3, 2}))},
                       {"key", count({2}), "threefry2x32"},
                       {"none", count({0, 3})},
                       {"large", count({1 << 11, 1 << 10})}},
                      {R"({"row":7})"});
  }
  TemporaryDirectory directory;
};

TEST_F(CheckpointTest, GivesBackWhatWasSaved) {
  Checkpointer checkpointer({place()});
  EXPECT_EQ(checkpointer.latest(), std::nullopt);
  EXPECT_EQ(errorOf([&] { checkpointer.restore(); }),
            place().string() + ": there is no complete checkpoint");
  save(checkpointer, 3);
  checkpointer.wait();
  EXPECT_EQ(checkpointer.latest(), 3);
  EXPECT_GE(checkpointer.stagingBytes(), (6 * 4 + 2 + (1 << 21)) * 4);

  Checkpoint checkpoint = checkpointer.restore();
  checkpoint.verify();
  EXPECT_EQ(checkpoint.manifest().step, 3);
  EXPECT_EQ(checkpoint.manifest().extra, R"({"row":7})");
  ASSERT_EQ(checkpoint.manifest().leaves.size(), 4u);
  EXPECT_EQ(checkpoint.manifest().leaves[0].pieces.size(), 3u);
  EXPECT_EQ(checkpoint.manifest().leaves[1].key, "threefry2x32");
  EXPECT_EQ(checkpoint.manifest().leaves[3].pieces[0].checksums.size(), 2u);
  EXPECT_EQ(valuesOf(checkpoint.array(0)), valuesOf(count({6, 4})));
  EXPECT_EQ(valuesOf(checkpoint.array(2)), std::vector<float>());
  Array other = checkpoint.array(0).relayout(rows({6, 4}, {5, 0, 1}));
  EXPECT_EQ(valuesOf(other), valuesOf(count({6, 4})));
  // What is in files is nobody's to write to, however it is laid out.
  Array same = checkpoint.array(0).relayout(rows({6, 4}, {1, 3, 2}));
  for (size_t rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(same.shard(rank)->writable);
}

TEST_F(CheckpointTest, KeepsTheLastOnes) {
  Checkpointer checkpointer({place(), 2});
  save(checkpointer, 1);
  // As a killed process leaves it.
  checkpointer.wait();
  fs::create_directories(place() / "step-2");
  std::ofstream(place() / "step-2" / "shard-0.safetensors") << "half";
  fs::create_directories(place() / "step-other");
  EXPECT_EQ(stepsIn(place()), std::vector<int64_t>{1});
  for (int64_t step : {5, 10, 11})
    save(checkpointer, step);
  checkpointer.wait();
  EXPECT_EQ(stepsIn(place()), (std::vector<int64_t>{10, 11}));
  EXPECT_FALSE(fs::exists(place() / "step-2"));
  EXPECT_TRUE(fs::exists(place() / "step-other"));
  EXPECT_EQ(errorOf([&] { save(checkpointer, 11); }),
            place().string() + ": step 11 is not later than step 11, which is "
                               "there");
  EXPECT_EQ(stepsIn(place()), (std::vector<int64_t>{10, 11}));
  // What has failed is over.
  save(checkpointer, 12);
  EXPECT_EQ(valuesOf(checkpointer.restore(11).array(0)),
            valuesOf(count({6, 4})));
  EXPECT_EQ(errorOf([&] { Checkpointer({place(), 0}); }),
            "keep must be at least 1, got 0");
}

TEST_F(CheckpointTest, OneJobSaves) {
  Checkpointer first({place()}), second({place()});
  save(first, 1);
  EXPECT_EQ(errorOf([&] { save(second, 2); })
                .find(place().string() +
                      ": another job saves its checkpoints here: process "),
            0u);
  first.wait();
  EXPECT_EQ(second.restore().manifest().step, 1);
}

TEST_F(CheckpointTest, FindsDamage) {
  Checkpointer checkpointer({place()});
  save(checkpointer, 1);
  checkpointer.wait();
  fs::path file = place() / "step-1" / "shard-0.safetensors";
  auto size = static_cast<int64_t>(fs::file_size(file));
  const auto piece = checkpointer.restore().manifest().leaves[3].pieces[0];
  {
    std::fstream stream(file, std::ios::in | std::ios::out);
    stream.seekp(piece.offset + (int64_t(5) << 20));
    stream.put('\1');
  }
  Checkpoint checkpoint = checkpointer.restore();
  std::string damaged = file.string() +
                        ": 'large': damaged: bytes 4194304 to 8388608 have "
                        "another checksum";
  EXPECT_EQ(errorOf([&] { checkpoint.verify(); }), damaged);
  // Only who needs the damaged bytes is concerned.
  EXPECT_EQ(valuesOf(checkpoint.array(0)), valuesOf(count({6, 4})));
  auto halves = rows({1 << 11, 1 << 10}, {1 << 10, 1 << 10});
  std::vector<int64_t> both = {0, 1};
  auto one = std::make_shared<RankMap>(both, 0);
  auto other = std::make_shared<RankMap>(both, 1);
  checkpoint.array(3).relayout(halves, one);
  EXPECT_EQ(errorOf([&] { checkpoint.array(3).relayout(halves, other); }),
            damaged);

  fs::resize_file(file, size - 1);
  EXPECT_EQ(errorOf([&] { checkpointer.restore(); }),
            file.string() + ": has " + std::to_string(size - 1) +
                " bytes, by the checkpoint's manifest " + std::to_string(size));
  fs::remove(file);
  EXPECT_EQ(errorOf([&] { checkpointer.restore(); }),
            file.string() + ": No such file or directory");
  EXPECT_NE(errorOf([&] { checkpointer.restore(4); }).find("step-4"),
            std::string::npos);
}

TEST_F(CheckpointTest, WhatCannotBeWritten) {
  std::ofstream(place()) << "a file";
  Checkpointer checkpointer({place()});
  EXPECT_NE(errorOf([&] { save(checkpointer, 1); }).find(place().string()),
            std::string::npos);
  fs::remove(place());
  save(checkpointer, 1);
  checkpointer.wait();
  // Its directory goes while it is written, or before.
  Array donated = count({3});
  donated.donate();
  EXPECT_NE(errorOf([&] {
              checkpointer.save(2, {{"w", donated}}, {});
            }).find("donated"),
            std::string::npos);
  EXPECT_EQ(checkpointer.latest(), 1);
}

TEST(SharesTest, EachElementIsWrittenOnceByTheLeastLoaded) {
  std::mt19937 random(3);
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (int repeat = 0; repeat < 300; ++repeat) {
    int64_t processes = 1 + pick(4), ranks = processes * (1 + pick(2));
    auto map = std::make_shared<RankMap>(
        RankMap::inRuns(static_cast<size_t>(ranks), processes, 0));
    std::vector<Holding> leaves;
    for (int leaf = 0; leaf < 4; ++leaf) {
      Shape shape = {8, 1 + pick(3)};
      std::vector<int64_t> extents(ranks);
      for (int row = 0; row < 8; ++row)
        ++extents[pick(ranks)];
      Layout layout = *rows(shape, extents);
      if (pick(3) == 0)
        layout.boxes.assign(ranks, Box::whole(shape));
      leaves.push_back({layout, 4, pick(4) == 0 ? nullptr : map});
    }
    std::vector<int64_t> bytes(processes);
    std::vector<std::map<std::pair<int64_t, int64_t>, int>> writers(4);
    for (const Share &share : shareOut(leaves, processes)) {
      const Holding &leaf = leaves[share.leaf];
      ASSERT_EQ(intersect(*leaf.layout.boxes[share.holder], share.box),
                share.box);
      if (leaf.ranks)
        ASSERT_EQ(map->processOf[share.holder], share.process);
      bytes[share.process] += share.box.elements() * 4;
      for (int64_t i = 0; i < share.box.size[0]; ++i)
        for (int64_t j = 0; j < share.box.size[1]; ++j)
          ++writers[share.leaf]
                   [{share.box.start[0] + i, share.box.start[1] + j}];
    }
    for (size_t leaf = 0; leaf < 4; ++leaf) {
      ASSERT_EQ(static_cast<int64_t>(writers[leaf].size()),
                elementCount(leaves[leaf].layout.view));
      for (const auto &[element, count] : writers[leaf])
        ASSERT_EQ(count, 1);
    }
  }
  auto two = std::make_shared<RankMap>(RankMap::inRuns(2, 2, 0));
  Layout lacking = *rows({4}, {1, 2});
  EXPECT_THROW(shareOut({{lacking, 4, two}}, 2), Error);
  // Replicated leaves of one size are dealt out.
  Layout replicated{{4}, {Box::whole({4}), Box::whole({4})}};
  std::vector<Share> shares =
      shareOut({{replicated, 4, two}, {replicated, 4, two}}, 2);
  EXPECT_EQ(shares[0].process, 0);
  EXPECT_EQ(shares[1].process, 1);
}

} // namespace
