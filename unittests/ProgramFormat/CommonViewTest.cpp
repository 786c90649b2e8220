//===- CommonViewTest.cpp - Boxes of unlike views ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/CommonView.h"
#include "Elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace whale::format;
using whale::format::test::elementsOf;

namespace {

TEST(CommonViewTest, IsTheCoarsestRefinement) {
  EXPECT_EQ(commonView({4, 12}, {4, 3, 4}), (Shape{4, 3, 4}));
  EXPECT_EQ(commonView({4, 12}, {48}), (Shape{4, 12}));
  EXPECT_EQ(commonView({2, 6, 4}, {12, 2, 2}), (Shape{2, 6, 2, 2}));
  EXPECT_EQ(commonView({2, 3}, {3, 2}), Shape{6});
  EXPECT_EQ(commonView({1, 5, 1}, {5}), Shape{5});
  EXPECT_EQ(commonView({}, {1}), Shape{});
  EXPECT_EQ(commonView({0, 3}, {3, 0}), Shape{0});
}

TEST(CommonViewTest, ABoxInTheMiddleOfRows) {
  // Elements 3 to 9 of [12] in [3, 4]: the end of a row, a row, and a
  // beginning.
  std::vector<RefinedBox> parts = refine({{3}, {7}}, {12}, {3, 4});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].box, (Box{{0, 3}, {1, 1}}));
  EXPECT_EQ(parts[1].box, (Box{{1, 0}, {1, 4}}));
  EXPECT_EQ(parts[1].offset, 1);
  EXPECT_EQ(parts[2].box, (Box{{2, 0}, {1, 2}}));
  // Within a row it stays one part.
  EXPECT_EQ(refine({{5}, {2}}, {12}, {3, 4}).size(), 1u);
}

TEST(CommonViewTest, PartsAreTheBox) {
  std::mt19937 random(5);
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  auto randomView = [&] {
    Shape view = {pick(2) ? 24 : 1};
    for (int cut = 0; cut < 3; ++cut) {
      size_t d = pick(view.size());
      for (int64_t factor : {2, 3, 4})
        if (view[d] % factor == 0 && pick(2)) {
          view[d] /= factor;
          view.insert(view.begin() + d, factor);
          break;
        }
    }
    return view;
  };
  int flat = 0;
  for (int repeat = 0; repeat < 20000; ++repeat) {
    Shape a = randomView(), b = randomView();
    if (elementCount(a) != elementCount(b))
      continue;
    Shape refined = commonView(a, b);
    flat += refined.size() == 1 && a.size() > 1;
    Box box;
    for (int64_t extent : a) {
      box.start.push_back(pick(extent + 1));
      box.size.push_back(pick(extent + 1 - box.start.back()));
    }
    // By the element of the tensor, its place in the shard.
    std::map<int64_t, int64_t> places;
    for (int64_t element : elementsOf(box, a))
      places.emplace(element, places.size());
    size_t found = 0;
    for (const RefinedBox &part : refine(box, a, refined)) {
      std::vector<int64_t> offsets = {part.offset};
      for (size_t d = 0; d < refined.size(); ++d) {
        std::vector<int64_t> longer;
        for (int64_t offset : offsets)
          for (int64_t i = 0; i < part.box.size[d]; ++i)
            longer.push_back(offset + i * part.strides[d]);
        offsets = std::move(longer);
      }
      std::vector<int64_t> elements = elementsOf(part.box, refined);
      found += elements.size();
      for (size_t i = 0; i < elements.size(); ++i) {
        ASSERT_TRUE(places.contains(elements[i]));
        ASSERT_EQ(places[elements[i]], offsets[i]);
      }
    }
    ASSERT_EQ(found, places.size());
  }
  EXPECT_GT(flat, 100);
}

} // namespace
