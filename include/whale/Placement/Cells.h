//===- Cells.h - Which device sends which elements where --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes one step of communication and computes its table of cells: for each
// receiver, which boxes it gets from which devices. A transport executes the
// table and the oracle verifies it. In: a Step (placement before and after) and
// the topology. Out: a CellTable. The idea: a cell is a box whose elements all
// have the same senders. Cost: see `cells`.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLACEMENT_CELLS_H
#define WHALE_PLACEMENT_CELLS_H

#include "whale/Cluster/Topology.h"
#include "whale/Placement/Placement.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace whale {

/// The kind of a step, named after the collective that performs it. Several
/// groups of devices may perform the same collective side by side.
enum class StepKind {
  /// No bytes move: each device keeps a part of what it holds, or fills a new
  /// partial term with the reduction's identity.
  LocalSlice,
  /// Each member of a group holds a term of one box and ends with its value.
  AllReduce,
  /// Like AllReduce, but each member ends with its own part of the box.
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

/// Returns the name: `local_slice`, `all_reduce`, `reduce_scatter`,
/// `all_gather`, `all_to_all`, `broadcast`, `send_recv`.
llvm::StringRef stringifyStepKind(StepKind kind);

/// One step of a reshard: the value's placement before and after it.
struct Step {
  StepKind kind = StepKind::SendRecv;
  Placement from;
  Placement to;
  bool operator==(const Step &other) const = default;
};

llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Step &step);

/// A box of the sender's shard, of the same size as the cell.
struct Contribution {
  DeviceId peer;
  Extents start;
  bool operator==(const Contribution &other) const = default;
};

/// A box of a receiver's shard and its new contents: a copy of one
/// contribution, the reduction of several in their order, or the reduction's
/// identity if there are no contributions.
struct Cell {
  Box box;
  llvm::SmallVector<Contribution, 1> contributions;
  bool operator==(const Cell &other) const = default;
};

/// All data that one device receives.
struct Receiver {
  DeviceId device;
  /// Extents in which the boxes of this device's new shard are given: those of
  /// the row-major shard, those of a refinement of it, or one flat extent.
  Extents shape;
  /// These cover the shard, each element once, in row-major order.
  std::vector<Cell> cells;
  bool operator==(const Receiver &other) const = default;
};

/// The shard that one device sends from.
struct Sender {
  DeviceId device;
  /// Extents in which the boxes of this device's old shard are given.
  Extents shape;
  bool operator==(const Sender &other) const = default;
};

/// A step, element by element.
struct CellTable {
  /// The reduction of cells that have several contributions or none.
  std::optional<Reduction> reduction;
  /// All devices of the step's `to`, in the order of its leaves.
  std::vector<Receiver> receivers;
  /// All devices of the step's `from`, in the order of its leaves.
  std::vector<Sender> senders;
  /// Members of the collectives that run side by side; empty for LocalSlice and
  /// SendRecv. Devices that take no part are in no group. In an AllReduce every
  /// member ends with the reduction of the group's shards in order, so a
  /// transport needs only the groups, not the cells.
  std::vector<llvm::SmallVector<DeviceId>> groups;
  StepKind kind = StepKind::SendRecv;

  /// The number of elements that a device receives from others, and sends to
  /// others. If a group of p all-reduces n elements, member i is assumed to
  /// reduce part i of them and to collect the other parts.
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

/// Returns the table of a step. Pure and deterministic. All callers must pass
/// the same topology, because it breaks ties between owners of the same
/// elements: the device itself, then one in the same group, in the same node,
/// with the fewest elements to send so far, with the lowest id. Terms of a
/// reduction are in the order of the leaves of `step.from`. Cost: the number of
/// contributions, times the depth of the trees.
CellTable cells(const Step &step, const Topology &topology = {});

/// Calls `fn` with the Receiver of each device of the step's `to`, in the order
/// of the table, until it returns false. Avoids storing the whole table, which
/// is large between many devices. Returns whether `fn` never returned false.
bool forEachReceiver(const Step &step, const Topology &topology,
                     llvm::function_ref<bool(Receiver)> fn);

/// Returns how many pieces (cells and contributions) the table's receivers of
/// different boxes have, of several of one box the first; or any number above
/// `most` if it is larger. This is the least that a list of different receivers
/// holds. Where values aren't partial and the sides have a common view, no
/// piece is made: cost: the cells, up to `most`, along one dimension at a time.
int64_t countPieces(const Step &step, const Topology &topology, int64_t most);

/// Returns the shards that the devices of the step's `from` send from, in the
/// order of the table.
std::vector<Sender> sendersOf(const Step &step);

/// Returns the reduction that combines partial values in this step, if any.
std::optional<Reduction> reductionOf(const Step &step);

/// Returns only the groups of a step's table; cheap for large regular steps.
std::vector<llvm::SmallVector<DeviceId>> groups(const Step &step,
                                                const Topology &topology = {});

/// Returns the kind of collective that turns `from` into `to` in one step;
/// SendRecv if none does.
StepKind classify(const Placement &from, const Placement &to,
                  const Topology &topology = {});

/// Returns the number of elements of `to` that a device does not hold in
/// `from`. A lower bound of what any plan moves to it if neither is partial.
int64_t elementsMissing(const Placement &from, const Placement &to,
                        DeviceId device);

} // namespace whale

#endif // WHALE_PLACEMENT_CELLS_H
