//===- AssignDevices.cpp - Give each TaskGraph its virtual device --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module with a cluster, and task graphs in @main. Out: a
// whale.virtual_device for each name of task graphs with a strategy, which they
// refer to; a remark lists its devices.
//
// The names are listed in the order of their first use, with the devices they
// ask for; the planner divides the cluster among them (DeviceRequests.h).
// Scopes in loops and branches ask, too, but must get the devices of the task
// graph around them, else they are an error; the default strategy gives way.
// Cost: two walks over all operations for the names, and one in which each
// operation with a strategy of its own compares its sorted devices with those
// of its task graph; besides, the planner's.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/SymbolTable.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Report/TextTable.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/DeviceRequests.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/Plans.h"
#include "whale/Transforms/TaskGraphNames.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_ASSIGNDEVICES
#include "whale/Transforms/Placed/Passes.h.inc"

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

    findTaskGraphs(*function);
    if (taskGraphs.empty())
      return;
    SmallVector<DeviceRequest> requests;
    for (auto &[name, uses] : taskGraphs)
      requests.push_back(
          {name, uses.strategy.getDevices(), !uses.strategy.getName().empty()});
    SmallVector<StringRef> names;
    for (const DeviceRequest &request : requests)
      names.push_back(request.name);
    if (failed(checkPlannedNames(getOperation(), names)))
      return signalPassFailure();
    int64_t count = cluster->devices.size();
    llvm::Expected<std::vector<VirtualDevice>> devices =
        virtualDevicesOf(module, *cluster, requests);
    if (!devices) {
      // A TaskGraph that needs too many is at fault alone.
      auto *tooLarge = llvm::find_if(requests, [&](const DeviceRequest &r) {
        return r.devices && *r.devices > count;
      });
      auto *at = tooLarge == requests.end() ? taskGraphs.begin()
                                            : taskGraphs.find(tooLarge->name);
      emitError(at->second.first->getLoc())
          << llvm::toString(devices.takeError());
      return signalPassFailure();
    }

    if (failed(recordPlan(*devices)))
      return signalPassFailure();
    OpBuilder builder(*function);
    for (auto [index, entry] : llvm::enumerate(taskGraphs)) {
      auto &[name, uses] = entry;
      const VirtualDevice &lists = (*devices)[index];
      emitRemark(uses.first->getLoc())
          << "task graph '" << name << "' is on devices " << describe(lists);
      if (uses.graphs.empty())
        continue;
      std::string symbol = ("vd" + Twine(index)).str();
      VirtualDeviceOp::create(builder, function->getLoc(), symbol, lists);
      for (TaskGraphOp graph : uses.graphs)
        graph.setVirtualDevice(symbol);
    }
    if (failed(placeNested(*function, *devices, count)))
      return signalPassFailure();
  }

