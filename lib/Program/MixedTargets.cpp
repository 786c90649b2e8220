//===- MixedTargets.cpp - Ranks on GPUs and on processors -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a partitioned module whose ranks are of several kinds. Out: the same with
// kernels, of which each is for GPUs of one architecture or for the processor:
// what libraries take, and so what is a kernel, differs. A class whose ranks
// are on several of these targets becomes as many. The classes of each target
// are lowered in a module of their own, with the segments that they call; what
// modules name alike gets other names when they are joined.
//
// Cost: a copy of the module for each further target, and its lowering.
//
//===----------------------------------------------------------------------===//

#include "MixedTargets.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/SymbolTable.h"
#include "whale/Dialect/Whale/IR/GpuArchAttribute.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/GpuArchitecture.h"
#include "whale/Transforms/Attributes.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <set>

using namespace mlir;

namespace whale {

llvm::BitVector findProcessors(const Cluster &cluster) {
  llvm::BitVector processors(cluster.devices.size());
  for (size_t device = 0; device < cluster.devices.size(); ++device)
    if (cluster.kindOf(device).name == "cpu")
      processors.set(device);
  if (processors.all())
    processors.reset();
  return processors;
}

/// What names of a target's functions end with; nothing for the first one.
static std::string suffixOf(const Target &target) {
  return target.isGpu() ? "_on_" + format::archOf(target.getCapability())
                        : "_on_cpu";
}

static void mark(Operation *op, const Target &target) {
  Builder b(op->getContext());
  if (target.isGpu())
    op->setAttr(kGpuArchAttrName,
                b.getStringAttr(format::archOf(target.getCapability())));
  else
    op->setAttr(kForProcessorAttrName, b.getUnitAttr());
}

static bool isMarked(Operation *op, const Target &target) {
  auto arch = op->getAttrOfType<StringAttr>(kGpuArchAttrName);
  return (arch ? format::capabilityOf(arch.str()) : 0) ==
         target.getCapability();
}

/// Marks the classes, once each is of one target.
static void divideClasses(ModuleOp module,
                          llvm::function_ref<Target(int64_t rank)> targetOf) {
  for (ScheduleOp schedule : getRankClasses(module)) {
    OpBuilder b(schedule);
    std::map<Target, SmallVector<int64_t>> ranks;
    for (int64_t rank : schedule.getRanks())
      ranks[targetOf(rank)].push_back(rank);
    std::string name = schedule.getSymName().str();
    for (const auto &[target, own] : ranks) {
      if (target != ranks.begin()->first) {
        b.setInsertionPointAfter(schedule);
        schedule = cast<ScheduleOp>(b.clone(*schedule));
        schedule.setSymName(name + suffixOf(target));
        schedule->removeAttr(kGpuArchAttrName);
      }
      schedule.setRanks(own);
      mark(schedule, target);
    }
  }
}

/// Leaves the classes of a target, and the segments that they call.
static void keep(ModuleOp module, const Target &target) {
  for (ScheduleOp schedule : getRankClasses(module))
    if (!isMarked(schedule, target))
      schedule.erase();
  llvm::StringMap<func::FuncOp> segments;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(kSegmentAttr))
      segments[function.getSymName()] = function;
  llvm::SetVector<Operation *> used;
  used.insert_range(getRankClasses(module));
  for (size_t i = 0; i < used.size(); ++i)
    if (auto uses = SymbolTable::getSymbolUses(used[i]))
      for (const SymbolTable::SymbolUse &use : *uses)
        if (auto it =
                segments.find(use.getSymbolRef().getRootReference().getValue());
            it != segments.end())
          used.insert(it->second);
  for (auto &[name, segment] : segments)
    if (!used.contains(segment))
      segment.erase();
}

/// Gives all schedules and functions of a module names of their own.
static void rename(ModuleOp module, StringRef suffix) {
  MLIRContext *context = module.getContext();
  llvm::DenseMap<StringAttr, StringAttr> names;
  module.walk([&](FunctionOpInterface function) {
    StringAttr name = function.getNameAttr();
    if (!name.getValue().ends_with(suffix))
      names[name] = StringAttr::get(context, name.getValue() + suffix);
  });
  // Kernels are named by launches and by attributes of calls.
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](FlatSymbolRefAttr symbol) -> std::optional<Attribute> {
        auto it = names.find(symbol.getAttr());
        if (it == names.end())
          return std::nullopt;
        return FlatSymbolRefAttr::get(it->second);
      });
  module.walk([&](Operation *op) { replacer.replaceElementsIn(op); });
  module.walk([&](FunctionOpInterface function) {
    if (auto it = names.find(function.getNameAttr()); it != names.end())
      function.setName(it->second);
  });
}

static ModuleOp kernelsOf(ModuleOp module) {
  return module.lookupSymbol<ModuleOp>(kKernelsModuleName);
}

/// Moves what `other` has, and its kernels, to `module`.
static void join(ModuleOp module, ModuleOp other) {
  Operation *last = nullptr;
  for (auto function : module.getOps<FunctionOpInterface>())
    last = function;
  for (FunctionOpInterface function :
       llvm::make_early_inc_range(other.getOps<FunctionOpInterface>())) {
    function->moveAfter(last);
    last = function;
  }
  ModuleOp kernels = kernelsOf(module);
  for (func::FuncOp kernel :
       llvm::make_early_inc_range(kernelsOf(other).getOps<func::FuncOp>()))
    kernel->moveBefore(kernels.getBody(), kernels.getBody()->end());
}

LogicalResult lowerByTarget(
    ModuleOp module, llvm::function_ref<Target(int64_t rank)> targetOf,
    llvm::function_ref<LogicalResult(ModuleOp, const Target &)> lower) {
  std::set<Target> targets;
  for (ScheduleOp schedule : getRankClasses(module))
    for (int64_t rank : schedule.getRanks())
      targets.insert(targetOf(rank));
  if (targets.size() <= 1)
    return lower(module, targets.empty() ? Target() : *targets.begin());
  divideClasses(module, targetOf);
  std::vector<OwningOpRef<ModuleOp>> others;
  for (size_t i = 1; i < targets.size(); ++i)
    others.push_back(module.clone());
  for (auto [number, target] : llvm::enumerate(targets)) {
    ModuleOp part = number ? *others[number - 1] : module;
    keep(part, target);
    if (failed(lower(part, target)))
      return failure();
    for (auto kernel : kernelsOf(part).getOps<func::FuncOp>())
      mark(kernel, target);
    if (number == 0)
      continue;
    rename(part, suffixOf(target));
    join(module, part);
  }
  return success();
}

} // namespace whale
