//===- OffloadState.cpp - whale-offload-state -----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main with task graphs, whose configuration has offload.level. Out: the
// arguments that are to be in the memory of hosts, and the results that feed
// them, with `whale.in_host`. Nothing else changes: the rest of the compiler
// counts them as bytes of the hosts, and whale-copy-host-state makes the copies
// once instructions are known. Cost: linear in uses of arguments.
//
//===----------------------------------------------------------------------===//

#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Sharding/GivenPlacements.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/DeviceRequests.h"
#include "whale/Transforms/Feedback.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/Plans.h"
#include "whale/Transforms/SourceLines.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_OFFLOADSTATE
#include "whale/Transforms/Placed/Passes.h.inc"

namespace {

/// What is smaller takes longer to start than to copy, and saves nothing that
/// matters.
constexpr int64_t kLeastBytes = 1024;

/// The task graph of a use.
TaskGraphOp graphOf(OpOperand &use) {
  auto graph = dyn_cast<TaskGraphOp>(use.getOwner());
  return graph ? graph : use.getOwner()->getParentOfType<TaskGraphOp>();
}

/// Whether others than the optimizer read an argument.
bool isWeight(BlockArgument argument) {
  return llvm::any_of(argument.getUses(), [](OpOperand &use) {
    TaskGraphOp graph = graphOf(use);
    return graph && graph.getPhase() != Phase::Apply;
  });
}

/// Why an argument stays on the devices; empty if it may leave them. `result`
/// is its next value.
std::string whyKept(BlockArgument argument, std::optional<unsigned> result,
                    OffloadLevel level) {
  auto main = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!result || main.getArgAttr(argument.getArgNumber(), kBatchDimAttr))
    return "no result is its next value";
  if (argument.use_empty())
    return "nothing reads it";
  for (OpOperand &use : argument.getUses()) {
    if (isa<func::ReturnOp>(use.getOwner())) {
      if (use.getOperandNumber() != *result)
        return "it is returned as another result, too";
      // Its place in the host's memory stays the argument's.
      if (!main.getArgAttr(argument.getArgNumber(), kDonatedAttr))
        return "it is returned as it is, and not donated";
      continue;
    }
    TaskGraphOp graph = graphOf(use);
    if (!graph)
      return "what is no part of a task graph reads it";
    if (graph.getPhase() == Phase::Apply)
      continue;
    if (level != OffloadLevel::Weights)
      return "not only the optimizer reads it";
    if (graph->getParentOfType<MicroBatchesOp>())
      return "all micro-batches read it, for which it is kept";
  }
  if (getTensorBytes(argument.getType()) < kLeastBytes)
    return ("it has less than " + Twine(kLeastBytes) + " bytes").str();
  return "";
}

/// The first line of the optimizer, else of the step.
Location findPlace(func::FuncOp main) {
  std::optional<Location> first, update;
  main.walk([&](Operation *op) {
    if (!findPosition(op->getLoc()))
      return WalkResult::advance();
    first = first.value_or(op->getLoc());
    auto graph = op->getParentOfType<TaskGraphOp>();
    if (!graph || graph.getPhase() != Phase::Apply)
      return WalkResult::advance();
    update = op->getLoc();
    return WalkResult::interrupt();
  });
  return update.value_or(first.value_or(main.getLoc()));
}

/// Whether another program says where values are.
bool followsOther(func::FuncOp main) {
  return llvm::any_of(main.getArguments(),
                      [](BlockArgument argument) {
                        return bool(getGivenPlacement(argument));
                      }) ||
         llvm::any_of(llvm::seq(main.getNumResults()), [&](unsigned result) {
           return bool(getGivenPlacement(main, result));
         });
}