private:
  /// Where a TaskGraph is used.
  struct Uses {
    StrategyAttr strategy;
    Operation *first = nullptr;
    SmallVector<TaskGraphOp> graphs;
  };

  bool isDefault(StrategyAttr strategy) {
    return strategy == getOperation()->getAttr(kDefaultStrategyAttr);
  }

  /// Task graphs of one name share devices; the first use sets the order, that
  /// in a micro-batch where there are any: what is computed before them comes
  /// from all over the step. One without a strategy needs no devices: all of
  /// them compute it.
  void findTaskGraphs(func::FuncOp function) {
    taskGraphs.clear();
    names = TaskGraphNames(
        function,
        getOperation()->getAttrOfType<StrategyAttr>(kDefaultStrategyAttr));
    auto add = [&](StrategyAttr strategy, StringRef name,
                   Operation *op) -> Uses & {
      Uses &uses = taskGraphs[name.str()];
      if (!uses.first)
        uses.first = op;
      if (!uses.strategy || !uses.strategy.getDevices())
        uses.strategy = strategy;
      return uses;
    };
    for (bool inside : {true, false})
      function->walk<WalkOrder::PreOrder>([&](Operation *op) {
        if ((op->getParentOfType<MicroBatchesOp>() != nullptr) != inside)
          return;
        auto nested = op->getAttrOfType<StrategyAttr>(kStrategyAttr);
        if (auto graph = dyn_cast<TaskGraphOp>(op)) {
          if (StrategyAttr strategy = graph.getStrategyAttr())
            add(strategy, graph.getName(), op).graphs.push_back(graph);
        } else if (nested && !isDefault(nested)) {
          add(nested, names.nameOf(nested), op);
        }
      });
  }

  /// Adds the devices to the plan. All that a given one says must have come
  /// true.
  LogicalResult recordPlan(ArrayRef<VirtualDevice> devices) {
    ModuleOp module = getOperation();
    if (std::optional<Plan> given = getGivenPlan(module))
      for (const Plan::Devices &each : given->devices) {
        auto *it = taskGraphs.find(each.taskGraph);
        if (it == taskGraphs.end())
          return emitPlanError(module, each.place)
                 << "decisions.devices: the step has no task graph '"
                 << each.taskGraph << "'";
        if (devices[it - taskGraphs.begin()] != each.groups)
          return emitPlanError(module, each.place)
                 << "decisions.devices." << each.taskGraph
                 << ": must be on devices "
                 << describe(devices[it - taskGraphs.begin()]);
      }
    addToPlan(module, [&](Plan &plan) {
      plan.devices.clear();
      for (auto [entry, lists] : llvm::zip_equal(taskGraphs, devices))
        plan.devices.push_back({entry.first, lists});
    });
    return success();
  }

  /// All operations of a loop or branch are on the devices of its TaskGraph. A
  /// scope inside on the same devices says how they are parallelized, and so
  /// does the default, which gives way where it is on others.
  LogicalResult placeNested(func::FuncOp function,
                            ArrayRef<VirtualDevice> devices, int64_t count) {
    auto devicesOf = [&](StringRef name) -> const VirtualDevice * {
      auto *it = taskGraphs.find(name.str());
      return it == taskGraphs.end() ? nullptr
                                    : &devices[it - taskGraphs.begin()];
    };
    WalkResult result = function->walk([&](Operation *op) {
      auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttr);
      auto graph = op->getParentOfType<TaskGraphOp>();
      if (!strategy || !graph)
        return WalkResult::advance();
      const VirtualDevice *around = devicesOf(graph.getName());
      const VirtualDevice *own = devicesOf(names.nameOf(strategy));
      // Without a strategy all devices compute what is around.
      if (names.nameOf(strategy) == kPythonTaskGraph &&
          (around ? !areSame(*own, *around) : count > 1))
        return emitPythonInside(op, graph);
      if (own && around && areSame(*own, *around))
        return WalkResult::advance();
      if (isDefault(strategy)) {
        op->removeAttr(kStrategyAttr);
        return WalkResult::advance();
      }
      if (!around)
        return WalkResult::advance();
      Operation *holder = op;
      while (holder->getParentOp() != graph)
        holder = holder->getParentOp();
      InFlightDiagnostic error = op->emitError("scope '");
      error << names.nameOf(strategy) << "' is on devices " << describe(*own)
            << ", and a loop or branch is on the devices of one TaskGraph, "
               "here '"
            << graph.getName() << "' on " << describe(*around)
            << "; give the scopes in it the same devices, or write it out; "
               "where a library's loop calls the scopes, as a line search of "
               "optax calls the loss, give it a function without scopes, or "
               "set num_task_graph in their place";
      error.attachNote(holder->getLoc()) << "this is the loop or branch";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  WalkResult emitPythonInside(Operation *op, TaskGraphOp graph) {
    op->emitError("a call into Python whose result the step uses is made on "
                  "device 0, and a loop or branch is on all devices of one "
                  "TaskGraph, here '")
        << graph.getName()
        << "'; call the function outside of the loop or branch, or before the "
           "step; where equinox's error_if raises in a loop, start Python with "
           "EQX_ON_ERROR=nan in its environment, and it gives NaN instead";
    return WalkResult::interrupt();
  }

  /// Whether the groups have the same devices, in any order.
  static bool areSame(VirtualDevice lhs, VirtualDevice rhs) {
    for (VirtualDevice *lists : {&lhs, &rhs})
      for (std::vector<int64_t> &list : *lists)
        llvm::sort(list);
    return lhs == rhs;
  }

  /// The devices of a TaskGraph, a list for each repetition of the group.
  static std::string describe(const VirtualDevice &lists) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::interleaveComma(lists, stream, [&](const std::vector<int64_t> &list) {
      stream << "[" << describeRanges(list) << "]";
    });
    return text;
  }

  llvm::MapVector<std::string, Uses, std::map<std::string, unsigned>>
      taskGraphs;
  TaskGraphNames names;
};

} // namespace
} // namespace whale
