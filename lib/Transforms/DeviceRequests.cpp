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

llvm::Expected<std::vector<VirtualDevice>>
virtualDevicesOf(ModuleOp module, const Cluster &cluster,
                 ArrayRef<DeviceRequest> requests) {
  const auto *python =
      llvm::find_if(requests, [](const DeviceRequest &request) {
        return request.name == kPythonTaskGraph;
      });
  if (python != requests.end()) {
    auto place = python - requests.begin();
    SmallVector<DeviceRequest> others(requests);
    others.erase(others.begin() + place);
    std::vector<VirtualDevice> devices;
    if (!others.empty()) {
      auto found = virtualDevicesOf(module, cluster, others);
      if (!found)
        return found.takeError();
      devices = std::move(*found);
    }
    devices.insert(devices.begin() + place, VirtualDevice{{0}});
    return devices;
  }
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

} // namespace whale
