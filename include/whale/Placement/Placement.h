//===- Placement.h - Which device holds which part --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A placement states which part of a tensor each device holds. It is an
// immutable value: a tree whose inner nodes split a dimension into explicit
// sizes, replicate, or hold partial results that a reduction combines, and
// whose leaves are devices. Dimensions are those of a view of the tensor: a
// list of extents whose row-major elements are the tensor's. Copies are cheap;
// queries cost at most the size of the tree. See docs/placement.md.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLACEMENT_PLACEMENT_H
#define WHALE_PLACEMENT_PLACEMENT_H

#include "whale/Cluster/Topology.h"
#include "whale/Placement/Box.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace whale {

/// The reduction that combines partial values.
enum class Reduction : uint32_t { Sum, Product, Min, Max, And, Or };

/// Returns the name: `sum`, `product`, `min`, `max`, `and`, `or`.
llvm::StringRef stringifyReduction(Reduction reduction);
std::optional<Reduction> parseReduction(llvm::StringRef text);

/// One node of a placement's tree.
struct PlacementNode {
  enum class Kind : uint8_t {
    Leaf,      ///< one device holds the node's box
    Split,     ///< child i holds sizes[i] elements of dimension `dim`, in order
    Replicate, ///< every child holds the whole box
    Partial,   ///< every child holds a term of the box's value
  };

  Kind kind = Kind::Leaf;
  /// Split only: dimension of the view, and a size for each child (may be 0).
  int64_t dim = 0;
  Extents sizes;
  /// Split only: if parts overlap or leave out elements, where each child
  /// starts, relative to the start of the node's box. Otherwise empty.
  Extents starts;
  /// Partial only.
  Reduction reduction = Reduction::Sum;
  /// Leaf only.
  DeviceId device = 0;
  std::vector<PlacementNode> children;

  /// Builders. A node with one child is equivalent to that child;
  /// Placement::create drops such nodes.
  static PlacementNode leaf(DeviceId device);
  static PlacementNode split(int64_t dim, llvm::ArrayRef<int64_t> sizes,
                             std::vector<PlacementNode> children);
  static PlacementNode windows(int64_t dim, llvm::ArrayRef<int64_t> starts,
                               llvm::ArrayRef<int64_t> sizes,
                               std::vector<PlacementNode> children);
  static PlacementNode replicate(std::vector<PlacementNode> children);
  static PlacementNode partial(Reduction reduction,
                               std::vector<PlacementNode> children);
  /// The same with one device per child.
  static PlacementNode split(int64_t dim, llvm::ArrayRef<int64_t> sizes,
                             llvm::ArrayRef<DeviceId> devices);
  static PlacementNode replicate(llvm::ArrayRef<DeviceId> devices);
  static PlacementNode partial(Reduction reduction,
                               llvm::ArrayRef<DeviceId> devices);

  bool isLeaf() const { return kind == Kind::Leaf; }
  /// Split only: returns where each child starts in the box of the node.
  Extents partStarts() const;
  /// Devices of the leaves, in order.
  llvm::SmallVector<DeviceId> devices() const;
  bool operator==(const PlacementNode &other) const;
};

/// One axis of a placement whose tree is regular: see Placement::regular.
struct PlacementAxis {
  PlacementNode::Kind kind = PlacementNode::Kind::Replicate;
  int64_t dim = 0;                      ///< of a split
  Extents sizes;                        ///< of a split
  Extents starts;                       ///< of a split, as those of a node
  int64_t count = 1;                    ///< parts; sizes.size() of a split
  Reduction reduction = Reduction::Sum; ///< of a partial

  static PlacementAxis split(int64_t dim, llvm::ArrayRef<int64_t> sizes);
  static PlacementAxis replicate(int64_t count);
  static PlacementAxis partial(Reduction reduction, int64_t count);
  bool operator==(const PlacementAxis &other) const = default;
};

/// The part that one device holds.
struct Shard {
  DeviceId device;
  Box box; ///< in coordinates of the view
};

/// Immutable and cheap to copy. Equality compares view and tree; unequal
/// placements may still give every device the same elements (see isEquivalent).
class Placement {
public:
  using Node = PlacementNode;
  using Axis = PlacementAxis;

  /// The null placement: may only be assigned, compared and tested.
  Placement() = default;
  explicit operator bool() const { return storage != nullptr; }

  /// Checks a tree and returns its placement. Errors: an extent or size that is
  /// negative, more than 2^62 elements, split sizes that do not sum to the
  /// extent of the node's box, a dimension outside the view, a node without
  /// children or with a number of sizes other than that of its children, a
  /// window outside the extent or left of the one before, windows of partial
  /// values, a device that appears twice, two kinds of reduction. Nodes with
  /// one child are replaced by the child.
  static llvm::Expected<Placement> create(llvm::ArrayRef<int64_t> view,
                                          Node root);
  /// The same for arguments that are known to be valid (asserted).
  static Placement get(llvm::ArrayRef<int64_t> view, Node root);

