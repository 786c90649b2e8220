//===- VirtualDevices.h - Devices of TaskGraphs -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequential grouping: assigns devices to TaskGraphs by the number of devices
// that each requests.
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

/// The request of one TaskGraph.
struct DeviceRequest {
  /// Name of the TaskGraph, for errors.
  std::string name;
  /// Number of devices; nullopt means all.
  std::optional<int64_t> devices;
  /// Whether the name is one that the user has given.
  bool isNamed = false;
};

struct Cluster;

struct VirtualDeviceOptions {
  /// If TaskGraphs share devices, the group is the whole cluster, not the
  /// largest request (`num_task_graph`, interleaved schedules).
  bool wholeCluster = false;
  /// Devices that remain after the last whole group form a smaller one.
  bool unevenReplicas = false;
  /// The TaskGraphs are stages of a pipeline: earlier stages keep more
  /// micro-batches and get the devices of a group that have more memory.
  bool pipeline = false;
  /// Set if that didn't fit: bytes that a device of each stage needs. The stage
  /// that needs most gets the devices that have most.
  std::vector<int64_t> stageBytes = {};
};

/// The devices of one TaskGraph: one list for each repetition of the group.
using VirtualDevice = std::vector<std::vector<int64_t>>;

/// Returns the devices of each TaskGraph, taken from `devices` (ids in the
/// order of assignment).
///
/// If the requests d1, d2, ... sum up to at most the number K of devices, a
/// group has that many devices, assigned consecutively. If they sum up to more,
/// TaskGraphs share: a group has as many devices as the largest request,
/// assigned consecutively and wrapping round. The group is repeated K / its
/// size times. If that doesn't divide, and `unevenReplicas` isn't set, the
/// error lists the sizes that fit. If it is set, the r remaining devices form a
/// last, smaller group, in which a TaskGraph that requests d of g devices gets
/// about d * r / g, at least 1.
llvm::Expected<std::vector<VirtualDevice>>
virtualDevices(llvm::ArrayRef<DeviceRequest> requests,
               llvm::ArrayRef<int64_t> devices,
               const VirtualDeviceOptions &options = {});

/// The same for the devices of a cluster in their order. If TaskGraphs don't
/// share devices, each gets devices of one node of its group, if enough of
/// those remain: the first ones if all are equal; in a pipeline, ones with as
/// much memory as the next devices in order.
llvm::Expected<std::vector<VirtualDevice>>
virtualDevices(llvm::ArrayRef<DeviceRequest> requests, const Cluster &cluster,
               const VirtualDeviceOptions &options = {});

/// Returns the virtual devices that the user configured: `lists` of the devices
/// 0 .. count - 1. With n TaskGraphs and a multiple of n lists, TaskGraph i
/// takes the lists i, i + n, ... as repetitions of the group; with fewer lists
/// than TaskGraphs, the list i modulo the number of lists. Fails if the numbers
/// don't fit, if a TaskGraph requests another number of devices than its list
/// has, or if a device doesn't exist or would be in one TaskGraph twice.
llvm::Expected<std::vector<VirtualDevice>>
ownVirtualDevices(llvm::ArrayRef<DeviceRequest> requests,
                  llvm::ArrayRef<std::vector<int64_t>> lists, int64_t count);

} // namespace whale

#endif // WHALE_PLANNER_VIRTUALDEVICES_H
