//===- MomentOrder.cpp - In which order a rank computes micro-batches -----===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MomentOrder.h"

#include "mlir/IR/SymbolTable.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace whale {

namespace {

/// One step of a schedule, as it is written.
struct WrittenStep {
  char kind = 'F';
  int64_t chunk = 0, moment = 0;
};

/// The steps of a text like "F0 B0" or "F0.0 F1.0".
FailureOr<SmallVector<WrittenStep>> parseSteps(StringRef text) {
  SmallVector<WrittenStep> steps;
  for (StringRef word : llvm::split(text, ' ')) {
    WrittenStep step;
    if (word.empty() || !StringRef("FBW").contains(word.front()))
      return failure();
    step.kind = word.front();
    word = word.drop_front();
    if (word.contains('.')) {
      auto [chunk, moment] = word.split('.');
      if (chunk.getAsInteger(10, step.chunk))
        return failure();
      word = moment;
    }
    if (word.getAsInteger(10, step.moment))
      return failure();
    steps.push_back(step);
  }
  return steps;
}

/// The work of one device.
class DeviceOrder {
public:
  DeviceOrder(MicroBatchesOp loop, DeviceId device)
      : loop(loop), device(device), hasStarted(loop.getNumMoments()) {}

  LogicalResult run(ArrayRef<WrittenStep> steps) {
    for (const WrittenStep &step : steps) {
      if (step.moment < 0 || step.moment >= loop.getNumMoments())
        return loop.emitError("schedule: there is no micro-batch ")
               << step.moment;
      if (!hasStarted[step.moment])
        sendArguments(step.moment);
      hasStarted[step.moment] = true;
      for (auto graph : loop.getBody(step.moment).getOps<TaskGraphOp>())
        if (matches(graph, step))
          compute(graph, step.moment);
    }
    return verifyComplete();
  }

  SmallVector<MomentItem> items;

private:
  bool isOnDevice(TaskGraphOp graph) {
    if (!graph.getVirtualDeviceAttr())
      return false;
    auto devices = SymbolTable::lookupNearestSymbolFrom<VirtualDeviceOp>(
        graph, graph.getVirtualDeviceAttr());
    return devices && llvm::is_contained(devices.getDevices(), device);
  }

  bool matches(TaskGraphOp graph, const WrittenStep &step) {
    char kind = graph.getPhase() == Phase::Forward    ? 'F'
                : graph->hasAttr(kWeightGradientAttr) ? 'W'
                                                      : 'B';
    auto chunk = graph->getAttrOfType<IntegerAttr>(kChunkAttr);
    return kind == step.kind && (chunk ? chunk.getInt() : 0) == step.chunk &&
           isOnDevice(graph);
  }

  void compute(TaskGraphOp graph, int64_t moment) {
    if (!done.insert({graph, moment}).second)
      return;
    items.push_back({graph, moment});
    for (auto reshard : loop.getBody(moment).getOps<ReshardOp>())
      if (reshard.getInput().getDefiningOp() == graph)
        send(reshard, moment);
  }

  /// What enters a micro-batch here and is used elsewhere.
  void sendArguments(int64_t moment) {
    for (auto reshard : loop.getBody(moment).getOps<ReshardOp>())
      if (!reshard.getInput().getDefiningOp<TaskGraphOp>())
        send(reshard, moment);
  }

  void send(ReshardOp reshard, int64_t moment) {
    if (reshard.getFrom().getValue().holds(device))
      items.push_back({reshard, moment});
  }

  /// A schedule that forgets work is found here, not by its results.
  LogicalResult verifyComplete() {
    for (int64_t moment = 0; moment < loop.getNumMoments(); ++moment)
      for (auto graph : loop.getBody(moment).getOps<TaskGraphOp>())
        if (isOnDevice(graph) && !done.contains({graph, moment}))
          return graph.emitError("schedule: device ")
                 << device << " never computes TaskGraph '" << graph.getName()
                 << "' for micro-batch " << moment;
    return success();
  }

  MicroBatchesOp loop;
  DeviceId device;
  llvm::BitVector hasStarted;
  llvm::DenseSet<std::pair<Operation *, int64_t>> done;
};

} // namespace

FailureOr<SmallVector<MomentItem>> orderMoments(MicroBatchesOp loop,
                                                DeviceId device) {
  if (auto stages = loop->getAttrOfType<ArrayAttr>(kScheduleAttr))
    for (Attribute attribute : stages) {
      auto stage = dyn_cast<DictionaryAttr>(attribute);
      auto devices = stage ? stage.getAs<DenseI64ArrayAttr>("devices")
                           : DenseI64ArrayAttr();
      auto text = stage ? stage.getAs<StringAttr>("steps") : StringAttr();
      FailureOr<SmallVector<WrittenStep>> steps = failure();
      if (devices && text)
        steps = parseSteps(text);
      if (failed(steps))
        return loop.emitError("schedule: a stage is {devices = array<i64: "
                              "...>, steps = \"F0 B0 ...\"}, not ")
               << attribute;
      if (!llvm::is_contained(devices.asArrayRef(), device))
        continue;
      DeviceOrder order(loop, device);
      if (failed(order.run(*steps)))
        return failure();
      return order.items;
    }
  SmallVector<MomentItem> items;
  for (int64_t moment = 0; moment < loop.getNumMoments(); ++moment)
    for (Operation &op : loop.getBody(moment).without_terminator())
      items.push_back({&op, moment});
  return items;
}

} // namespace whale