struct OffloadStatePass : impl::OffloadStateBase<OffloadStatePass> {
  using Base::Base;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    given = getGivenPlan(module).value_or(Plan()).offloaded;
    level = Config(module).getOffloadLevel();
    if (level == OffloadLevel::None) {
      if (given.empty())
        return;
      emitPlanError(module, given.front().place)
          << "decisions.offloaded: needs offload.level";
      return signalPassFailure();
    }
    FailureOr<func::FuncOp> main = getMainFunction(module);
    FailureOr<Cluster> cluster = getCluster(module);
    if (failed(main) || failed(cluster) || failed(checkHosts(*main, *cluster)))
      return signalPassFailure();
    SmallVector<std::optional<unsigned>> feedback = findFeedback(*main);
    if (failed(checkGiven(*main, feedback)))
      return signalPassFailure();
    std::vector<Plan::Offloaded> chosen;
    BlockArgument largest;
    for (BlockArgument argument : main->getArguments()) {
      unsigned number = argument.getArgNumber();
      std::optional<unsigned> result = feedback[number];
      if (!isWanted(number) || !whyKept(argument, result, level).empty()) {
        if (result && (!largest || getTensorBytes(largest.getType()) <
                                       getTensorBytes(argument.getType())))
          largest = argument;
        continue;
      }
      main->setArgAttr(number, kInHostAttr, UnitAttr::get(&getContext()));
      main->setResultAttr(*result, kInHostAttr, UnitAttr::get(&getContext()));
      chosen.push_back({number});
    }
    // What makes another step's state, or reads it, has none of its own.
    if (chosen.empty() && followsOther(*main))
      return;
    if (chosen.empty()) {
      explainNone(*main, largest, feedback);
      return signalPassFailure();
    }
    explain(*main, chosen);
    addToPlan(module, [&](Plan &plan) { plan.offloaded = std::move(chosen); });
  }

  void explain(func::FuncOp main, ArrayRef<Plan::Offloaded> chosen) {
    int64_t stateBytes = 0, weightBytes = 0;
    for (const Plan::Offloaded &each : chosen) {
      BlockArgument argument = main.getArgument(each.argument);
      (isWeight(argument) ? weightBytes : stateBytes) +=
          getTensorBytes(argument.getType());
    }
    InFlightDiagnostic remark = emitRemark(main.getLoc());
    remark << "offload: " << stateBytes << " bytes of optimizer state";
    if (weightBytes > 0)
      remark << " and " << weightBytes << " bytes of weights";
    remark << ", in " << chosen.size()
           << " tensors, are in the memory of hosts, and copied from and to it "
              "for each update";
    if (weightBytes > 0)
      remark << ", weights also where they are used";
  }

  /// A plan says which; without one it is all that can be.
  bool isWanted(unsigned number) const {
    return given.empty() ||
           llvm::any_of(given, [&](const Plan::Offloaded &each) {
             return each.argument == int64_t(number);
           });
  }

  LogicalResult checkGiven(func::FuncOp main,
                           ArrayRef<std::optional<unsigned>> feedback) {
    for (const Plan::Offloaded &each : given) {
      bool exists = each.argument < int64_t(main.getNumArguments());
      std::string why =
          exists ? whyKept(main.getArgument(each.argument),
                           feedback[each.argument], level)
                 : ("the step has " + Twine(main.getNumArguments())).str();
      if (!why.empty())
        return emitPlanError(getOperation(), each.place)
               << "decisions.offloaded: argument " << each.argument
               << " cannot be in the memory of hosts: " << why;
    }
    return success();
  }

  /// Every device has a host to leave its state to.
  LogicalResult checkHosts(func::FuncOp main, const Cluster &cluster) {
    for (const NodeGroup &node : cluster.nodes)
      if (!node.host)
        return emitError(findPlace(main))
               << "offload.level: node '" << node.name
               << "' has no 'host' in the cluster file, with the memory_bytes "
                  "and the bandwidth that there is to offload to";
    return success();
  }

  void explainNone(func::FuncOp main, BlockArgument largest,
                   ArrayRef<std::optional<unsigned>> feedback) {
    InFlightDiagnostic error = emitError(findPlace(main));
    error << "offload.level: there is no state of an optimizer"
          << (level == OffloadLevel::Weights ? ", and no weight," : "")
          << " that could be in the memory of the hosts; leave it out";
    if (largest)
      error.attachNote(largest.getLoc())
          << "argument " << largest.getArgNumber() << " stays on the devices: "
          << whyKept(largest, feedback[largest.getArgNumber()], level);
  }

  OffloadLevel level = OffloadLevel::None;
  /// What the plan that is to be carried out says.
  std::vector<Plan::Offloaded> given;
};

} // namespace
} // namespace whale
