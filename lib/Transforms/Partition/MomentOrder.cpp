//===- MomentOrder.cpp - In which order a rank computes micro-batches -----===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the lists of steps of a loop's order, one for each set of devices. Out:
// one order of task graphs and micro-batches (moments) for all devices.
//
// A step is taken when it is next on all lists that have a part of it, and what
// it needs has been computed. Where all lists wait for one another, the first
// goes on, and what its step needs is computed before it. The items of a device
// are its own in this order; behind each item come the exchanges of what that
// makes, before the first one of a moment those of what enters it. Cost: each
// list's devices are compared with those of each task graph. The next steps of
// all lists are looked at again as long as one can be taken: at most steps
// times lists. The items of a device are linear in the order and in the devices
// of all reshards.
//
//===----------------------------------------------------------------------===//

#include "MomentOrder.h"

#include "mlir/IR/SymbolTable.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Placed/Pipeline.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace whale {

namespace {

/// Merges the lists of a schedule into one order.
class Merger {
public:
  using Item = std::pair<Operation *, int64_t>;

  explicit Merger(MicroBatchesOp loop) {
    for (Region &body : loop.getBodies())
      for (auto graph : body.getOps<TaskGraphOp>())
        producersOf[graph] = findProducers(graph);
    for (auto [index, list] : llvm::enumerate(loop.getOrders())) {
      // What each region has for these devices.
      std::vector<SmallVector<TaskGraphOp>> here(loop.getBodies().size());
      for (auto [body, graphs] : llvm::zip(loop.getBodies(), here))
        for (auto graph : body.getOps<TaskGraphOp>())
          if (VirtualDeviceOp devices = devicesOf(graph);
              devices && llvm::any_of(devices.getDevices(), [&](int64_t it) {
                return llvm::is_contained(list.getDevices(), it);
              }))
            graphs.push_back(graph);
      steps.emplace_back();
      for (const ScheduleStep &step : list.getSteps()) {
        std::vector<Item> &items = steps.back().emplace_back();
        for (TaskGraphOp graph : here[loop.getVariants()[step.microBatch]])
          if (graph.getStep(step.microBatch) == step) {
            items.push_back({graph, step.microBatch});
            turns[items.back()].push_back({index, steps.back().size() - 1});
          }
      }
    }
    next.assign(steps.size(), 0);
  }

  SmallVector<MomentItem> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t list = 0; list < steps.size(); ++list)
        while (next[list] < steps[list].size() && isReady(list)) {
          moved = true;
          take(list);
        }
      // The lists wait for one another: the first goes on, with what it needs.
      for (size_t list = 0; list < steps.size() && !moved; ++list)
        if (next[list] < steps[list].size()) {
          moved = true;
          take(list);
        }
    }
    return std::move(order);
  }

private:
  /// Whether it is the turn of the list's next step on all devices that compute
  /// it, and all that it needs is there.
  bool isReady(size_t list) {
    ArrayRef<Item> items = steps[list][next[list]];
    return llvm::all_of(items, [&](const Item &item) {
      if (done.contains(item))
        return true;
      for (auto [other, step] : turns[item])
        if (next[other] != step)
          return false;
      return llvm::all_of(producersOf[item.first], [&](TaskGraphOp producer) {
        Item needed = {producer, item.second};
        return done.contains(needed) || llvm::is_contained(items, needed) ||
               !turns.count(needed);
      });
    });
  }

  void take(size_t list) {
    for (const Item &item : steps[list][next[list]])
      compute(item);
    ++next[list];
  }

  /// Computes an item after those that it needs.
  void compute(const Item &first) {
    // With the next producer of each.
    SmallVector<std::pair<Item, size_t>> path;
    auto enter = [&](const Item &item) {
      if (done.insert(item).second)
        path.push_back({item, 0});
    };
    enter(first);
    while (!path.empty()) {
      auto &[item, next] = path.back();
      ArrayRef<TaskGraphOp> producers = producersOf[item.first];
      if (next == producers.size()) {
        order.push_back({item.first, item.second});
        path.pop_back();
      } else if (Item needed = {producers[next++], item.second};
                 turns.count(needed)) {
        enter(needed);
      }
    }
  }

  llvm::DenseMap<Operation *, SmallVector<TaskGraphOp>> producersOf;
  /// The items of each step of each list, and how many steps were taken.
  std::vector<std::vector<std::vector<Item>>> steps;
  std::vector<size_t> next;
  /// The lists and steps that have an item.
  llvm::DenseMap<Item, SmallVector<std::pair<size_t, size_t>>> turns;
  llvm::DenseSet<Item> done;
  SmallVector<MomentItem> order;
};

} // namespace

