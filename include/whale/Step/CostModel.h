//===- CostModel.h - Time of operations and transfers -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface for the time of operations and exchanges, used by every
// planning pass and by the simulator.
//

#ifndef WHALE_STEP_COSTMODEL_H
#define WHALE_STEP_COSTMODEL_H

#include "whale/Cluster/Cluster.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <memory>

namespace whale {

/// The work of an operation on one device.
struct OpCost {
  OpClass opClass = OpClass::Other;
  /// Element type of the computation, as StableHLO writes it.
  llvm::StringRef dtype = "f32";
  double flops = 0;
  /// Bytes read and written.
  double bytes = 0;
};

/// The most values that a fused loop reads and writes: beyond it, it runs out
/// of registers and its compiler of time.
inline constexpr unsigned kMostFusedBuffers = 24;

/// Bytes from one device to another.
struct Transfer {
  int64_t from = 0, to = 0;
  double bytes = 0;
};

/// An exchange within one group of devices.
struct Exchange {
  enum class Kind {
    AllReduce,     ///< bytes[i]: of the value, the same on each device
    AllGather,     ///< bytes[i]: of device i's part before
    ReduceScatter, ///< bytes[i]: of device i's part after
    Broadcast,     ///< bytes[0]: of the value; the first device has it
    AllToAll,      ///< bytes[i]: of device i, in equal parts, one for each
    PointToPoint,  ///< `transfers`, all at once
  };
  Kind kind = Kind::PointToPoint;
  llvm::SmallVector<int64_t> devices;
  llvm::SmallVector<double> bytes;
  llvm::SmallVector<Transfer> transfers;
};

/// Computes times of computation and communication.
class CostModel {
public:
  virtual ~CostModel() = default;

  /// Returns the seconds of an operation on a device, including its slowdown.
  virtual double opSeconds(const OpCost &op, int64_t device) const = 0;
  /// Returns the seconds until all exchanges are done that start together and
  /// share links.
  virtual double exchangeSeconds(llvm::ArrayRef<Exchange> exchanges) const = 0;
};

/// Returns the roofline model of the cluster file. An operation takes the
/// maximum of its FLOPs at (efficiency times the kind's peak) and its bytes at
/// the memory's bandwidth. An exchange takes its latency plus the time of the
/// link or network that carries the most bytes in one direction. Collectives
/// are modeled as hierarchical rings: inside each node over its links, between
/// nodes over the network, to which a node contributes each byte once. The
/// cluster must outlive the model.
std::unique_ptr<CostModel> createRooflineModel(const Cluster &cluster);

} // namespace whale

#endif // WHALE_STEP_COSTMODEL_H
