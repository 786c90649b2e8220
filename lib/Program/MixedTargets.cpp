//===- MixedTargets.cpp - Ranks on GPUs and on processors -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a partitioned module whose ranks are of several kinds. Out: the same with
// kernels, of which each is for GPUs or for the processor. A class whose ranks
// are on both becomes two. The classes of the processor are lowered in a module
// of their own, with the segments that they call; what the two modules name
// alike gets another name when they are joined.
//
//===----------------------------------------------------------------------===//

#include "MixedTargets.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/SymbolTable.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Transforms/Attributes.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace whale {

static constexpr StringRef kSuffix = "_on_cpu";

llvm::BitVector findProcessors(const Cluster &cluster) {
  llvm::BitVector processors(cluster.devices.size());
  for (size_t device = 0; device < cluster.devices.size(); ++device)
    if (cluster.kindOf(device).name == "cpu")
      processors.set(device);
  if (processors.all())
    processors.reset();
  return processors;
}

/// Marks the classes of the processor, once each class is of one target.
static void divideClasses(ModuleOp module, const llvm::BitVector &processors) {
  for (ScheduleOp schedule : getRankClasses(module)) {
    OpBuilder b(schedule);
    SmallVector<int64_t> onGpus, onCpus;
    for (int64_t rank : schedule.getRanks())
      (processors[rank] ? onCpus : onGpus).push_back(rank);
    if (onCpus.empty())
      continue;
    if (!onGpus.empty()) {
      schedule.setRanks(onGpus);
      b.setInsertionPointAfter(schedule);
      auto other = cast<ScheduleOp>(b.clone(*schedule));
      other.setSymName((schedule.getSymName() + kSuffix).str());
      other.setRanks(onCpus);
      schedule = other;
    }
    schedule->setAttr(kForProcessorAttrName, b.getUnitAttr());
  }
}

/// Leaves the classes of a target, and the segments that they call.
static void keep(ModuleOp module, bool isForProcessor) {
  for (ScheduleOp schedule : getRankClasses(module))
    if (schedule->hasAttr(kForProcessorAttrName) != isForProcessor)
      schedule.erase();
  bool isChanged = true;
  while (std::exchange(isChanged, false))
    for (func::FuncOp function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (function->hasAttr(kSegmentAttr) &&
          SymbolTable::symbolKnownUseEmpty(function, module)) {
        function.erase();
        isChanged = true;
      }
}

/// Gives all schedules and functions of a module names of their own.
static void rename(ModuleOp module) {
  MLIRContext *context = module.getContext();
  llvm::DenseMap<StringAttr, StringAttr> names;
  module.walk([&](FunctionOpInterface function) {
    StringAttr name = function.getNameAttr();
    if (!name.getValue().ends_with(kSuffix))
      names[name] = StringAttr::get(context, name.getValue() + kSuffix);
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

/// Moves what `other` has, which was lowered for the processor, and its
/// kernels to `module`.
static void join(ModuleOp module, ModuleOp other) {
  auto kernelsOf = [](ModuleOp op) {
    return op.lookupSymbol<ModuleOp>(kKernelsModuleName);
  };
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
       llvm::make_early_inc_range(kernelsOf(other).getOps<func::FuncOp>())) {
    kernel->setAttr(kForProcessorAttrName, UnitAttr::get(module.getContext()));
    kernel->moveBefore(kernels.getBody(), kernels.getBody()->end());
  }
}

LogicalResult
lowerByTarget(ModuleOp module, const Cluster &cluster,
              llvm::function_ref<LogicalResult(ModuleOp, bool)> lower) {
  llvm::BitVector processors = findProcessors(cluster);
  if (processors.none())
    return lower(module, false);
  divideClasses(module, processors);
  OwningOpRef<ModuleOp> other = module.clone();
  keep(module, false);
  keep(*other, true);
  if (failed(lower(module, false)) || failed(lower(*other, true)))
    return failure();
  rename(*other);
  join(module, *other);
  return success();
}

} // namespace whale
