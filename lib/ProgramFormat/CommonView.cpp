//===- CommonView.cpp - Boxes of unlike views -----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/CommonView.h"

#include <algorithm>
#include <cassert>

namespace whale::format {

/// The elements behind each dimension's steps, ascending: the products of the
/// last extents.
static Shape suffixProducts(const Shape &view) {
  Shape products = {1};
  for (size_t d = view.size(); d-- > 0;)
    products.push_back(products.back() * view[d]);
  return products;
}

Shape commonView(const Shape &a, const Shape &b) {
  int64_t elements = elementCount(a);
  assert(elements == elementCount(b) && "views of one tensor");
  if (elements == 0)
    return {0};
  Shape steps = suffixProducts(a), others = suffixProducts(b);
  steps.insert(steps.end(), others.begin(), others.end());
  std::ranges::sort(steps);
  steps.erase(std::ranges::unique(steps).begin(), steps.end());
  Shape view;
  for (size_t i = steps.size() - 1; i-- > 0;) {
    if (steps[i + 1] % steps[i] != 0)
      return {elements};
    view.push_back(steps[i + 1] / steps[i]);
  }
  return view;
}

/// Adds the boxes, in the factors of a dimension, that are its interval from
/// `begin` to `end`; each behind `prefix`.
static void addParts(std::span<const int64_t> factors, int64_t begin,
                     int64_t end, const Box &prefix, std::vector<Box> &parts) {
  if (begin >= end)
    return;
  auto extended = [&](int64_t start, int64_t size) {
    Box longer = prefix;
    longer.start.push_back(start);
    longer.size.push_back(size);
    return longer;
  };
  std::span<const int64_t> rest = factors.subspan(1);
  int64_t step = elementCount(rest);
  int64_t first = (begin + step - 1) / step, last = end / step;
  // Up to the first whole step, the whole ones, and what is behind them.
  if (begin < first * step) {
    int64_t before = (first - 1) * step;
    addParts(rest, begin - before, std::min(end - before, step),
             extended(first - 1, 1), parts);
  }
  if (first < last) {
    Box whole = extended(first, last - first);
    whole.start.insert(whole.start.end(), rest.size(), 0);
    whole.size.insert(whole.size.end(), rest.begin(), rest.end());
    parts.push_back(std::move(whole));
  }
  if (first <= last && last * step < end)
    addParts(rest, 0, end - last * step, extended(last, 1), parts);
}

/// The factors of each dimension of `view`; nothing where `refined` does not
/// refine it.
static std::optional<std::vector<Shape>> factorsOf(const Shape &view,
                                                   const Shape &refined) {
  std::vector<Shape> factors;
  size_t next = 0;
  for (int64_t extent : view) {
    Shape own;
    int64_t product = 1;
    for (; product < extent && next < refined.size(); ++next) {
      own.push_back(refined[next]);
      product *= refined[next];
    }
    if (product != extent)
      return std::nullopt;
    factors.push_back(std::move(own));
  }
  return factors;
}

/// The runs of elements of a box, in the one dimension of all.
static std::vector<RefinedBox> runsOf(const Box &box, const Shape &view) {
  // The dimensions behind this one are whole.
  size_t last = view.size() - 1;
  while (last > 0 && box.size[last] == view[last])
    --last;
  int64_t behind = elementCount(std::span(view).subspan(last + 1));
  int64_t length = box.size[last] * behind;
  std::vector<RefinedBox> runs;
  Shape index = box.start;
  while (true) {
    int64_t start = 0;
    for (size_t d = 0; d <= last; ++d)
      start = start * view[d] + index[d];
    runs.push_back({{{start * behind}, {length}},
                    static_cast<int64_t>(runs.size()) * length,
                    {1}});
    size_t d = last;
    while (d-- > 0 && ++index[d] == box.start[d] + box.size[d])
      index[d] = box.start[d];
    if (d == size_t(-1))
      return runs;
  }
}

std::vector<RefinedBox> refine(const Box &box, const Shape &view,
                               const Shape &refined) {
  if (box.elements() == 0)
    return {};
  std::optional<std::vector<Shape>> factors = factorsOf(view, refined);
  if (!factors)
    return runsOf(box, view);
  std::vector<RefinedBox> all = {{{}, 0, {}}};
  for (size_t d = 0; d < view.size(); ++d) {
    const Shape &own = (*factors)[d];
    int64_t stride = elementCount(std::span(box.size).subspan(d + 1));
    std::vector<Box> parts;
    if (own.empty())
      parts.emplace_back();
    else
      addParts(own, box.start[d], box.start[d] + box.size[d], {}, parts);
    std::vector<RefinedBox> longer;
    for (const RefinedBox &before : all)
      for (const Box &part : parts) {
        RefinedBox &next = longer.emplace_back(before);
        int64_t place = 0;
        for (size_t i = 0; i < own.size(); ++i) {
          next.box.start.push_back(part.start[i]);
          next.box.size.push_back(part.size[i]);
          place = place * own[i] + part.start[i];
          next.strides.push_back(stride *
                                 elementCount(std::span(own).subspan(i + 1)));
        }
        if (!own.empty())
          next.offset += (place - box.start[d]) * stride;
      }
    all = std::move(longer);
  }
  return all;
}

} // namespace whale::format
