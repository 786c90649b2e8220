//===- PlanSummary.cpp - What the compiler decided --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanSummary.h"

#include "ClassEmitter.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Step/Costs.h"
#include "whale/Step/StepTimeline.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Plans.h"
#include "whale/Transforms/ScopeNames.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace mlir;

namespace whale {

static std::string print(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

void PlanSummary::addInput(ModuleOp module) {
  if (std::optional<int64_t> count = Config(module).getNumMicroBatches())
    plan["micro_batches"] = *count;
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main)
    return;
  for (BlockArgument argument : main.getArguments())
    if (auto dim = main.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                      kBatchDimAttr)) {
      plan["samples"] =
          cast<ShapedType>(argument.getType()).getDimSize(dim.getInt());
      return;
    }
}

/// The operations that compute most, of all TaskGraphs of a name.
static llvm::StringMap<Operation *> findHeaviest(ModuleOp module) {
  llvm::StringMap<std::pair<int64_t, Operation *>> most;
  module.walk([&](TaskGraphOp graph) {
    auto &[flops, heaviest] = most[graph.getName()];
    for (Operation &op : graph.getBody().front().without_terminator())
      if (int64_t own = opFlops(&op); own > flops)
        std::tie(flops, heaviest) = std::pair(own, &op);
  });
  llvm::StringMap<Operation *> heaviest;
  for (const auto &entry : most)
    if (Operation *op = entry.second.second)
      heaviest[entry.first()] = op;
  return heaviest;
}

/// Which part of an operation's work each of `devices` does: of its elements,
/// the part of the operand or result that the device has least of. One number
/// where all do as much.
static Json describeShares(Operation *op, ArrayRef<int64_t> devices) {
  llvm::DenseMap<int64_t, double> parts;
  for (Value value :
       llvm::concat<Value>(SmallVector<Value>(op->getOperands()),
                           SmallVector<Value>(op->getResults()))) {
    PlacementAttr attribute = getPlacement(value);
    if (!attribute)
      continue;
    const Placement &placement = attribute.getValue();
    double whole = double(volumeOf(placement.view()));
    for (const Shard &shard : placement.shards()) {
      double part = whole > 0 ? double(shard.box.volume()) / whole : 0;
      double &least = parts.try_emplace(shard.device, part).first->second;
      least = std::min(least, part);
    }
  }
  Json list = Json::array();
  for (int64_t device : devices)
    list.push_back(std::round(parts.lookup(device) * 1e4) / 1e4);
  if (llvm::all_of(list, [&](const Json &one) { return one == list.front(); }))
    list = Json::array({list.front()});
  return list;
}

void PlanSummary::addPlacement(ModuleOp module) {
  if (auto found = module->getAttrOfType<DictionaryAttr>(kScopeNamesAttr)) {
    Json patterns = Json::object();
    for (NamedAttribute pattern : found) {
      Json names = Json::array();
      for (auto name :
           cast<ArrayAttr>(pattern.getValue()).getAsRange<StringAttr>())
        names.push_back(name.str());
      patterns[pattern.getName().str()] = std::move(names);
    }
    plan["scopes"] = std::move(patterns);
  }
  Json graphs = Json::array();
  // Micro-batches and phases share the work alike.
  llvm::StringMap<Operation *> heaviest = findHeaviest(module);
  module.walk([&](TaskGraphOp op) {
    Json json;
    json["name"] = op.getName().str();
    json["phase"] = stringifyPhase(op.getPhase()).str();
    if (std::optional<Attribute> strategy = op.getStrategy())
      json["strategy"] = print(*strategy);
    if (std::optional<StringRef> device = op.getVirtualDevice())
      if (auto devices = module.lookupSymbol<VirtualDeviceOp>(*device)) {
        Json groups = Json::array();
        for (size_t i = 0; i < devices.getNumGroups(); ++i)
          groups.push_back(toJson(devices.getGroup(i)));
        json["devices"] = std::move(groups);
        if (auto found = heaviest.find(op.getName()); found != heaviest.end()) {
          json["shares"] = describeShares(found->second, devices.getDevices());
          heaviest.erase(found);
        }
      }
    if (op.getFlops())
      json["flops"] = *op.getFlops();
    if (op.getBytes())
      json["bytes"] = *op.getBytes();
    graphs.push_back(std::move(json));
  });
  plan["task_graphs"] = std::move(graphs);

  Json arguments = Json::array();
  if (auto main = module.lookupSymbol<func::FuncOp>("main"))
    for (BlockArgument argument : main.getArguments()) {
      auto placement = main.getArgAttrOfType<PlacementAttr>(
          argument.getArgNumber(), "whale.placement");
      arguments.push_back(
          {{"label", getLabel(argument.getLoc())},
           {"placement", placement ? Json(placement.getValue().str()) : Json()},
           {"bytes", getTensorBytes(argument.getType())}});
    }
  plan["arguments"] = std::move(arguments);
}