FailureOr<MomentOrder> MomentOrder::create(MicroBatchesOp loop) {
  // An order that forgets work is found here, not by the step's results.
  SymbolTableCollection symbols;
  if (failed(loop.verifySymbolUses(symbols)))
    return failure();
  MomentOrder result(loop);
  if (loop.getOrder())
    result.order = Merger(loop).run();
  return result;
}

SmallVector<MomentItem>
MomentOrder::itemsOf(DeviceId device,
                     llvm::function_ref<bool(ReshardOp)> communicates) const {
  SmallVector<MomentItem> items;
  auto loop = this->loop;
  if (!loop.getOrder()) {
    for (int64_t moment = 0; moment < loop.getNumMoments(); ++moment)
      for (Operation &op : loop.getBody(moment).without_terminator())
        items.push_back({&op, moment});
    return items;
  }
  // What the device does in each region: task graphs, and the exchanges of what
  // they make or of what enters the micro-batch (null).
  llvm::DenseSet<Operation *> own;
  llvm::DenseMap<std::pair<Region *, Operation *>, SmallVector<ReshardOp>>
      exchanges, slices;
  // Task graphs of no stage, which only use what enters the micro-batch: each
  // device computes them.
  llvm::DenseMap<Region *, SmallVector<Operation *>> shared;
  for (Region &body : loop.getBodies())
    for (Operation &op : body.getOps()) {
      if (auto graph = dyn_cast<TaskGraphOp>(op)) {
        VirtualDeviceOp devices = devicesOf(graph);
        if (!devices)
          shared[&body].push_back(graph);
        if (devices && llvm::is_contained(devices.getDevices(), device))
          own.insert(graph);
      }
      auto reshard = dyn_cast<ReshardOp>(op);
      if (!reshard)
        continue;
      Operation *from = reshard.getInput().getDefiningOp<TaskGraphOp>();
      const Placement &source = reshard.getFrom().getValue();
      const Placement &target = reshard.getTo().getValue();
      // A device with an empty share takes part, too.
      bool sends = source.contains(device);
      bool overlaps = llvm::any_of(
          target.devices(), [&](DeviceId it) { return source.contains(it); });
      if (communicates(reshard) && overlaps &&
          (sends || target.contains(device)))
        exchanges[{&body, from}].push_back(reshard);
      else if (sends)
        slices[{&body, from}].push_back(reshard);
    }
  llvm::BitVector hasStarted(loop.getNumMoments()), hasEntered(hasStarted);
  auto add = [&](ArrayRef<ReshardOp> reshards, int64_t moment) {
    for (ReshardOp reshard : reshards)
      items.push_back({reshard, moment});
  };
  auto addShared = [&](int64_t moment) {
    for (Operation *graph : shared.lookup(loop.getBody(moment).getParent()))
      items.push_back({graph, moment});
  };
  for (const MomentItem &item : order) {
    Region *body = item.op->getParentRegion();
    bool isOwn = own.contains(item.op);
    if (!hasStarted[item.moment])
      add(exchanges.lookup({body, nullptr}), item.moment);
    hasStarted.set(item.moment);
    if (isOwn && !hasEntered[item.moment]) {
      add(slices.lookup({body, nullptr}), item.moment);
      addShared(item.moment);
      hasEntered.set(item.moment);
    }
    if (isOwn)
      items.push_back(item);
    // What is moved in one turn comes first: nothing waits for the rest.
    add(exchanges.lookup({body, item.op}), item.moment);
    if (isOwn)
      add(slices.lookup({body, item.op}), item.moment);
  }
  for (unsigned moment = 0; moment < hasEntered.size(); ++moment)
    if (!hasEntered[moment])
      addShared(moment);
  return items;
}

} // namespace whale
