//===- MemoryNeeds.cpp - Bytes that each device needs ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module whose buffers are planned, and the cluster. Out: the bytes that
// each device needs, and messages about them.
//
// All ranks of a class need the same: arguments, the arena, results that have
// buffers of their own, constants, and scratch. A constant counts once in a
// class, however many of its segments have it. Cost: a few walks over each
// class with the segments that it calls.
//
//===----------------------------------------------------------------------===//

#include "whale/Program/MemoryNeeds.h"

#include "ScratchNeeds.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Report/TextTable.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/OpCost.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;

namespace whale {

/// A schedule, and the segments that it calls, each once.
static SmallVector<FunctionOpInterface> withSegments(ScheduleOp schedule,
                                                     SymbolTable &symbols) {
  llvm::SetVector<FunctionOpInterface, SmallVector<FunctionOpInterface>>
      functions;
  functions.insert(schedule);
  schedule.walk([&](func::CallOp call) {
    if (auto callee = symbols.lookup<func::FuncOp>(call.getCallee()))
      functions.insert(callee);
  });
  return functions.takeVector();
}

/// What the constants of these functions take: equal ones are there once.
static int64_t countConstants(ArrayRef<FunctionOpInterface> functions) {
  llvm::DenseSet<std::pair<StringRef, int64_t>> splats;
  llvm::DenseSet<Attribute> others;
  int64_t bytes = 0;
  for (FunctionOpInterface function : functions)
    function.walk([&](Operation *op) {
      if (!isa<stablehlo::ConstantOp, ShardOffsetOp>(op))
        return;
      int64_t size = getTensorBytes(op->getResult(0).getType());
      bool isNew = true;
      if (auto constant = dyn_cast<stablehlo::ConstantOp>(op)) {
        auto value = dyn_cast<DenseElementsAttr>(constant.getValue());
        isNew = value && value.isSplat()
                    ? splats
                          .insert({StringRef(value.getRawData().data(),
                                             value.getRawData().size()),
                                   size})
                          .second
                    : others.insert(constant.getValue()).second;
      }
      bytes += isNew ? size : 0;
    });
  return bytes;
}

std::vector<MemoryNeed> findMemoryNeeds(ModuleOp module, const Cluster &cluster,
                                        bool isCpu, ScratchNeeds &scratch) {
  std::vector<MemoryNeed> needs(cluster.devices.size());
  bool isPlanned = false;
  SymbolTable symbols(module);
  for (ScheduleOp schedule : getRankClasses(module)) {
    auto arena = schedule->getAttrOfType<IntegerAttr>(kArenaBytesAttr);
    auto buffers = schedule->getAttrOfType<ArrayAttr>(kBuffersAttr);
    if (!arena || !buffers)
      continue;
    isPlanned = true;
    MemoryNeed need;
    for (auto [number, type] : llvm::enumerate(schedule.getArgumentTypes()))
      (schedule.getArgAttr(number, kInHostAttr) ? need.hostBytes
                                                : need.argumentBytes) +=
          getTensorBytes(type);
    need.bytes = need.argumentBytes + arena.getInt();
    SmallVector<FunctionOpInterface> functions =
        withSegments(schedule, symbols);
    need.constantBytes = countConstants(functions);
    for (auto buffer : buffers.getAsRange<DictionaryAttr>())
      if (auto result = buffer.getAs<IntegerAttr>("result"))
        (schedule.getResultAttr(result.getInt(), kInHostAttr)
             ? need.hostBytes
             : need.resultBytes) += buffer.getAs<IntegerAttr>("bytes").getInt();
    need.scratchBytes = scratch.find(
        functions, isCpu || schedule->hasAttr(kForProcessorAttrName),
        schedule.getRanks().front());
    need.bytes += need.resultBytes + need.constantBytes + need.scratchBytes;
    for (int64_t rank : schedule.getRanks())
      if (rank >= 0 && size_t(rank) < needs.size())
        needs[rank] = need;
  }
  if (!isPlanned)
    needs.clear();
  return needs;
}

std::optional<int64_t> findOverfull(ArrayRef<MemoryNeed> needs,
                                    const Cluster &cluster) {
  std::optional<int64_t> worst;
  int64_t most = 0;
  for (auto [device, need] : llvm::enumerate(needs))
    if (int64_t lack = need.bytes - cluster.kindOf(device).memoryBytes;
        lack > most) {
      most = lack;
      worst = device;
    }
  return worst;
}

static std::string part(int64_t bytes, StringRef what) {
  return bytes ? (", " + describeBytes(bytes) + " for " + what).str() : "";
}

std::string describeLack(ArrayRef<MemoryNeed> needs, const Cluster &cluster,
                         int64_t device) {
  const DeviceKind &kind = cluster.kindOf(device);
  const MemoryNeed &need = needs[device];
  // A loss needs a place, too; that is no matter.
  bool matters = need.resultBytes > (need.bytes - kind.memoryBytes) / 20;
  int64_t resultBytes = matters ? need.resultBytes : 0;
  return "device " + std::to_string(device) + " (" + kind.name + ") lacks " +
         describeBytes(need.bytes - kind.memoryBytes) + ": it has " +
         describeBytes(kind.memoryBytes) + " and needs " +
         describeBytes(need.bytes) + ", " + describeBytes(need.argumentBytes) +
         " of them for its arguments" +
         part(resultBytes, "results that replace no argument") +
         part(need.scratchBytes, "what products and convolutions take besides");
}

std::string describeHostLack(ArrayRef<MemoryNeed> needs,
                             const Cluster &cluster) {
  struct Node {
    int64_t bytes = 0, devices = 0, first = 0;
  };
  std::map<unsigned, Node> nodes;
  for (auto [device, need] : llvm::enumerate(needs)) {
    Node &node = nodes[cluster.devices[device].node];
    if (node.devices++ == 0)
      node.first = int64_t(device);
    node.bytes += need.hostBytes;
  }
  for (const auto &[number, node] : nodes) {
    const NodeGroup &group = cluster.nodeOf(node.first);
    int64_t memory = group.host ? group.host->memoryBytes : 0;
    if (node.bytes > memory)
      return ("the host of node '" + Twine(group.name) + "' lacks " +
              describeBytes(double(node.bytes - memory)) + ": it has " +
              describeBytes(double(memory)) + " and needs " +
              describeBytes(double(node.bytes)) + " for the state of its " +
              Twine(node.devices) +
              (node.devices == 1 ? " device" : " devices"))
          .str();
  }
  return "";
}

std::string describeNeeds(ArrayRef<MemoryNeed> needs, const MemoryFit &fit) {
  auto most = llvm::max_element(needs, [](const MemoryNeed &a, const auto &b) {
    return a.bytes < b.bytes;
  });
  size_t device = most - needs.begin();
  std::string text = ("memory: device " + Twine(device) + " needs most, " +
                      Twine(most->bytes) + " bytes")
                         .str();
  if (fit.shares.bytes.size() == needs.size())
    text += (", " + Twine(fit.shares.bytes[device]) + " were expected").str();
  return text;
}

std::vector<double> findScale(const MemoryFit::Estimate &estimate,
                              ArrayRef<MemoryNeed> needs) {
  std::vector<double> scale(needs.size(), 1);
  if (estimate.bytes.size() != needs.size())
    return scale;
  for (size_t device = 0; device < needs.size(); ++device) {
    double fixed = double(estimate.fixedBytes[device]);
    double expected = double(estimate.bytes[device]) - fixed;
    if (!estimate.scratchBytes.empty())
      expected -= double(estimate.scratchBytes[device]);
    double real =
        double(needs[device].bytes - needs[device].scratchBytes) - fixed;
    if (expected > 0 && real > 0)
      scale[device] = std::clamp(real / expected, 1e-3, 1e3);
  }
  return scale;
}

} // namespace whale