  /// Factories over one list of devices; arguments must be valid (asserted).
  static Placement replicated(llvm::ArrayRef<int64_t> view,
                              llvm::ArrayRef<DeviceId> devices);
  static Placement split(llvm::ArrayRef<int64_t> view, int64_t dim,
                         llvm::ArrayRef<int64_t> sizes,
                         llvm::ArrayRef<DeviceId> devices);
  static Placement partial(llvm::ArrayRef<int64_t> view, Reduction reduction,
                           llvm::ArrayRef<DeviceId> devices);
  /// Axes, outermost first, over devices in row-major order: the device list
  /// has one entry for every combination of parts.
  static llvm::Expected<Placement> regular(llvm::ArrayRef<int64_t> view,
                                           llvm::ArrayRef<Axis> axes,
                                           llvm::ArrayRef<DeviceId> devices);
  /// Divides `extent` into `parts` sizes that differ by at most 1, larger ones
  /// first.
  static Extents evenSizes(int64_t extent, int64_t parts);

  /// The text of the attribute:
  ///   [8, 16] split 0 (3, 5) replicate 2 on [0, 1, 2, 3]
  ///   [8] split 0 (3, 5) {on [0], replicate 2 on [1, 2]}
  /// `N x S` is short for N equal sizes, `A to B` for consecutive devices.
  static llvm::Expected<Placement> parse(llvm::StringRef text);
  void print(llvm::raw_ostream &os) const;
  std::string str() const;

  llvm::ArrayRef<int64_t> view() const;
  int64_t rank() const { return view().size(); }
  const Node &root() const;
  /// Every device, in the order of the leaves.
  llvm::ArrayRef<DeviceId> devices() const;
  /// The box of every device, in the order of the leaves.
  llvm::ArrayRef<Shard> shards() const;
  /// The axes of a regular tree (all children of a node are equal but for their
  /// devices); otherwise nullopt.
  std::optional<std::vector<Axis>> axes() const;

  /// Whether the device appears, even with an empty box.
  bool contains(DeviceId device) const { return box(device).has_value(); }
  /// Whether the device holds at least one element (or a scalar).
  bool holds(DeviceId device) const;
  /// The box of a device in view coordinates; nullopt if it does not appear.
  std::optional<Box> box(DeviceId device) const;
  /// The extents of a device's box, all 0 if the device does not appear. A
  /// scalar has no extents: use `contains` to tell the cases apart.
  Extents localView(DeviceId device) const;

  /// Whether every device holds the whole value.
  bool isReplicated() const;
  bool isPartial() const;
  /// Whether parts of a split overlap or leave out elements. Operations may
  /// require operands in windows, but no result has windows.
  bool hasWindows() const;
  /// The reduction of the partial nodes, if there are any.
  std::optional<Reduction> reduction() const;
  /// View dimensions with a split, ascending.
  llvm::SmallVector<int64_t> splitDims() const;
  /// Positions along `dim` where a box starts or ends, ascending, with 0 and
  /// the extent.
  llvm::SmallVector<int64_t> boundaries(int64_t dim) const;
  /// Whether the view is one of a tensor of this shape.
  bool isViewOf(llvm::ArrayRef<int64_t> shape) const;

  /// Returns the placement with partial nodes turned into replicate.
  Placement withoutPartial() const;
  /// Returns the placement with windows turned into parts: a boundary is in the
  /// middle of the overlap, or of the gap, of two neighbours.
  Placement withoutWindows() const;
  /// Returns the placement with partial nodes moved down to the leaves and
  /// replaced there: `make` gets the devices that hold the terms of one box,
  /// and the box. nullopt unless the children of every partial node have the
  /// same shape.
  std::optional<Placement> withPartialsReplaced(
      llvm::function_ref<Node(llvm::ArrayRef<DeviceId>, const Box &)> make)
      const;
  /// withPartialsReplaced with splits of `dim` into near-even sizes of each
  /// box.
  std::optional<Placement> withPartialSplit(int64_t dim) const;
  /// Returns the placement of the same elements in another view of the tensor.
  /// The view may refine this one (sizes must be multiples of the minor part),
  /// be refined by it, or both. nullopt if a split cannot be expressed there.
  std::optional<Placement> withView(llvm::ArrayRef<int64_t> view) const;
  /// Returns the placement of a value with other dimensions: dimension d here
  /// becomes dimension `dims[d]` of `view`, with the same extent; a split of a
  /// dimension that is dropped becomes replicate. nullopt if a kept extent
  /// differs.
  std::optional<Placement>
  withDims(llvm::ArrayRef<int64_t> view,
           llvm::ArrayRef<std::optional<int64_t>> dims) const;
  /// Returns the placement with every leaf replaced by `inner(device, box)`;
  /// the leaf's device is typically the index of a group. Split sizes inside
  /// must sum to those of the box. Errors as in `create`.
  llvm::Expected<Placement>
  expand(llvm::function_ref<Node(DeviceId, const Box &)> inner) const;
  /// Returns the placement with every device renamed. Errors as in `create` (a
  /// device that appears twice).
  llvm::Expected<Placement>
  mapDevices(llvm::function_ref<DeviceId(DeviceId)> rename) const;

  /// Returns the placement with directly nested nodes of the same kind merged
  /// (replicate in replicate, split in split of one dimension, partial in
  /// partial).
  Placement canonical() const;
  /// Whether both give every device the same elements, even if trees and views
  /// differ. Partial placements must have equal canonical trees.
  bool isEquivalent(const Placement &other) const;

  bool operator==(const Placement &other) const;
  friend llvm::hash_code hash_value(const Placement &placement) {
    return placement.hash();
  }

private:
  struct Storage;
  llvm::hash_code hash() const;
  std::shared_ptr<const Storage> storage;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os,
                                     const Placement &placement) {
  placement.print(os);
  return os;
}

} // namespace whale

#endif // WHALE_PLACEMENT_PLACEMENT_H
