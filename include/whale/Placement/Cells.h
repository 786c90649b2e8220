//===- Cells.h - Which device sends which elements where --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of communication and its table of cells, which a transport carries
// out and the oracle checks.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLACEMENT_CELLS_H
#define WHALE_PLACEMENT_CELLS_H

#include "whale/Cluster/Topology.h"
#include "whale/Placement/Placement.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace whale {

/// What a step is, named after the collective that does it. Several groups of
/// devices may do the same side by side.
enum class StepKind {
  /// No bytes move: each device keeps a part of what it holds, or fills a new
  /// partial term with the reduction's identity.
  LocalSlice,
  /// Each member of a group holds a term of one box and ends with its value.
  AllReduce,
  /// The same, but each member ends with its own part of the box.
  ReduceScatter,
  /// Each member holds a part of one box and ends with all of it.
  AllGather,
  /// Members hold parts of one region and end with other parts of it.
  AllToAll,
  /// The first member holds a box; the others, which hold nothing before, end
  /// with it.
  Broadcast,
  /// Anything else: one batch of messages, reduced by the receiver.
  SendRecv,
};

/// `local_slice`, `all_reduce`, `reduce_scatter`, `all_gather`, `all_to_all`,
/// `broadcast`, `send_recv`.
llvm::StringRef stringifyStepKind(StepKind kind);

/// One step of a reshard: the value's placement before and after it.
struct Step {
  StepKind kind = StepKind::SendRecv;
  Placement from;
  Placement to;
  bool operator==(const Step &other) const = default;
};

llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Step &step);

/// A box of the sender's shard, of the size of the cell.
struct Contribution {
  DeviceId peer;
  Extents start;
  bool operator==(const Contribution &other) const = default;
};

/// A box of a receiver's shard and what it becomes: a copy of one contribution,
/// the reduction of several in their order, or the reduction's identity where
/// there is none.
struct Cell {
  Box box;
  llvm::SmallVector<Contribution, 1> contributions;
  bool operator==(const Cell &other) const = default;
};

/// What one device receives.
struct Receiver {
  DeviceId device;
  /// Extents in which the boxes of this device's new shard are written: the
  /// row-major shard itself, its dimensions refined or all flattened.
  Extents shape;
  /// Cover the shard, each element once, in row-major order.
  std::vector<Cell> cells;
  bool operator==(const Receiver &other) const = default;
};

/// What one device sends from.
struct Sender {
  DeviceId device;
  /// The same of this device's old shard.
  Extents shape;
  bool operator==(const Sender &other) const = default;
};

/// A step, element for element.
struct CellTable {
  /// Of cells that have several contributions or none.
  std::optional<Reduction> reduction;
  /// All devices of the step's `to`, in the order of its leaves.
  std::vector<Receiver> receivers;
  /// All devices of the step's `from`, in the order of its leaves.
  std::vector<Sender> senders;
  /// Members of the collectives that run side by side, empty for LocalSlice and
  /// SendRecv; devices that take no part are in none. With AllReduce, where
  /// every member ends with the reduction of its shard over the group's in
  /// order, a transport needs the groups alone, not the cells.
  std::vector<llvm::SmallVector<DeviceId>> groups;
  StepKind kind = StepKind::SendRecv;

  /// Elements that a device takes from others, and gives to others. In a group
  /// of p that all-reduces n elements, member i is taken to reduce part i of
  /// them and to collect the others' parts.
  int64_t elementsReceived(DeviceId device) const;
  int64_t elementsSent(DeviceId device) const;
  int64_t bytesReceived(DeviceId device, int64_t elementBytes) const {
    return elementsReceived(device) * elementBytes;
  }
  int64_t bytesSent(DeviceId device, int64_t elementBytes) const {
    return elementsSent(device) * elementBytes;
  }
  bool operator==(const CellTable &other) const = default;
};

/// The table of a step. Pure and deterministic; the same topology must be given
/// everywhere, as it decides between equal owners: local, in the same group, in
/// the same node, with the least to send so far, the lowest id. Terms of a
/// reduction come in the order of the leaves of `step.from`. Cost: the number
/// of contributions, times the depth of the trees.
CellTable cells(const Step &step, const Topology &topology = {});

/// Calls `fn` with what each device of the step's `to` receives, one after the
/// other as in the table, until it returns false: a table between many devices
/// is larger than what is made of it. Returns whether it never did.
bool forEachReceiver(const Step &step, const Topology &topology,
                     llvm::function_ref<bool(Receiver)> fn);

/// What the devices of the step's `from` send from, as in the table.
std::vector<Sender> sendersOf(const Step &step);

/// How a step combines terms of partial values, if there are any.
std::optional<Reduction> reductionOf(const Step &step);

/// The groups of a step alone, as in the table; cheap for large regular steps.
std::vector<llvm::SmallVector<DeviceId>> groups(const Step &step,
                                                const Topology &topology = {});

/// The kind of collective that turns `from` into `to` in one step; SendRecv if
/// none does.
StepKind classify(const Placement &from, const Placement &to,
                  const Topology &topology = {});

/// Elements that a device needs of `to` and does not hold in `from`: no plan
/// moves fewer to it if neither is partial.
int64_t elementsMissing(const Placement &from, const Placement &to,
                        DeviceId device);

} // namespace whale

#endif // WHALE_PLACEMENT_CELLS_H
