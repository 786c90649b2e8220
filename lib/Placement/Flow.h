//===- Flow.h - Two placements in one system of coordinates -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to this folder: the trees of two placements of one tensor, indexed
// for queries about single elements, and the groups of a step between them.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PLACEMENT_FLOW_H
#define WHALE_LIB_PLACEMENT_FLOW_H

#include "whale/Placement/Cells.h"
#include "llvm/ADT/DenseMap.h"

namespace whale {

/// A placement's tree that stores the leaves below each node as a range, so
/// that "is this device below that node" is one comparison.
class FlowTree {
public:
  struct Node {
    const PlacementNode *node;
    unsigned firstLeaf, endLeaf;
    /// Split only: where each part starts and ends along the dimension, in
    /// coordinates of the view.
    Extents begins, ends;
    std::vector<Node> children;
    /// Whether it, or a node below it, is of that kind.
    bool hasPartial = false, hasSplit = false;

    PlacementNode::Kind kind() const { return node->kind; }
    bool isLeaf() const { return node->isLeaf(); }
    bool covers(unsigned leaf) const {
      return firstLeaf <= leaf && leaf < endLeaf;
    }
    /// Split without windows only: returns the child that holds the element.
    const Node &childAt(llvm::ArrayRef<int64_t> point) const;
    /// Returns the child that has the leaf below it.
    unsigned childOf(unsigned leaf) const;
  };

  explicit FlowTree(const Placement &placement);

  const Node &root() const { return top; }
  llvm::ArrayRef<Shard> shards() const { return placement.shards(); }
  /// Returns the leaf of a device, or -1.
  int leafOf(DeviceId device) const;
  bool holds(unsigned leaf, llvm::ArrayRef<int64_t> point) const;

private:
  Node build(const PlacementNode &node, Box &box, unsigned &leaf);

  Placement placement;
  llvm::DenseMap<DeviceId, int> leaves;
  Node top;
};

/// `from` and `to` in a common view, so that elements with the same owners on
/// both sides form boxes. If there is no common view (`flat`), each is in its
/// own.
struct Flow {
  Flow(const Placement &from, const Placement &to);

  Placement from, to;
  bool flat = false;
};

/// The kind of a step and its groups.
struct Match {
  StepKind kind = StepKind::SendRecv;
  std::vector<llvm::SmallVector<DeviceId>> groups;
};

/// Returns the best single collective from `flow.from` to `flow.to`.
Match matchStep(const Flow &flow, const Topology &topology);

/// The same of the flow between two placements; found once.
std::shared_ptr<const Match>
findMatch(const Placement &from, const Placement &to, const Topology &topology);

/// matchStep, recognized by which devices exchange elements: for values that
/// stay partial, and sides without a common view.
Match matchTraffic(const Flow &flow, const Topology &topology);

/// Whether a table may have too many pieces to be built in reasonable time.
bool isTableLarge(const Flow &flow);

/// Calls `fn` with the table's receivers, one after the other, until it returns
/// false. Returns whether it never did.
bool buildReceivers(const Flow &flow, const Topology &topology,
                    llvm::ArrayRef<llvm::SmallVector<DeviceId>> groups,
                    llvm::function_ref<bool(Receiver)> fn);

/// Counts the pieces of receivers of different boxes, as Cells.h says.
int64_t countPieces(const Flow &flow, const Topology &topology,
                    llvm::ArrayRef<llvm::SmallVector<DeviceId>> groups,
                    int64_t most);

/// Returns the table's senders.
std::vector<Sender> buildSenders(const Flow &flow);

/// Returns the table; owners in the receiver's group are preferred.
CellTable buildTable(const Flow &flow, const Topology &topology,
                     std::vector<llvm::SmallVector<DeviceId>> groups,
                     StepKind kind);

/// The row-major intervals [first, second) of a view that a box covers.
std::vector<std::pair<int64_t, int64_t>> runsOf(const Box &box,
                                                llvm::ArrayRef<int64_t> view);

} // namespace whale

#endif // WHALE_LIB_PLACEMENT_FLOW_H
