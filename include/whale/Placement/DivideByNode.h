//===- DivideByNode.h - Gathering and scattering by node --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an all-gather, a reduce-scatter or an all-to-all in groups with devices
// of several nodes. Out: the same as two steps, one between devices of the same
// place in their nodes, and one in each node. What is gathered or scattered
// then crosses the network once for each node that needs it, not once for each
// device. An all-to-all has as many bytes cross it, in fewer messages: each
// device sends as many as there are nodes and devices of its node, not as there
// are members. Cost: linear in the devices, and sorting the members of each
// group.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLACEMENT_DIVIDEBYNODE_H
#define WHALE_PLACEMENT_DIVIDEBYNODE_H

#include "whale/Placement/Cells.h"

namespace whale {

struct NodeDivision {
  Step first, second;
  /// Of what each device has between them: its extents.
  Extents shape;
};

/// Divides a step of kind AllGather, ReduceScatter or AllToAll. nullopt if it
/// can't be: all groups must be of equally many nodes, with equally many
/// members in each and more than one, whose parts are equal, cut along one
/// dimension, and follow one another node by node. A single group may gather or
/// scatter parts of any sizes, of a dimension that divides by the members of a
/// node. The parts after an all-to-all are cut along another dimension, in the
/// same order.
std::optional<NodeDivision> divideByNode(const Step &step,
                                         const Topology &topology);

} // namespace whale

#endif // WHALE_PLACEMENT_DIVIDEBYNODE_H