void PlanSummary::addDecisions(ModuleOp module) {
  plan["decisions"] = whale::toJson(getPlan(module));
}

std::string PlanSummary::str() const {
  Json all = Json::parse(system::printJson(plan));
  Json sums = Json::object();
  for (const auto &[name, value] : all.items())
    if (name != "decisions")
      sums[name] = checksumOf(value);
  all["checksums"] = std::move(sums);
  return all.dump();
}

/// How often a step computes an operation, as far as that is known.
static int64_t countRuns(Operation *op) {
  int64_t runs = 1;
  for (auto loop = op->getParentOfType<stablehlo::WhileOp>(); loop;
       loop = loop->getParentOfType<stablehlo::WhileOp>())
    runs = multiplyCosts(runs, tripCount(loop).value_or(1));
  return runs;
}

void PlanSummary::addCollectives(ModuleOp module) {
  std::map<std::string, std::pair<int64_t, int64_t>> kinds;
  // Of each channel, the class whose operations are counted: those of the
  // others are the same collectives.
  llvm::DenseMap<uint64_t, ScheduleOp> counted;
  Json classes = Json::array();
  for (ScheduleOp schedule : getRankClasses(module)) {
    classes.push_back(toJson(schedule.getRanks()));
    schedule.walk([&](CollectiveOp op) {
      if (counted.try_emplace(op.getChannel(), schedule).first->second !=
          schedule)
        return;
      auto &[count, bytes] = kinds[op->getName().stripDialect().str()];
      Value value = op.getInput() ? op.getInput() : op.getOutput();
      Type element = cast<ShapedType>(value.getType()).getElementType();
      int64_t runs = countRuns(op);
      // Parts of one transfer count once.
      if (!op.getWith())
        count = addCosts(count, runs);
      bytes = addCosts(
          bytes, multiplyCosts(runs, volumeOf(op.getFrom().getValue().view()) *
                                         getElementBytes(element)));
    });
  }
  Json collectives = Json::object();
  for (const auto &[kind, total] : kinds)
    collectives[kind] = {{"count", total.first}, {"bytes", total.second}};
  plan["rank_classes"] = std::move(classes);
  plan["collectives"] = std::move(collectives);
}

static Json describeNeed(const MemoryNeed &need) {
  int64_t others = need.bytes - need.argumentBytes - need.resultBytes -
                   need.constantBytes - need.scratchBytes;
  Json held = Json::object();
  for (auto [what, bytes] :
       {std::pair{"arguments", need.argumentBytes},
        {"results that replace no argument", need.resultBytes},
        {"constants", need.constantBytes},
        {"activations and gradients", others},
        {"scratch of products and convolutions", need.scratchBytes}})
    if (bytes > 0)
      held[what] = bytes;
  return held;
}

/// Classes of devices beyond the first ones have no picture.
static constexpr size_t mostPictures = 16;

void PlanSummary::addDevices(const format::Program &program,
                             const ModelledStep &step, const Cluster &cluster,
                             ArrayRef<MemoryNeed> needs) {
  plan["step_time_s"] = step.seconds;
  StepTimeline timeline(program, step);
  Json devices = Json::array();
  for (const auto &[number, ranks] : llvm::enumerate(step.ranks)) {
    int64_t first = ranks.ranks.front();
    bool hasPicture = number < mostPictures && step.seconds > 0;
    Json json = hasPicture ? timeline.describe(ranks)
                           : StepTimeline::describeSeconds(ranks);
    json["kind"] = cluster.kindOf(first).name;
    json["memory_bytes"] = cluster.kindOf(first).memoryBytes;
    if (!needs.empty()) {
      json["peak_memory_bytes"] = needs[first].bytes;
      json["memory"] = describeNeed(needs[first]);
      if (needs[first].hostBytes > 0)
        json["host_memory_bytes"] = needs[first].hostBytes;
    }
    devices.push_back(std::move(json));
  }
  plan["devices"] = std::move(devices);
  timeline.addNames(plan);
  plan["links"] = describeLinks(program, cluster, step);
}

} // namespace whale
