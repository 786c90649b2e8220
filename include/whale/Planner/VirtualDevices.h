//===- VirtualDevices.h - Devices of TaskGraphs -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequential grouping: which devices each TaskGraph gets when TaskGraphs ask
// for numbers of devices.
//

#ifndef WHALE_PLANNER_VIRTUALDEVICES_H
#define WHALE_PLANNER_VIRTUALDEVICES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace whale {

/// What one TaskGraph asks for.
struct DeviceRequest {
  /// Names the TaskGraph in errors.
  std::string name;
  /// How many devices; none means all.
  std::optional<int64_t> devices;
};

struct Cluster;

struct VirtualDeviceOptions {
  /// A group that TaskGraphs share is the whole cluster, not the largest
  /// request (`num_task_graph`, interleaved schedules).
  bool wholeCluster = false;
  /// Devices left over after the last whole group form a smaller one.
  bool unevenReplicas = false;
  /// The TaskGraphs are stages of a pipeline: those in front keep more
  /// micro-batches and get the devices of a group that have more memory.
  bool pipeline = false;
  /// Where that didn't fit: what a device of each stage needs, in bytes. The
  /// stage that needs most gets the devices that have most.
  std::vector<int64_t> stageBytes = {};
};

/// The devices of one TaskGraph: one list for each repetition of the group.
using VirtualDevice = std::vector<std::vector<int64_t>>;

/// Gives each TaskGraph its devices out of `devices` (ids in the order in which
/// they are handed out).
///
/// If the requests d1, d2, ... sum up to at most the number K of devices, a
/// group is that many devices, handed out in turn. If they sum up to more,
/// TaskGraphs share: a group is the largest request, handed out in turn and
/// wrapping round. The group is repeated K / its size times. Where that doesn't
/// divide, and `unevenReplicas` isn't set, the error lists what fits. With it,
/// the r devices left over form a last, smaller group, in which a TaskGraph
/// that asks for d of g devices gets about d * r / g, at least 1.
llvm::Expected<std::vector<VirtualDevice>>
virtualDevices(llvm::ArrayRef<DeviceRequest> requests,
               llvm::ArrayRef<int64_t> devices,
               const VirtualDeviceOptions &options = {});

/// The same for the devices of a cluster in their order. Where TaskGraphs have
/// devices of their own, each gets devices of one node of its group, if enough
/// of those are left: among equals the first, in a pipeline among those with as
/// much memory as the devices next in order.
llvm::Expected<std::vector<VirtualDevice>>
virtualDevices(llvm::ArrayRef<DeviceRequest> requests, const Cluster &cluster,
               const VirtualDeviceOptions &options = {});

/// The user's own virtual devices, `lists` of the devices 0 .. count - 1. Of n
/// TaskGraphs and a multiple of n lists, the i-th takes the lists i, i + n, ...
/// as repetitions of the group; of fewer lists than TaskGraphs, the list i
/// modulo their number. Fails if the numbers don't fit, if a TaskGraph asks for
/// another number of devices than its list has, and at a device that doesn't
/// exist or that a TaskGraph would have twice.
llvm::Expected<std::vector<VirtualDevice>>
ownVirtualDevices(llvm::ArrayRef<DeviceRequest> requests,
                  llvm::ArrayRef<std::vector<int64_t>> lists, int64_t count);

} // namespace whale

#endif // WHALE_PLANNER_VIRTUALDEVICES_H
