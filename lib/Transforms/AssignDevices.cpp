//===- AssignDevices.cpp - Give each TaskGraph its virtual device --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/SymbolTable.h"
#include "whale/Planner/Cluster.h"
#include "whale/Planner/VirtualDevices.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_ASSIGNDEVICES
#include "whale/Transforms/Passes.h.inc"

namespace {

/// Whether the module's whale.config has this entry, and not as false. A dot
/// leads into a section.
bool hasConfig(ModuleOp module, StringRef key) {
  Attribute value = module->getAttr("whale.config");
  for (StringRef part : llvm::split(key, '.')) {
    auto section = dyn_cast_or_null<DictionaryAttr>(value);
    value = section ? section.get(part) : Attribute();
  }
  auto flag = dyn_cast_or_null<BoolAttr>(value);
  return flag ? flag.getValue() : value != nullptr;
}

struct AssignDevicesPass : impl::AssignDevicesBase<AssignDevicesPass> {
  using AssignDevicesBase::AssignDevicesBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> function = getMainFunction(module);
    if (failed(function))
      return signalPassFailure();
    auto clusters = module.getOps<ClusterOp>();
    if (clusters.empty()) {
      module.emitError("has no whale.cluster; run whale-load-cluster first");
      return signalPassFailure();
    }

    // Task graphs of one name share devices; the first use sets the order.
    llvm::MapVector<StringRef, SmallVector<TaskGraphOp>> graphs;
    function->walk(
        [&](TaskGraphOp graph) { graphs[graph.getName()].push_back(graph); });
    if (graphs.empty())
      return;
    SmallVector<DeviceRequest> requests;
    for (auto &[name, pieces] : graphs) {
      DeviceRequest request{name.str(), std::nullopt};
      for (TaskGraphOp graph : pieces)
        if (StrategyAttr strategy = graph.getStrategyAttr())
          if (!request.devices)
            request.devices = strategy.getDevices();
      requests.push_back(std::move(request));
    }
    VirtualDeviceOptions options;
    options.wholeCluster = hasConfig(module, "num_task_graph");
    options.unevenReplicas = hasConfig(module, "cluster.uneven_replicas");
    int64_t count = (*clusters.begin()).getCluster().devices.size();
    llvm::Expected<std::vector<VirtualDevice>> devices =
        virtualDevices(requests, count, options);
    if (!devices) {
      // A TaskGraph that asks for too many is at fault alone.
      auto *tooLarge = llvm::find_if(requests, [&](const DeviceRequest &r) {
        return r.devices && *r.devices > count;
      });
      TaskGraphOp graph = tooLarge == requests.end()
                              ? graphs.front().second.front()
                              : graphs.find(tooLarge->name)->second.front();
      emitError(graph.getLoc()) << llvm::toString(devices.takeError());
      return signalPassFailure();
    }

    OpBuilder builder(*function);
    for (auto [index, entry] : llvm::enumerate(graphs)) {
      std::string name = ("vd" + Twine(index)).str();
      VirtualDeviceOp::create(builder, function->getLoc(), name,
                              (*devices)[index]);
      for (TaskGraphOp graph : entry.second)
        graph.setVirtualDevice(name);
    }
  }
};

} // namespace
} // namespace whale
