//===- ImportScopes.cpp - Strategies and phases from name paths -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main, all calls inlined, with name paths as locations. Out: a strategy
// and a phase on each operation. First what patterns of names match gets a
// scope (ScopePatterns.h). Then the path of each operation is read, each
// location once, and the scopes in it are listed in program order. From the
// list each TaskGraph gets its number, in order of first use; a backward
// operation gets that of the forward scope it is paired with (CallPairing.h).
// Then what no path has is filled in, by the rules of StepAnalysis.h. Cost:
// linear in the operations and in the length of the paths of all locations,
// plus the rules, which need the cube of the number of TaskGraphs
// (ImportScopes/OrderTaskGraphs.cpp).
//
//===----------------------------------------------------------------------===//

#include "ImportScopes/ScopePatterns.h"
#include "ImportScopes/StackedRows.h"
#include "ImportScopes/StepAnalysis.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/StableHLO/IR/CustomCalls.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Sharding/GivenPlacements.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/CallPairing.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/ScopePath.h"

#include "llvm/ADT/StringSet.h"

namespace whale {
#define GEN_PASS_DEF_IMPORTSCOPES
#include "whale/Transforms/Import/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

namespace {

/// Whether the operations inside `op` belong to the step and not to the
/// computation of one element, as those of a reducer.
bool holdsSteps(Operation *op) {
  return stablehlo::isControlFlow(op) ||
         (op->getNumRegions() != 0 &&
          op->getName().getStringRef() == "sdy.manual_computation");
}

class ImportScopes : public whale::impl::ImportScopesBase<ImportScopes> {
  using ImportScopesBase::ImportScopesBase;

  /// An operation with a strategy of its own.
  struct Occurrence {
    Operation *op;
    StrategyAttr attr;
    std::optional<Scope> scope;
    bool backward;

    /// Empty if only an id identifies the TaskGraph.
    StringRef name() const {
      return attr ? attr.getName() : StringRef(scope->name);
    }
    std::optional<int64_t> devices() const {
      return attr ? attr.getDevices() : scope->devices;
    }
  };

  void runOnOperation() override {
    FailureOr<func::FuncOp> found = getMainFunction(getOperation());
    if (failed(found))
      return signalPassFailure();
    func::FuncOp main = *found;
    if (hasGivenResults(main)) {
      if (failed(checkUnannotated(main)))
        signalPassFailure();
      return;
    }
    if (failed(insertPatternScopes(getOperation(), main)) ||
        failed(readDefault()) || failed(readPaths(main)) ||
        failed(numberTaskGraphs()))
      return signalPassFailure();

    Step step;
    for (Operation &op : main.front().without_terminator())
      step[&op] = summarize(&op);
    findConstants(step);
    for (auto &[op, info] : step) {
      // The location of a constant says where it was traced, not what for.
      if (info.constant && !op->hasAttr(kPhaseAttr))
        info.phase = std::nullopt;
      if (info.constant && !op->hasAttr(kStrategyAttr))
        info.strategy = nullptr;
    }
    assignPhases(step, main);
    joinTaskGraphs(step, main, defaultStrategy,
                   [&](Operation *op) { return strategies.lookup(op); });
    auto python = ReplicateAttr::get(&getContext(), /*devices=*/1,
                                     kPythonTaskGraph, /*scope=*/std::nullopt);
    for (auto &[op, info] : step)
      annotate(op, info.strategy, *info.phase);
    // At last, so that nothing else joins it.
    main.walk([&](stablehlo::CustomCallOp call) {
      if (isPythonCallback(call.getCallTargetName()))
        call->setAttr(kStrategyAttr, python);
    });
  }

