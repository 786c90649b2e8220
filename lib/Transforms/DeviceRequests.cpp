//===- DeviceRequests.cpp - The devices of a module's TaskGraphs ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/DeviceRequests.h"

#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Plans.h"

using namespace mlir;

namespace whale {

FailureOr<Cluster> getCluster(ModuleOp module) {
  auto clusters = module.getOps<ClusterOp>();
  if (clusters.empty())
    return module.emitError(
        "has no whale.cluster; run whale-load-cluster first");
  return (*clusters.begin()).getCluster();
}

/// The devices of a request that don't depend on the others; empty if they do.
using FixedDevices = llvm::function_ref<VirtualDevice(const DeviceRequest &)>;

/// The devices of requests with fixed ones, and those that `assign` gives the
/// others, among which these are not.
static llvm::Expected<std::vector<VirtualDevice>>
assignOthers(ArrayRef<DeviceRequest> requests, FixedDevices findFixed,
             llvm::function_ref<llvm::Expected<std::vector<VirtualDevice>>(
                 ArrayRef<DeviceRequest>)>
                 assign) {
  std::vector<VirtualDevice> devices;
  SmallVector<DeviceRequest> others;
  for (const DeviceRequest &request : requests) {
    devices.push_back(findFixed(request));
    if (devices.back().empty())
      others.push_back(request);
  }
  if (others.empty() && !requests.empty())
    return devices;
  auto found = assign(others);
  if (!found)
    return found.takeError();
  auto next = found->begin();
  for (VirtualDevice &device : devices)
    if (device.empty())
      device = std::move(*next++);
  return devices;
}

/// What the module says of a TaskGraph of another step; empty if this is none
/// of its, or asks for another number of devices.
static VirtualDevice findLikeDevices(ModuleOp module,
                                     const DeviceRequest &request) {
  VirtualDevice groups;
  auto likes = module->getAttrOfType<DictionaryAttr>(kLikeDevicesAttr);
  auto lists = likes && request.isNamed ? likes.getAs<ArrayAttr>(request.name)
                                        : ArrayAttr();
  if (!lists)
    return groups;
  for (auto list : lists.getAsRange<DenseI64ArrayAttr>())
    groups.emplace_back(list.asArrayRef().begin(), list.asArrayRef().end());
  if (request.devices && *request.devices != int64_t(groups.front().size()))
    groups.clear();
  return groups;
}

/// Of those that no plan and no other step has devices for.
static llvm::Expected<std::vector<VirtualDevice>>
groupDevices(ModuleOp module, const Cluster &cluster,
             ArrayRef<DeviceRequest> requests) {
  Config config(module);
  if (auto lists = module->getAttrOfType<ArrayAttr>(kVirtualDevicesAttr)) {
    if (config.allowsUnevenReplicas())
      return llvm::createStringError("cluster.uneven_replicas groups all "
                                     "devices, and wh.cluster says which "
                                     "to use; leave one of them out");
    std::vector<std::vector<int64_t>> own;
    for (auto list : lists.getAsRange<DenseI64ArrayAttr>())
      own.emplace_back(list.asArrayRef().begin(), list.asArrayRef().end());
    return ownVirtualDevices(requests, own, cluster.devices.size());
  }
  VirtualDeviceOptions options;
  options.wholeCluster = config.getNumTaskGraphs() ||
                         config.getSchedule() == ScheduleKind::Interleaved;
  options.unevenReplicas = config.allowsUnevenReplicas();
  options.pipeline =
      options.wholeCluster || config.getNumMicroBatches().value_or(1) > 1;
  options.stageBytes = getMemoryFit(module).stageBytes;
  return virtualDevices(requests, cluster, options);
}

/// Of requests without those for Python.
static llvm::Expected<std::vector<VirtualDevice>>
assignDevices(ModuleOp module, const Cluster &cluster,
              ArrayRef<DeviceRequest> requests) {
  if (std::optional<Plan> plan = getGivenPlan(module);
      plan && !plan->devices.empty()) {
    std::vector<VirtualDevice> devices;
    for (const DeviceRequest &request : requests) {
      auto found = llvm::find_if(plan->devices, [&](const Plan::Devices &each) {
        return each.taskGraph == request.name;
      });
      if (found == plan->devices.end())
        return llvm::createStringError(
            "the plan has no devices for task graph '" + request.name + "'");
      devices.push_back(found->groups);
    }
    return devices;
  }
  // The user's own lists are for all TaskGraphs in their order, and stages that
  // are cut automatically only happen to have the names of others.
  bool isDecided =
      module->hasAttr(kVirtualDevicesAttr) || Config(module).getNumTaskGraphs();
  auto findLike = [&](const DeviceRequest &request) {
    return isDecided ? VirtualDevice() : findLikeDevices(module, request);
  };
  return assignOthers(requests, findLike, [&](auto others) {
    return groupDevices(module, cluster, others);
  });
}

llvm::Expected<std::vector<VirtualDevice>>
virtualDevicesOf(ModuleOp module, const Cluster &cluster,
                 ArrayRef<DeviceRequest> requests) {
  auto findPython = [](const DeviceRequest &request) {
    return request.name == kPythonTaskGraph ? VirtualDevice{{0}}
                                            : VirtualDevice();
  };
  return assignOthers(requests, findPython, [&](auto others) {
    return assignDevices(module, cluster, others);
  });
}

llvm::Expected<std::vector<VirtualDevice>>
virtualDevicesOf(ModuleOp module, const Cluster &cluster,
                 ArrayRef<StrategyAttr> strategies) {
  std::vector<DeviceRequest> requests;
  for (StrategyAttr strategy : strategies)
    requests.push_back({strategy.getName().str(), strategy.getDevices(),
                        !strategy.getName().empty()});
  return virtualDevicesOf(module, cluster, requests);
}

} // namespace whale
