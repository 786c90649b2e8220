//===- AssignDevices.cpp - Give each TaskGraph its virtual device --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceRequests.h"
#include "mlir/IR/SymbolTable.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_ASSIGNDEVICES
#include "whale/Transforms/Passes.h.inc"

namespace {

struct AssignDevicesPass : impl::AssignDevicesBase<AssignDevicesPass> {
  using AssignDevicesBase::AssignDevicesBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> function = getMainFunction(module);
    if (failed(function))
      return signalPassFailure();
    FailureOr<Cluster> cluster = getCluster(module);
    if (failed(cluster))
      return signalPassFailure();

    // Task graphs of one name share devices; the first use sets the order,
    // that in a micro-batch where there are any: what is computed before them
    // comes from all over the step. One without a strategy asks for no devices:
    // all of them compute it.
    llvm::MapVector<StringRef, SmallVector<TaskGraphOp>> graphs;
    for (bool inside : {true, false})
      function->walk([&](TaskGraphOp graph) {
        bool isInside = graph->getParentOfType<MicroBatchesOp>() != nullptr;
        if (graph.getStrategyAttr() && isInside == inside)
          graphs[graph.getName()].push_back(graph);
      });
    if (graphs.empty())
      return;
    SmallVector<DeviceRequest> requests;
    for (auto &[name, pieces] : graphs) {
      DeviceRequest request{name.str(), std::nullopt};
      for (TaskGraphOp graph : pieces)
        if (!request.devices)
          request.devices = graph.getStrategyAttr().getDevices();
      requests.push_back(std::move(request));
    }
    int64_t count = cluster->devices.size();
    llvm::Expected<std::vector<VirtualDevice>> devices =
        virtualDevicesOf(module, *cluster, requests);
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
      explain(entry.second.front(), (*devices)[index]);
    }
  }

private:
  /// The devices of a TaskGraph, a list for each repetition of the group.
  static void explain(TaskGraphOp graph, const VirtualDevice &lists) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::interleaveComma(lists, stream, [&](ArrayRef<int64_t> list) {
      stream << "[";
      llvm::interleaveComma(list, stream);
      stream << "]";
    });
    emitRemark(graph.getLoc())
        << "task graph '" << graph.getName() << "' is on devices " << text;
  }
};

} // namespace
} // namespace whale
