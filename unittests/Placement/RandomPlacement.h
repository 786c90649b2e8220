//===- RandomPlacement.h - Placements for property tests --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The random shapes, views, device lists and placements of property tests: of
// the resolver, of layouts in programs, and of the verifiers of collectives.
//
// Half of the placements are trees whose nodes are drawn one by one; the others
// are regular, as those of programs mostly are. Shapes are small, of at most 4
// dimensions of at most 6, so that a test can compare every element. Windows
// are added afterwards, at nodes below which their dimension is not split
// again.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_PLACEMENT_RANDOMPLACEMENT_H
#define WHALE_UNITTESTS_PLACEMENT_RANDOMPLACEMENT_H

#include "whale/Placement/Placement.h"
#include <algorithm>
#include <random>

namespace whale {

/// Draws shapes, views, device lists and trees; small, so that many fit into a
/// minute, and with every oddity: uneven and empty parts, nested groups of
/// different degree, replicas of partial values.
class RandomPlacement {
public:
  explicit RandomPlacement(uint64_t seed) : engine(seed) {}

  int64_t below(int64_t bound) { return int64_t(engine() % uint64_t(bound)); }
  bool chance(int64_t percent) { return below(100) < percent; }
  uint64_t bits() { return engine(); }

  Extents shape() {
    Extents result;
    for (int64_t rank = chance(3) ? 0 : 1 + below(4); rank != 0; --rank)
      result.push_back(chance(2) ? 0 : 1 + below(6));
    return result;
  }

  /// Mostly the shape; else some dimensions factored or merged.
  Extents view(llvm::ArrayRef<int64_t> shape) {
    Extents result(shape);
    if (chance(70))
      return result;
    if (chance(50) && result.size() > 1) {
      int64_t d = below(result.size() - 1);
      result[d] *= result[d + 1];
      result.erase(result.begin() + d + 1);
    }
    Extents factored;
    for (int64_t extent : result) {
      int64_t factor = 1 + below(3);
      if (chance(50) && extent % factor == 0) {
        factored.push_back(extent / factor);
        extent = factor;
      }
      factored.push_back(extent);
    }
    return factored;
  }

  /// Between 1 and `most` of the devices 0 to `most` - 1.
  llvm::SmallVector<DeviceId> devices(int64_t most) {
    llvm::SmallVector<DeviceId> all;
    for (int64_t i = 0; i != most; ++i)
      all.push_back(i);
    if (chance(60))
      std::shuffle(all.begin(), all.end(), engine);
    int64_t count = chance(50) ? most : 1 + below(most);
    all.resize(count);
    return all;
  }

  Placement placement(llvm::ArrayRef<int64_t> view,
                      llvm::ArrayRef<DeviceId> devices, bool mayBePartial,
                      Reduction reduction) {
    this->reduction = reduction;
    Box box = Box::whole(view);
    if (chance(50))
      return Placement::get(view, tree(box, devices, mayBePartial));
    // A regular one, with even sizes more often than not.
    std::vector<PlacementAxis> axes;
    int64_t count = devices.size();
    Extents extent(view);
    while (count != 1) {
      int64_t parts = 2 + below(count - 1);
      if (count % parts)
        continue;
      count /= parts;
      int64_t d = view.empty() ? 0 : below(view.size());
      int64_t kind = below(10);
      if (kind < 6 && !view.empty() && extent[d] % parts == 0) {
        extent[d] /= parts;
        axes.push_back(PlacementAxis::split(d, Extents(parts, extent[d])));
      } else if (kind >= 8 && mayBePartial) {
        axes.push_back(PlacementAxis::partial(reduction, parts));
      } else {
        axes.push_back(PlacementAxis::replicate(parts));
      }
    }
    return llvm::cantFail(Placement::regular(view, axes, devices));
  }

  /// The same with some splits into windows.
  Placement windows(const Placement &placement) {
    PlacementNode root = placement.root();
    widen(root);
    return Placement::get(placement.view(), root);
  }

private:
  std::mt19937_64 engine;
  Reduction reduction = Reduction::Sum;

  /// The parts of a split dimension start up to three elements earlier or one
  /// later, and end up to one earlier or three later. A node below which it is
  /// split again is left alone.
  void widen(PlacementNode &node) {
    if (node.kind == PlacementNode::Kind::Split && !splitsBelow(node)) {
      Extents starts = node.partStarts(), sizes = node.sizes;
      int64_t extent = starts.back() + sizes.back(), first = 0, last = 0;
      for (auto [start, size] : llvm::zip(starts, sizes)) {
        if (size == 0)
          continue;
        int64_t end = start + size;
        start = std::clamp(start + below(5) - 3, first, extent);
        end = std::clamp(end + below(5) - 1, std::max(start, last), extent);
        size = end - start;
        first = start;
        last = end;
      }
      node.starts = starts;
      node.sizes = sizes;
    }
    for (PlacementNode &child : node.children)
      widen(child);
  }

  static bool splitsBelow(const PlacementNode &node) {
    auto splits = [&](auto &self, const PlacementNode &child) -> bool {
      return (child.kind == PlacementNode::Kind::Split &&
              child.dim == node.dim) ||
             llvm::any_of(child.children,
                          [&](auto &inner) { return self(self, inner); });
    };
    return llvm::any_of(node.children,
                        [&](auto &child) { return splits(splits, child); });
  }

  PlacementNode tree(Box &box, llvm::ArrayRef<DeviceId> devices,
                     bool mayBePartial) {
    if (devices.size() == 1)
      return PlacementNode::leaf(devices.front());
    int64_t parts = 2 + below(std::min<int64_t>(devices.size() - 1, 4));
    // Cuts of the device list.
    llvm::SmallVector<size_t> cuts{0, devices.size()};
    while (int64_t(cuts.size()) != parts + 1) {
      size_t cut = 1 + below(devices.size() - 1);
      if (!llvm::is_contained(cuts, cut))
        cuts.push_back(cut);
    }
    llvm::sort(cuts);
    int64_t kind = below(10);
    bool split = kind < 6 && !box.start.empty();
    int64_t d = split ? below(box.start.size()) : 0;
    Extents sizes;
    int64_t extent = split ? box.size[d] : 0, left = extent;
    for (int64_t i = 0; i != parts && split; ++i) {
      int64_t size = i + 1 == parts ? left : std::min(left, below(extent + 1));
      if (chance(40) && i + 1 != parts)
        size = std::min(left, (extent + parts - 1) / parts);
      sizes.push_back(size);
      left -= size;
    }
    std::vector<PlacementNode> children;
    for (int64_t i = 0; i != parts; ++i) {
      if (split)
        box.size[d] = sizes[i];
      children.push_back(tree(
          box, devices.slice(cuts[i], cuts[i + 1] - cuts[i]), mayBePartial));
    }
    if (split) {
      box.size[d] = extent;
      return PlacementNode::split(d, sizes, std::move(children));
    }
    if (kind >= 8 && mayBePartial)
      return PlacementNode::partial(reduction, std::move(children));
    return PlacementNode::replicate(std::move(children));
  }
};

} // namespace whale

#endif // WHALE_UNITTESTS_PLACEMENT_RANDOMPLACEMENT_H
