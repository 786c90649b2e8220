//===- PlacementTest.cpp - Tests of placements ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The value class Placement: its text form, which device holds which box, and
// its rewrites, such as other views or dimensions and sums that are divided.
// Expected texts and boxes are written by hand; error messages are compared
// word for word.
//
// Placements that mean the same but are written differently must be equal where
// they normalize to one tree, and otherwise equivalent. What resolves one
// placement into another is tested in ResolverTest.cpp, and on random
// placements in ResolverPropertyTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/Placement.h"
#include "gtest/gtest.h"

using namespace llvm;
using namespace whale;
using Node = PlacementNode;

namespace {

Placement parse(StringRef text) {
  Expected<Placement> placement = Placement::parse(text);
  EXPECT_TRUE(bool(placement))
      << text.str() << ": " << toString(placement.takeError());
  return placement ? *placement : Placement();
}

std::string parseError(StringRef text) {
  Expected<Placement> placement = Placement::parse(text);
  EXPECT_FALSE(bool(placement)) << text.str();
  return placement ? "" : toString(placement.takeError());
}

template <typename T>
std::string show(const T &value) {
  std::string text;
  raw_string_ostream os(text);
  os << value;
  return text;
}

TEST(Placement, PrintsWhatItParses) {
  for (StringRef text : {
           "[8, 16] on [0]",
           "[] replicate 2 on [0, 1]",
           "[8, 16] split 0 (3, 5) replicate 2 on [0, 1, 2, 3]",
           "[8] partial sum 2 split 0 (8, 0) on [3, 2, 1, 0]",
           "[8] split 0 (3, 5) {on [0], replicate 2 on [1, 2]}",
           "[8] split 0 (3, 5) {split 0 (1, 2) on [0, 1], split 0 (2, 3) on "
           "[2, 3]}",
           "[8] replicate 2 {split 0 (4, 4) {on [0], replicate 2 on [1, 2]}, "
           "on [3]}",
           "[1024] split 0 (512 x 2) on [0 to 511]",
           "[10] split 0 (5 x 1, 5) on [0 to 4, 9]",
           "[0, 4] split 0 (0, 0) on [0, 1]",
           "[4] partial and 2 on [0, 1]",
       }) {
    Placement placement = parse(text);
    EXPECT_EQ(placement.str(), text);
    EXPECT_EQ(parse(placement.str()), placement);
  }
}

TEST(Placement, NodesOfOneChildVanish) {
  EXPECT_EQ(parse("[8] replicate 1 split 0 (8) split 0 (3, 5) on [0, 1]"),
            parse("[8] split 0 (3, 5) on [0, 1]"));
  EXPECT_FALSE(parse("[8] partial sum 1 on [0]").isPartial());
}

TEST(Placement, AxesBeforeBracesMultiply) {
  EXPECT_EQ(parse("[8] replicate 2 split 0 (4, 4) {on [0], on [1], on [2], "
                  "replicate 2 on [3, 4]}")
                .str(),
            "[8] replicate 2 {split 0 (4, 4) on [0, 1], split 0 (4, 4) {on "
            "[2], replicate 2 on [3, 4]}}");
}

TEST(Placement, ParseErrorsSayWhatAndWhere) {
  EXPECT_EQ(parseError("8] on [0]"),
            "expected '[' at character 0 of placement '8] on [0]'");
  EXPECT_EQ(parseError("[8] split 0 [4, 4] on [0, 1]"),
            "expected '(' at character 12 of placement '[8] split 0 [4, 4] on "
            "[0, 1]'");
  EXPECT_EQ(parseError("[8] partial mean 2 on [0, 1]"),
            "expected sum, product, min, max, and, or at character 12 of "
            "placement '[8] partial mean 2 on [0, 1]'");
  EXPECT_EQ(parseError("[8] replicate 2 on [0]"),
            "the axes have 2 parts, but 1 are given");
  EXPECT_EQ(parseError("[8] replicate 0 on []"),
            "expected fewer parts, but one at least, at character 15 of "
            "placement '[8] replicate 0 on []'");
  EXPECT_NE(parseError("[8] on [0] x"), "");
  EXPECT_NE(parseError("[8] replicate 1000000 replicate 1000000 on [0]"), "");
  EXPECT_NE(parseError("[8] on [5 to 1]"), "");
  EXPECT_NE(parseError("[99999999999999999999] on [0]"), "");
  std::string deep = "[8] ";
  for (int i = 0; i < 10000; ++i)
    deep += "replicate 1 {";
  EXPECT_NE(parseError(deep), "");
}

TEST(Placement, ValidationErrors) {
  EXPECT_EQ(parseError("[8] split 0 (3, 4) on [0, 1]"),
            "split sizes of dimension 0 sum to 7, but the extent to split is "
            "8");
  EXPECT_EQ(parseError("[8] split 0 (4, 4) split 0 (2, 3) on [0, 1, 2, 3]"),
            "split sizes of dimension 0 sum to 5, but the extent to split is "
            "4");
  EXPECT_EQ(parseError("[8] split 0 (7) on [0]"),
            "split sizes of dimension 0 sum to 7, but the extent to split is "
            "8");
  EXPECT_EQ(parseError("[8] split 1 (4, 4) on [0, 1]"),
            "split dimension 1 is outside a view of 1 dimensions");
  EXPECT_EQ(parseError("[8] replicate 2 on [1, 1]"), "device 1 appears twice");
  EXPECT_EQ(parseError("[8] partial sum 2 {on [0], partial max 2 on [1, 2]}"),
            "two kinds of reduction in one placement");
  EXPECT_EQ(parseError("[4611686018427387904, 4, 0] on [0]"),
            "the view has too many elements");
  auto message = [](Expected<Placement> placement) {
    return placement ? "" : toString(placement.takeError());
  };
  EXPECT_EQ(message(Placement::create({-1}, Node::leaf(0))),
            "view extent -1 is negative");
  EXPECT_EQ(message(Placement::create({8}, Node::leaf(-3))),
            "device -3 is negative");
  EXPECT_EQ(message(Placement::create({8}, Node::split(0, {9, -1}, {0, 1}))),
            "split of dimension 0 has the negative size -1");
  EXPECT_EQ(message(Placement::create({8}, Node::split(0, {8}, {0, 1}))),
            "split of dimension 0 has 1 sizes for 2 parts");
  EXPECT_EQ(
      message(Placement::create({8}, Node::replicate(ArrayRef<DeviceId>{}))),
      "a node has no parts");
  EXPECT_EQ(
      message(Placement::regular({8}, {PlacementAxis::replicate(3)}, {0, 1})),
      "the axes have more parts than the 2 devices");
}

TEST(Placement, Boxes) {
  Placement p = parse("[8, 6] split 0 (3, 5) {split 0 (1, 2) on [0, 1], split "
                      "1 (0, 6) on [2, 3]}");
  EXPECT_EQ(show(*p.box(0)), "[0:1, 0:6]");
  EXPECT_EQ(show(*p.box(1)), "[1:3, 0:6]");
  EXPECT_EQ(show(*p.box(2)), "[3:8, 0:0]");
  EXPECT_EQ(show(*p.box(3)), "[3:8, 0:6]");
  EXPECT_EQ(p.box(4), std::nullopt);
  EXPECT_TRUE(p.contains(2));
  EXPECT_FALSE(p.holds(2));
  EXPECT_TRUE(p.holds(3));
  EXPECT_FALSE(p.holds(4));
  EXPECT_EQ(p.localView(1), (Extents{2, 6}));
  EXPECT_EQ(p.localView(9), (Extents{0, 0}));
  EXPECT_EQ(p.splitDims(), (SmallVector<int64_t>{0, 1}));
  EXPECT_EQ(p.boundaries(0), (SmallVector<int64_t>{0, 1, 3, 8}));
  EXPECT_EQ(p.devices(), ArrayRef<DeviceId>({0, 1, 2, 3}));
  EXPECT_TRUE(p.isViewOf({48}));
  EXPECT_FALSE(p.isViewOf({8}));
  EXPECT_FALSE(p.axes());
  EXPECT_FALSE(p.isReplicated());
  EXPECT_TRUE(parse("[] replicate 2 on [0, 1]").isReplicated());
  EXPECT_TRUE(parse("[] on [0]").holds(0));
  EXPECT_FALSE(parse("[4] partial sum 2 on [0, 1]").isReplicated());
}

TEST(Placement, Windows) {
  Placement p = parse("[8, 6] split 0 (0:5, 3:8) on [0, 1]");
  EXPECT_TRUE(p.hasWindows());
  EXPECT_EQ(show(*p.box(0)), "[0:5, 0:6]");
  EXPECT_EQ(show(*p.box(1)), "[3:8, 0:6]");
  EXPECT_EQ(p.withoutWindows(), parse("[8, 6] split 0 (4, 4) on [0, 1]"));
  EXPECT_NE(p, parse("[8, 6] split 0 (0:5, 2:8) on [0, 1]"));
  // Counted from the node's own box, and kept where they don't fill it.
  p = parse("[8] replicate 2 {split 0 (1:3) on [0], on [1]}");
  EXPECT_EQ(show(*p.box(0)), "[1:3]");
  p = parse("[12] split 0 (0:6, 4:12) split 0 (0:3, 2:6) on [0 to 3]");
  EXPECT_EQ(show(*p.box(3)), "[6:10]");
  // Empty windows stand anywhere; windows of just the parts are sizes.
  EXPECT_TRUE(parse("[8] split 0 (0:5, 4:4, 3:8) on [0, 1, 2]").hasWindows());
  EXPECT_EQ(parse("[8] split 0 (0:5, 5:8) on [0, 1]"),
            parse("[8] split 0 (5, 3) on [0, 1]"));
  // In another view.
  p = parse("[2, 8] split 1 (0:6, 2:8) on [0, 1]");
  EXPECT_EQ(p.withView({2, 4, 2}),
            parse("[2, 4, 2] split 1 (0:3, 1:4) on [0, 1]"));
  EXPECT_EQ(p.withView({2, 2, 4}), std::nullopt);
}

TEST(Placement, WindowErrors) {
  EXPECT_EQ(parseError("[8] split 0 (0:5, 3:9) on [0, 1]"),
            "window 3:9 of dimension 0 is not inside of 0:8 or not in "
            "ascending order");
  EXPECT_EQ(parseError("[8] split 0 (3:8, 0:5) on [0, 1]"),
            "window 0:5 of dimension 0 is not inside of 0:8 or not in "
            "ascending order");
  EXPECT_EQ(parseError("[8] partial sum 2 split 0 (0:5, 3:8) on [0 to 3]"),
            "a split of partial values has windows");
  EXPECT_NE(parseError("[8] split 0 (5:3, 3:8) on [0, 1]"), "");
  EXPECT_NE(parseError("[8] split 0 (0:5, 3) on [0, 1]"), "");
  EXPECT_NE(parseError("[8] split 0 (0:9223372036854775807) on [0]"), "");
}

TEST(Placement, EqualityAndHash) {
  Placement a = parse("[8] split 0 (3, 5) on [0, 1]");
  Placement b = Placement::split({8}, 0, {3, 5}, {0, 1});
  EXPECT_EQ(a, b);
  EXPECT_EQ(size_t(hash_value(a)), size_t(hash_value(b)));
  for (StringRef other :
       {"[8] split 0 (5, 3) on [0, 1]", "[8] split 0 (3, 5) on [1, 0]",
        "[8, 1] split 0 (3, 5) on [0, 1]", "[8] replicate 2 on [0, 1]",
        "[8] partial sum 2 on [0, 1]", "[8] partial max 2 on [0, 1]"})
    EXPECT_NE(a, parse(other));
  EXPECT_NE(a, Placement());
  EXPECT_EQ(Placement(), Placement());
}

TEST(Placement, PartialRewrites) {
  Placement p = parse("[8, 3] split 0 (4, 4) partial sum 2 on [0 to 3]");
  EXPECT_TRUE(p.isPartial());
  EXPECT_EQ(p.reduction(), Reduction::Sum);
  EXPECT_EQ(p.withoutPartial().str(),
            "[8, 3] split 0 (4, 4) replicate 2 on [0, 1, 2, 3]");
  EXPECT_EQ(p.withPartialSplit(1)->str(),
            "[8, 3] split 0 (4, 4) split 1 (2, 1) on [0, 1, 2, 3]");
  EXPECT_EQ(parse("[8] partial sum 2 split 0 (3, 5) on [0, 1, 2, 3]")
                .withPartialSplit(0)
                ->str(),
            "[8] split 0 (3, 5) {split 0 (2, 1) on [0, 2], split 0 (3, 2) on "
            "[1, 3]}");
  EXPECT_EQ(parse("[8] partial sum 2 {on [0], replicate 2 on [1, 2]}")
                .withPartialSplit(0),
            std::nullopt);
}

TEST(Placement, Views) {
  auto view = [](StringRef text, ArrayRef<int64_t> target) {
    std::optional<Placement> placement = parse(text).withView(target);
    return placement ? placement->str() : "none";
  };
  // Refine where the sizes are multiples of the minor part.
  EXPECT_EQ(view("[4, 12] split 1 (4, 8) on [0, 1]", {4, 3, 4}),
            "[4, 3, 4] split 1 (1, 2) on [0, 1]");
  EXPECT_EQ(view("[4, 12] split 1 (5, 7) on [0, 1]", {4, 3, 4}), "none");
  // Coarsen, also where the split is inside one part of the major dimension.
  EXPECT_EQ(view("[3, 4] split 0 (1, 2) on [0, 1]", {12}),
            "[12] split 0 (4, 8) on [0, 1]");
  EXPECT_EQ(view("[2, 4] split 0 (1, 1) split 1 (1, 3) on [0 to 3]", {8}),
            "[8] split 0 (4, 4) split 0 (1, 3) on [0, 1, 2, 3]");
  EXPECT_EQ(view("[2, 4] split 1 (1, 3) on [0, 1]", {8}), "none");
  // Both at once, partial and empty parts, extents of 1.
  EXPECT_EQ(view("[4, 6] partial sum 2 split 0 (2, 2, 0) on [0 to 5]", {2, 12}),
            "[2, 12] partial sum 2 split 0 (1, 1, 0) on [0 to 5]");
  EXPECT_EQ(view("[1, 8] split 1 (0, 8) on [0, 1]", {8}),
            "[8] split 0 (0, 8) on [0, 1]");
  EXPECT_EQ(view("[8] split 0 (0, 8) on [0, 1]", {2, 1, 4, 1}),
            "[2, 1, 4, 1] split 0 (0, 2) on [0, 1]");
  EXPECT_EQ(view("[] replicate 2 on [0, 1]", {1, 1}),
            "[1, 1] replicate 2 on [0, 1]");
  // Views that interleave keep what is whole.
  EXPECT_EQ(view("[6, 4] split 0 (3, 3) on [0, 1]", {4, 6}),
            "[4, 6] split 0 (2, 2) on [0, 1]");
  EXPECT_EQ(view("[6, 4] split 0 (1, 5) on [0, 1]", {4, 6}), "none");
  EXPECT_EQ(view("[6, 4] on [0]", {5}), "none");
}

TEST(Placement, CommonRefinement) {
  auto common = [](ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
    std::optional<CommonView> found = commonRefinement(a, b);
    return found ? found->extents : Extents{-1};
  };
  EXPECT_EQ(common({4, 12}, {4, 3, 4}), (Extents{4, 3, 4}));
  EXPECT_EQ(common({8, 3}, {2, 12}), (Extents{2, 4, 3}));
  EXPECT_EQ(common({6, 4}, {4, 6}), (Extents{-1}));
  EXPECT_EQ(common({1, 5, 1}, {5}), (Extents{1, 5, 1}));
  EXPECT_EQ(common({}, {1, 1}), (Extents{1, 1}));
  EXPECT_EQ(common({0, 3}, {3, 0}), (Extents{-1}));
  EXPECT_EQ(common({0, 3}, {0, 3}), (Extents{0, 3}));
  EXPECT_EQ(common({8, 0}, {2, 4, 0}), (Extents{2, 4, 0}));
  EXPECT_EQ(common({8, 0}, {0}), (Extents{-1}));
  std::optional<CommonView> runs = commonRefinement({8, 3}, {2, 12});
  EXPECT_EQ(runs->first[0], (std::pair<unsigned, unsigned>(0, 2)));
  EXPECT_EQ(runs->second[1], (std::pair<unsigned, unsigned>(1, 3)));
}

TEST(Placement, OtherDimensions) {
  Placement p = parse("[8, 6] split 0 (3, 5) split 1 (2, 4) on [0 to 3]");
  EXPECT_EQ(p.withDims({6, 8}, {1, 0})->str(),
            "[6, 8] split 1 (3, 5) split 0 (2, 4) on [0, 1, 2, 3]");
  EXPECT_EQ(p.withDims({8}, {0, std::nullopt})->str(),
            "[8] split 0 (3, 5) replicate 2 on [0, 1, 2, 3]");
  EXPECT_EQ(p.withDims({7, 6}, {0, 1}), std::nullopt);
}

TEST(Placement, ExpandAndRename) {
  // Two groups with shares 3 and 5 of the batch, of different inner degree.
  Placement outer = Placement::split({8, 4}, 0, {3, 5}, {0, 1});
  Expected<Placement> nested = outer.expand([](DeviceId group, const Box &box) {
    if (group == 0)
      return Node::leaf(7);
    return Node::split(0, Placement::evenSizes(box.size[0], 2), {8, 9});
  });
  EXPECT_EQ(cantFail(std::move(nested)).str(),
            "[8, 4] split 0 (3, 5) {on [7], split 0 (3, 2) on [8, 9]}");
  Expected<Placement> renamed =
      outer.mapDevices([](DeviceId device) { return device + 10; });
  EXPECT_EQ(cantFail(std::move(renamed)).str(),
            "[8, 4] split 0 (3, 5) on [10, 11]");
  Expected<Placement> merged = outer.mapDevices([](DeviceId) { return 0; });
  EXPECT_EQ(toString(merged.takeError()), "device 0 appears twice");
}

TEST(Placement, Equivalence) {
  EXPECT_TRUE(parse("[8] replicate 2 replicate 2 on [0 to 3]")
                  .isEquivalent(parse("[8] replicate 4 on [3, 1, 2, 0]")));
  EXPECT_TRUE(parse("[8] split 0 (4, 4) split 0 (2, 2) on [0 to 3]")
                  .isEquivalent(parse("[4, 2] split 0 (4 x 1) on [0 to 3]")));
  EXPECT_FALSE(parse("[8] split 0 (4, 4) on [0, 1]")
                   .isEquivalent(parse("[8] split 0 (4, 4) on [1, 0]")));
  EXPECT_TRUE(parse("[8] partial sum 2 partial sum 2 on [0 to 3]")
                  .isEquivalent(parse("[2, 4] partial sum 4 on [0 to 3]")));
  EXPECT_FALSE(parse("[8] partial sum 2 on [0, 1]")
                   .isEquivalent(parse("[8] replicate 2 on [0, 1]")));
}

} // namespace
