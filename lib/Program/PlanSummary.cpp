//===- PlanSummary.cpp - What the compiler decided --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanSummary.h"

#include "ClassEmitter.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace whale {

static std::string print(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

void PlanSummary::addPlacement(ModuleOp module) {
  Json graphs = Json::array();
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
           {"placement",
            placement ? Json(placement.getValue().str()) : Json()}});
    }
  plan["arguments"] = std::move(arguments);
}

void PlanSummary::addCollectives(ModuleOp module) {
  std::map<std::string, std::pair<int64_t, int64_t>> kinds;
  llvm::DenseSet<uint64_t> seen;
  Json classes = Json::array();
  for (ScheduleOp schedule : getRankClasses(module)) {
    classes.push_back(toJson(schedule.getRanks()));
    schedule.walk([&](CollectiveOp op) {
      if (!seen.insert(op.getChannel()).second)
        return;
      auto &[count, bytes] = kinds[op->getName().stripDialect().str()];
      ++count;
      Value value = op.getInput() ? op.getInput() : op.getOutput();
      Type element = cast<ShapedType>(value.getType()).getElementType();
      bytes +=
          volumeOf(op.getFrom().getValue().view()) * getElementBytes(element);
    });
  }
  Json collectives = Json::object();
  for (const auto &[kind, total] : kinds)
    collectives[kind] = {{"count", total.first}, {"bytes", total.second}};
  plan["rank_classes"] = std::move(classes);
  plan["collectives"] = std::move(collectives);
}

} // namespace whale
