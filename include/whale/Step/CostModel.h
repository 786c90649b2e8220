//===- CostModel.h - Time of operations and transfers -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface for the time of operations and exchanges, used by every
// planning pass and by the simulator. Uses neither LLVM nor MLIR.
//

#ifndef WHALE_STEP_COSTMODEL_H
#define WHALE_STEP_COSTMODEL_H

#include "whale/Cluster/Cluster.h"
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace whale {

/// The work of an operation on one device.
struct OpCost {
  OpClass opClass = OpClass::Other;
  /// Element type of the computation, as StableHLO writes it.
  std::string_view dtype = "f32";
  double flops = 0;
  /// Bytes read and written.
  double bytes = 0;
  /// Of a matrix product, the smallest of its three extents; of a convolution
  /// the places of its window, or of its result where these are fewer, as of
  /// the gradient of a filter. 0 where it is not known.
  double extent = 0;
  /// Whether it is a kernel of its own, which takes time to start: not what is
  /// fused with others.
  bool startsKernel = true;
};

/// Bytes from one device to another.
struct Transfer {
  int64_t from = 0, to = 0;
  double bytes = 0;
};

/// A device posts the messages of an all-to-all one after another. Beside its
/// bytes, each but the first takes this part of its link's latency: what LogGP
/// (Alexandrov et al., 1995) calls the gap, of the latency of a network. It is
/// between what network cards can post and what processors have posted
/// (docs/paper.md, constants), which is no measurement.
inline constexpr double kMessageGap = 0.1;

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
  std::vector<int64_t> devices;
  std::vector<double> bytes;
  std::vector<Transfer> transfers;
  /// Whether transfers are all messages of an all-to-all.
  bool isAllToAll = false;
};

/// What exchanges that start together take of links. These are numbered: what
/// goes out of each device to others of its node, and what comes in; then the
/// same of each node.
struct LinkLoads {
  /// Seconds before anything moves.
  double latency = 0;
  struct Load {
    size_t link = 0;
    /// More than there are, where the link does not reach its bandwidth.
    double bytes = 0;
  };
  std::vector<Load> loads;
  /// By CollectiveRule::Nccl, the algorithm of a collective; else empty.
  std::string_view choice;
};

/// How an all-reduce, all-gather or reduce-scatter is carried out.
enum class CollectiveRule {
  /// As Whale's transports do: each member has a part of the value, which goes
  /// to it from all others, or from it to all others, as one message each. An
  /// all-reduce is both, but of few bytes one round of whole values.
  Own,
  /// As NCCL does: what takes least of a ring through all devices, of rings
  /// inside of nodes and between them, and of an all-reduce a tree
  /// (NVIDIA/nccl, src/graph/tuning.cc).
  Nccl,
};

/// Computes times of computation and communication.
class CostModel {
public:
  virtual ~CostModel() = default;

  /// Returns the seconds of an operation on a device, including its slowdown.
  virtual double opSeconds(const OpCost &op, int64_t device) const = 0;
  /// Returns the seconds until all exchanges are done that start together and
  /// share links.
  virtual double exchangeSeconds(std::span<const Exchange> exchanges) const = 0;
  /// What these exchanges take of links, for a model of several that go on at
  /// once.
  virtual LinkLoads linkLoads(std::span<const Exchange> exchanges) const = 0;
  /// Bytes per second of each link.
  virtual std::vector<double> linkBandwidths() const = 0;
  double exchangeSeconds(const Exchange &exchange) const {
    return exchangeSeconds({&exchange, 1});
  }
};

/// Returns the roofline model of the cluster file. An operation takes the
/// maximum of its FLOPs at (efficiency times the kind's peak) and its bytes at
/// what is reached of the memory's bandwidth, after the start of its kernel. An
/// exchange takes its latency plus the time of the link or network that carries
/// the most bytes in one direction. The cluster must outlive the model.
std::unique_ptr<CostModel>
createRooflineModel(const Cluster &cluster,
                    CollectiveRule rule = CollectiveRule::Own);

} // namespace whale

#endif // WHALE_STEP_COSTMODEL_H
