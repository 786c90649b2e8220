//===- Layouts.h - Layouts of arrays for tests ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_RUNTIME_LAYOUTS_H
#define WHALE_UNITTESTS_RUNTIME_LAYOUTS_H

#include "CopyBox.h"
#include "executor/ExchangePlan.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace whale::runtime::test {

using Numbers = std::vector<int32_t>;
/// Of an array: by rank.
using Shards = std::vector<Numbers>;

/// Ranks that hold parts of one dimension, all, or nothing.
inline std::shared_ptr<Layout> randomLayout(std::mt19937 &random,
                                            const Shape &shape, int64_t ranks) {
  auto layout = std::make_shared<Layout>(Layout{shape, {}});
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  if (below(4) == 0) {
    for (int64_t rank = 0; rank < ranks; ++rank)
      layout->boxes.push_back(rank == 0 || below(3) != 0
                                  ? std::optional(format::Box::whole(shape))
                                  : std::nullopt);
    return layout;
  }
  auto d = static_cast<size_t>(below(std::ssize(shape)));
  std::vector<int64_t> cuts = {0, shape[d]};
  for (int64_t i = 1; i < ranks; ++i)
    cuts.push_back(below(shape[d] + 1));
  std::ranges::sort(cuts);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    format::Box box = format::Box::whole(shape);
    box.start[d] = cuts[rank];
    box.size[d] = cuts[rank + 1] - cuts[rank];
    layout->boxes.emplace_back(box);
  }
  return layout;
}

/// The shards of an array whose elements are numbered.
inline Shards shardsOf(const Layout &layout) {
  Numbers whole(format::elementCount(layout.view));
  std::iota(whole.begin(), whole.end(), 0);
  Shards shards;
  for (const std::optional<format::Box> &box : layout.boxes) {
    Numbers &shard = shards.emplace_back(box ? box->elements() : 0);
    if (box)
      copyBox(shard.data(), box->size, Shape(box->size.size()), whole.data(),
              layout.view, box->start, box->size, 4);
  }
  return shards;
}

} // namespace whale::runtime::test

#endif // WHALE_UNITTESTS_RUNTIME_LAYOUTS_H