  /// Where results are wanted says where everything is: scopes have nothing to
  /// say, and a strategy that is written out contradicts it.
  LogicalResult checkUnannotated(func::FuncOp main) {
    ModuleOp module = getOperation();
    if (module->hasAttr(kDefaultStrategyAttr) || strategy != "none")
      return main.emitError("results have a '")
             << kGivenPlacementAttr
             << "', from which all follows: leave the strategy out";
    WalkResult result = main.walk([&](Operation *op) {
      if (!op->hasAttr(kStrategyAttr))
        return WalkResult::advance();
      op->emitError("has a strategy, and the results of @main a '")
          << kGivenPlacementAttr << "', from which all follows";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult readDefault() {
    ModuleOp module = getOperation();
    if (auto attr = module->getAttrOfType<StrategyAttr>(kDefaultStrategyAttr)) {
      defaultStrategy = attr;
    } else if (strategy == "replicate") {
      defaultStrategy =
          ReplicateAttr::get(&getContext(), std::nullopt, "", std::nullopt);
    } else if (strategy == "split") {
      defaultStrategy =
          SplitAttr::get(&getContext(), std::nullopt, "", std::nullopt);
    } else if (strategy != "none") {
      return module.emitError("unknown strategy '")
             << strategy << "': expected replicate, split or none";
    }
    if (defaultStrategy)
      module->setAttr(kDefaultStrategyAttr, defaultStrategy);
    return success();
  }

  /// Reads the name path of every operation, in program order.
  LogicalResult readPaths(func::FuncOp main) {
    WalkResult result = main.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == main.getOperation())
        return WalkResult::advance();
      if (failed(readPath(op)))
        return WalkResult::interrupt();
      return op->getNumRegions() == 0 || holdsSteps(op) ? WalkResult::advance()
                                                        : WalkResult::skip();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult readPath(Operation *op) {
    auto [cached, isNew] = pathOfLocation.try_emplace(op->getLoc());
    if (isNew) {
      llvm::Expected<ScopePath> path = parseScopePath(namePath(op->getLoc()));
      if (!path)
        return op->emitError(llvm::toString(path.takeError()));
      cached->second = std::move(*path);
    }
    const ScopePath &path = cached->second;
    if (auto attr = op->getAttrOfType<StrategyAttr>(kStrategyAttr))
      order.push_back({op, attr, std::nullopt, path.backward});
    else if (path.scope)
      order.push_back({op, nullptr, path.scope, path.backward});
    return success();
  }

  /// Gives each TaskGraph a number, in order of first use, and each operation
  /// in a scope the strategy attribute with that number.
  LogicalResult numberTaskGraphs() {
    pairInstances();
    if (failed(readDevices()))
      return failure();
    llvm::StringMap<StrategyAttr> taskGraphs;
    int64_t count = 0;
    for (const Occurrence &o : order) {
      if (o.attr && o.attr.getName().empty()) {
        strategies[o.op] = o.attr;
        continue;
      }
      bool isSplit =
          o.attr ? isa<SplitAttr>(o.attr) : o.scope->kind == Scope::Kind::Split;
      auto [it, isNew] = taskGraphs.try_emplace(keyOf(o));
      if (isNew) {
        if (isSplit)
          it->second =
              SplitAttr::get(&getContext(), devicesOf(o), o.name(), count++);
        else
          it->second = ReplicateAttr::get(&getContext(), devicesOf(o), o.name(),
                                          count++);
      } else if (isa<SplitAttr>(it->second) != isSplit) {
        return o.op->emitError("TaskGraph '")
               << o.name() << "' is both replicate and split";
      }
      strategies[o.op] = it->second;
    }
    // A named default is the TaskGraph of the scopes with its name.
    if (defaultStrategy && !defaultStrategy.getName().empty())
      if (StrategyAttr same =
              taskGraphs.lookup(keyOf(defaultStrategy.getName())))
        defaultStrategy = same;
    return success();
  }

  /// Finds the forward instances that backward instances stand for.
  void pairInstances() {
    llvm::StringMap<SmallVector<ScopeInstance>> instances;
    llvm::StringSet<> seen;
    for (const Occurrence &o : order) {
      if (!o.scope || !o.scope->name.empty())
        continue;
      if (seen.insert(o.scope->id + (o.backward ? "b" : "f")).second)
        instances[o.scope->baseId()].push_back({o.scope->id, o.backward});
    }
    for (auto &entry : instances)
      forwardOf[entry.getKey()] = pairCalls(entry.getValue());
  }

  /// Counts of devices that are left out come from where they are given.
  LogicalResult readDevices() {
    for (const Occurrence &o : order) {
      std::optional<int64_t> devices = o.devices();
      if (o.name().empty() || !devices)
        continue;
      auto [it, isNew] = devicesOfName.try_emplace(o.name(), *devices);
      if (!isNew && it->second != *devices)
        return o.op->emitError("TaskGraph '")
               << o.name() << "' asks for " << *devices
               << " devices here and for " << it->second << " before";
    }
    return success();
  }

  std::optional<int64_t> devicesOf(const Occurrence &o) const {
    auto given = devicesOfName.find(o.name());
    return given == devicesOfName.end() ? o.devices() : given->second;
  }

  /// Identifies the TaskGraph that the operation is part of. Ids and names
  /// can't be confused: ids start with a digit after '#'.
  std::string keyOf(const Occurrence &o) const {
    if (!o.name().empty())
      return keyOf(o.name());
    const std::string &id = o.scope->id;
    if (o.backward)
      if (auto pairs = forwardOf.find(o.scope->baseId());
          pairs != forwardOf.end())
        if (auto it = pairs->second.find(id); it != pairs->second.end())
          return "#" + it->second;
    return "#" + id;
  }
  static std::string keyOf(StringRef name) { return ("n" + name).str(); }

  /// What is known of an operation of @main's body. An operation with steps
  /// inside and no scope of its own has the one that most of them have.
  StepOp summarize(Operation *op) {
    StepOp info;
    info.strategy = strategies.lookup(op);
    const ScopePath &path = pathOfLocation[op->getLoc()];
    bool backward = path.backward, forward = path.differentiated;
    llvm::MapVector<StrategyAttr, unsigned> inner;
    if (holdsSteps(op) && !(backward || forward))
      op->walk([&](Operation *nested) {
        auto it = pathOfLocation.find(nested->getLoc());
        if (it == pathOfLocation.end())
          return;
        backward |= it->second.backward;
        forward |= it->second.differentiated;
      });
    if (holdsSteps(op) && !info.strategy) {
      op->walk([&](Operation *nested) {
        if (StrategyAttr strategy = strategies.lookup(nested))
          ++inner[strategy];
      });
      unsigned most = 0;
      for (auto [strategy, uses] : inner)
        if (uses > most) {
          most = uses;
          info.strategy = strategy;
        }
    }
    if (auto phase = op->getAttrOfType<PhaseAttr>(kPhaseAttr))
      info.phase = phase.getValue();
    else if (backward)
      info.phase = Phase::Backward;
    else if (forward)
      info.phase = Phase::Forward;
    return info;
  }

  /// Writes the attributes, inside of regions too, where an operation's own
  /// scope goes before that of the operation around it, and that before the
  /// default.
  void annotate(Operation *op, StrategyAttr strategy, Phase phase) {
    StrategyAttr around = strategy;
    if (defaultStrategy && !strategies.lookup(op))
      around = defaultStrategy;
    if (strategy)
      op->setAttr(kStrategyAttr, strategy);
    op->setAttr(kPhaseAttr, PhaseAttr::get(&getContext(), phase));
    if (!holdsSteps(op))
      return;
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        joinStackedRows(block, strategies);
        for (Operation &nested : block.without_terminator()) {
          StrategyAttr own = strategies.lookup(&nested);
          Phase nestedPhase = phase;
          if (auto attr = nested.getAttrOfType<PhaseAttr>(kPhaseAttr))
            nestedPhase = attr.getValue();
          else if (pathOfLocation[nested.getLoc()].backward)
            nestedPhase = Phase::Backward;
          else if (pathOfLocation[nested.getLoc()].differentiated)
            nestedPhase = Phase::Forward;
          annotate(&nested, own ? own : around, nestedPhase);
        }
      }
  }

  /// In program order.
  SmallVector<Occurrence> order;
  /// By base id: the forward instance of each backward instance.
  llvm::StringMap<llvm::StringMap<std::string>> forwardOf;
  llvm::StringMap<int64_t> devicesOfName;
  DenseMap<Location, ScopePath> pathOfLocation;
  DenseMap<Operation *, StrategyAttr> strategies;
  StrategyAttr defaultStrategy;
};

} // namespace
