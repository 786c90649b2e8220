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
#include "whale/Step/Costs.h"
#include "whale/Transforms/OpCost.h"
#include "llvm/ADT/DenseMap.h"

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

} // namespace whale
