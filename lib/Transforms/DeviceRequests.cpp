//===- DeviceRequests.cpp - The devices of a module's TaskGraphs ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceRequests.h"

#include "whale/Planner/Schedule.h"
#include "whale/Transforms/Attributes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace whale {

Attribute getConfig(ModuleOp module, StringRef key) {
  Attribute value = module->getAttr("whale.config");
  for (StringRef part : llvm::split(key, '.')) {
    auto section = dyn_cast_or_null<DictionaryAttr>(value);
    value = section ? section.get(part) : Attribute();
  }
  return value;
}

int64_t getMicroBatches(ModuleOp module) {
  auto count =
      dyn_cast_or_null<IntegerAttr>(getConfig(module, "num_micro_batch"));
  return count ? count.getInt() : 1;
}

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
  auto uneven =
      dyn_cast_or_null<BoolAttr>(getConfig(module, "cluster.uneven_replicas"));
  bool isUneven = uneven && uneven.getValue();
  if (auto lists = module->getAttrOfType<ArrayAttr>("whale.virtual_devices")) {
    if (isUneven)
      return llvm::createStringError("cluster.uneven_replicas groups all "
                                     "devices, and wh.cluster says which "
                                     "to use; leave one of them out");
    std::vector<std::vector<int64_t>> own;
    for (auto list : lists.getAsRange<DenseI64ArrayAttr>())
      own.emplace_back(list.asArrayRef().begin(), list.asArrayRef().end());
    return ownVirtualDevices(requests, own, cluster.devices.size());
  }
  VirtualDeviceOptions options;
  auto schedule =
      dyn_cast_or_null<StringAttr>(getConfig(module, "pipeline.strategy"));
  options.wholeCluster =
      getConfig(module, "num_task_graph") != nullptr ||
      (schedule && parseScheduleKind(schedule) == ScheduleKind::Interleaved);
  options.unevenReplicas = isUneven;
  options.pipeline = options.wholeCluster || getMicroBatches(module) > 1;
  if (auto bytes = module->getAttrOfType<DenseI64ArrayAttr>(kStageBytesAttr))
    options.stageBytes = bytes.asArrayRef().vec();
  return virtualDevices(requests, cluster, options);
}

} // namespace whale
