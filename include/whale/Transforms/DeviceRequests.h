//===- DeviceRequests.h - The devices of a module's TaskGraphs --*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_DEVICEREQUESTS_H
#define WHALE_TRANSFORMS_DEVICEREQUESTS_H

#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Planner/VirtualDevices.h"

#include "mlir/IR/BuiltinOps.h"

namespace whale {

/// On the module: the devices of another step's TaskGraphs, with which this one
/// has tensors in common, lists of device numbers by name.
inline constexpr llvm::StringLiteral kLikeDevicesAttr = "whale.like_devices";

/// The cluster of the module. Emits an error if there is none.
mlir::FailureOr<Cluster> getCluster(mlir::ModuleOp module);

/// The devices that the TaskGraphs of the module get, in their order. Those
/// with a name that a TaskGraph of as many devices has in a step with which
/// this one has tensors in common get the devices of that one.
llvm::Expected<std::vector<VirtualDevice>>
virtualDevicesOf(mlir::ModuleOp module, const Cluster &cluster,
                 llvm::ArrayRef<DeviceRequest> requests);

/// The same of a TaskGraph for each strategy.
llvm::Expected<std::vector<VirtualDevice>>
virtualDevicesOf(mlir::ModuleOp module, const Cluster &cluster,
                 llvm::ArrayRef<StrategyAttr> strategies);

} // namespace whale

#endif // WHALE_TRANSFORMS_DEVICEREQUESTS_H
