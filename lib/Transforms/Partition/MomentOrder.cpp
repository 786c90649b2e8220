//===- MomentOrder.cpp - In which order a rank computes micro-batches -----===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MomentOrder.h"

#include "../Placed/Pipeline.h"
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

/// What some devices do, in order.
struct WrittenList {
  llvm::DenseSet<int64_t> devices;
  SmallVector<WrittenStep> steps;
};

FailureOr<WrittenList> parseList(MicroBatchesOp loop, Attribute attribute) {
  auto stage = dyn_cast<DictionaryAttr>(attribute);
  auto devices =
      stage ? stage.getAs<DenseI64ArrayAttr>("devices") : DenseI64ArrayAttr();
  auto text = stage ? stage.getAs<StringAttr>("steps") : StringAttr();
  FailureOr<SmallVector<WrittenStep>> steps = failure();
  if (devices && text)
    steps = parseSteps(text);
  if (failed(steps))
    return loop.emitError("schedule: a stage is {devices = array<i64: "
                          "...>, steps = \"F0 B0 ...\"}, not ")
           << attribute;
  for (const WrittenStep &step : *steps)
    if (step.moment < 0 || step.moment >= loop.getNumMoments())
      return loop.emitError("schedule: there is no micro-batch ")
             << step.moment;
  WrittenList list;
  list.devices.insert(devices.asArrayRef().begin(), devices.asArrayRef().end());
  list.steps = std::move(*steps);
  return list;
}

bool matches(TaskGraphOp graph, const WrittenStep &step) {
  char kind = graph.getPhase() == Phase::Forward    ? 'F'
              : graph->hasAttr(kWeightGradientAttr) ? 'W'
                                                    : 'B';
  auto chunk = graph->getAttrOfType<IntegerAttr>(kChunkAttr);
  return kind == step.kind && (chunk ? chunk.getInt() : 0) == step.chunk;
}

/// Merges the lists of a schedule into one order.
class Merger {
public:
  using Item = std::pair<Operation *, int64_t>;

  Merger(MicroBatchesOp loop, ArrayRef<WrittenList> lists)
      : loop(loop), next(lists.size(), 0) {
    for (Region &body : loop.getBodies())
      for (auto graph : body.getOps<TaskGraphOp>())
        producersOf[graph] = findProducers(graph);
    for (auto [index, list] : llvm::enumerate(lists)) {
      // What each region has for these devices.
      std::vector<SmallVector<TaskGraphOp>> here(loop.getBodies().size());
      for (auto [body, graphs] : llvm::zip(loop.getBodies(), here))
        for (auto graph : body.getOps<TaskGraphOp>())
          if (VirtualDeviceOp devices = devicesOf(graph);
              devices && llvm::any_of(devices.getDevices(), [&](int64_t it) {
                return list.devices.contains(it);
              }))
            graphs.push_back(graph);
      steps.emplace_back();
      for (const WrittenStep &step : list.steps) {
        std::vector<Item> &items = steps.back().emplace_back();
        for (TaskGraphOp graph : here[loop.getVariants()[step.moment]])
          if (matches(graph, step)) {
            items.push_back({graph, step.moment});
            turns[items.back()].push_back({index, steps.back().size() - 1});
          }
      }
    }
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

  MicroBatchesOp loop;
  llvm::DenseMap<Operation *, SmallVector<TaskGraphOp>> producersOf;
  /// The items of each step of each list, and how many steps were taken.
  std::vector<std::vector<std::vector<Item>>> steps;
  std::vector<size_t> next;
  /// The lists and steps in which an item stands.
  llvm::DenseMap<Item, SmallVector<std::pair<size_t, size_t>>> turns;
  llvm::DenseSet<Item> done;
  SmallVector<MomentItem> order;
};

} // namespace

FailureOr<MomentOrder> MomentOrder::create(MicroBatchesOp loop) {
  MomentOrder result(loop);
  auto attribute = loop->getAttrOfType<ArrayAttr>(kScheduleAttr);
  if (!attribute)
    return result;
  result.isScheduled = true;
  SmallVector<WrittenList> lists;
  for (Attribute entry : attribute) {
    FailureOr<WrittenList> list = parseList(loop, entry);
    if (failed(list))
      return failure();
    lists.push_back(std::move(*list));
  }
  result.order = Merger(loop, lists).run();

  // A schedule that forgets work is found here, not by its results.
  llvm::DenseSet<std::pair<Operation *, int64_t>> done;
  for (const MomentItem &item : result.order)
    done.insert({item.op, item.moment});
  for (int64_t moment = 0; moment < loop.getNumMoments(); ++moment)
    for (auto graph : loop.getBody(moment).getOps<TaskGraphOp>())
      if (VirtualDeviceOp devices = devicesOf(graph);
          devices && !done.contains({graph, moment}))
        return graph.emitError("schedule: device ")
               << devices.getDevices().front() << " never computes TaskGraph '"
               << graph.getName() << "' for micro-batch " << moment;
  return result;
}

SmallVector<MomentItem>
MomentOrder::itemsOf(DeviceId device,
                     llvm::function_ref<bool(ReshardOp)> communicates) const {
  SmallVector<MomentItem> items;
  auto loop = this->loop;
  if (!isScheduled) {
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
  for (Region &body : loop.getBodies())
    for (Operation &op : body.getOps()) {
      if (auto graph = dyn_cast<TaskGraphOp>(op)) {
        VirtualDeviceOp devices = devicesOf(graph);
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
  for (const MomentItem &item : order) {
    Region *body = item.op->getParentRegion();
    bool isOwn = own.contains(item.op);
    if (!hasStarted[item.moment])
      add(exchanges.lookup({body, nullptr}), item.moment);
    hasStarted.set(item.moment);
    if (isOwn && !hasEntered[item.moment]) {
      add(slices.lookup({body, nullptr}), item.moment);
      hasEntered.set(item.moment);
    }
    if (isOwn)
      items.push_back(item);
    // What is moved in one turn comes first: nobody waits for the rest.
    add(exchanges.lookup({body, item.op}), item.moment);
    if (isOwn)
      add(slices.lookup({body, item.op}), item.moment);
  }
  return items;
}

} // namespace whale
