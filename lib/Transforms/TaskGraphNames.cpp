//===- TaskGraphNames.cpp - What TaskGraphs are called --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/TaskGraphNames.h"

#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/ScopePath.h"
#include "whale/Transforms/SourceLines.h"

using namespace mlir;

namespace whale {

TaskGraphNames::TaskGraphNames(Operation *function,
                               StrategyAttr defaultStrategy)
    : defaultStrategy(defaultStrategy) {
  if (defaultStrategy)
    used.insert(defaultStrategy.getName());
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    StrategyAttr strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttr);
    if (auto graph = dyn_cast<TaskGraphOp>(op)) {
      strategy = graph.getStrategyAttr();
      names.try_emplace(strategy, graph.getName());
      used.insert(graph.getName());
    }
    if (!strategy)
      return;
    // Names of scopes are the user's; all others give way to them.
    used.insert(strategy.getName());
    if (strategy.getName().empty() && strategy.getScope())
      // Operations from outside of it may have joined its TaskGraph.
      if (std::string &line = lines[strategy];
          line.empty() && isInScope(op->getLoc()))
        line = getUserLine(op->getLoc());
  });
}

std::string TaskGraphNames::nameOf(StrategyAttr strategy) {
  auto [it, isNew] = names.try_emplace(strategy);
  if (!isNew)
    return it->second;
  if (strategy && !strategy.getName().empty())
    return it->second = strategy.getName().str();
  std::string base = lines.lookup(strategy);
  if (!base.empty())
    ;
  else if (strategy && strategy.getScope())
    base = "scope" + std::to_string(*strategy.getScope());
  else if (strategy == defaultStrategy)
    base = "default";
  else
    base = isa<SplitAttr>(strategy) ? "split" : "replicate";
  std::string name = base;
  for (int i = 1; used.contains(name); ++i)
    name = base + "_" + std::to_string(i);
  used.insert(name);
  return it->second = name;
}

} // namespace whale
