//===- ArrayTest.cpp - Layouts and sharded arrays ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Array.h"
#include "Replicas.h"

#include "whale/Runtime/Types.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

using namespace whale::runtime;

namespace {

std::vector<int32_t> iota(int64_t count) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

/// A random grid over a view, its cells dealt out to ranks; some twice.
std::shared_ptr<const Layout> randomLayout(std::mt19937 &random,
                                           const Shape &view) {
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  std::vector<Box> boxes = {Box::whole(view)};
  for (int cut = 0; cut < 3; ++cut) {
    if (view.empty())
      break;
    size_t which = pick(boxes.size()), d = pick(view.size());
    Box &first = boxes[which];
    int64_t at = pick(first.size[d] + 1);
    Box second = first;
    second.start[d] += at;
    second.size[d] -= at;
    first.size[d] = at;
    boxes.push_back(second);
  }
  auto layout = std::make_shared<Layout>();
  layout->view = view;
  for (const Box &box : boxes)
    layout->boxes.push_back(box);
  if (pick(2))
    layout->boxes.push_back(boxes[pick(boxes.size())]);
  if (pick(2))
    layout->boxes.push_back(std::nullopt);
  std::shuffle(layout->boxes.begin(), layout->boxes.end(), random);
  return layout;
}

TEST(ArrayTest, RelayoutKeepsTheValues) {
  std::mt19937 random(7);
  const std::pair<Shape, std::vector<Shape>> cases[] = {
      {{}, {{}}},
      {{6}, {{6}, {2, 3}, {3, 2}}},
      {{4, 6}, {{4, 6}, {4, 2, 3}, {24}, {2, 2, 6}}},
      {{3, 0, 2}, {{3, 0, 2}}},
      {{2, 3, 4}, {{2, 3, 4}, {6, 4}}}};
  for (int round = 0; round < 400; ++round) {
    const auto &[shape, views] = cases[random() % std::size(cases)];
    auto values = iota(elementCount(shape));
    Array array = Array::fromHost(DType::I32, shape, values.data());
    for (int hop = 0; hop < 3; ++hop) {
      auto layout = randomLayout(random, views[random() % views.size()]);
      ASSERT_TRUE(covers(layout->view, layout->boxes));
      array = array.relayout(layout);
      EXPECT_EQ(array.layout(), *layout);
    }
    std::vector<int32_t> back(values.size(), -1);
    array.toHost(back.data());
    EXPECT_EQ(back, values);
  }
}

TEST(ArrayTest, SameLayoutIsNotCopied) {
  auto values = iota(6);
  Array array = Array::fromHost(DType::I32, {6}, values.data());
  auto same = std::make_shared<Layout>(Layout::whole({6}));
  EXPECT_EQ(array.relayout(same).wholeData(), array.wholeData());
}

TEST(ArrayTest, DonationInvalidatesAllHandles) {
  auto values = iota(6);
  Array array = Array::fromHost(DType::I32, {6}, values.data());
  Array other = array;
  other.donate();
  EXPECT_TRUE(array.isDonated());
  EXPECT_THROW(array.toHost(values.data()), Error);
  EXPECT_THROW(array.shard(0), Error);
}

/// Three ranks: two halves, the first of them twice.
Array withReplicas(std::vector<int32_t> replica) {
  auto layout = std::make_shared<Layout>();
  layout->view = {4};
  layout->boxes = {Box{{0}, {2}}, Box{{2}, {2}}, Box{{0}, {2}}};
  std::vector<std::shared_ptr<Buffer>> shards;
  for (std::vector<int32_t> part :
       {std::vector<int32_t>{1, 2}, {3, 4}, std::move(replica)}) {
    shards.push_back(Buffer::allocate(8));
    std::memcpy(shards.back()->data.get(), part.data(), 8);
  }
  return Array::fromShards(DType::I32, {4}, layout, shards);
}

TEST(ReplicasTest, DifferencesAreFound) {
  Array equal = withReplicas({1, 2}), different = withReplicas({1, 3});
  EXPECT_EQ(findDifference(equal.layout(), checksumsOf(equal)), std::nullopt);
  std::array<size_t, 2> expected = {0, 2};
  EXPECT_EQ(findDifference(different.layout(), checksumsOf(different)),
            expected);
  // A rank of another process, whose checksum is not known.
  std::vector<std::string> checksums = checksumsOf(different);
  checksums[2].clear();
  EXPECT_EQ(findDifference(different.layout(), checksums), std::nullopt);
}

} // namespace
