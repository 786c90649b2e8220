//===- DnnPlans.cpp - Graphs of cuDNN and their plans ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In comes a graph; out comes a plan. cuDNN's heuristics name engines, of which
// the first one is taken that is deterministic, as exact as was asked for and
// modest in its workspace. A plan takes milliseconds, or some tenths of a
// second where code is generated; it is made once, before anything is captured.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/DnnPlans.h"

#include "whale/Runtime/Types.h"

#include <algorithm>

namespace whale::runtime::cuda {

std::string lastErrorOf(const Dnn &dnn) {
  char text[512] = {};
  dnn.getLastError.function(text, sizeof(text));
  return text;
}

void DnnGraph::check(const char *function, DnnStatus status) const {
  if (status)
    throw Error(std::string("cuDNN: ") + function + ": " +
                dnn->getErrorString.function(status) + " " + lastErrorOf(*dnn));
}

DnnObject DnnGraph::create(int type) {
  DnnDescriptor made = nullptr;
  check(dnn->createDescriptor.symbol,
        dnn->createDescriptor.function(type, &made));
  return kept.emplace_back(
      made, [destroy = dnn->destroyDescriptor.function](void *descriptor) {
        if (descriptor)
          destroy(descriptor);
      });
}

DnnObject DnnGraph::tensor(const Tensor &tensor) {
  DnnObject result = create(kDnnTensor);
  set(result, kDnnTensorType, kDnnOfDataType, tensor.dataType);
  set(result, kDnnTensorSizes, tensor.sizes);
  set(result, kDnnTensorStrides, tensor.strides);
  set(result, kDnnTensorNumber, kDnnOfInteger, tensor.number);
  set(result, kDnnTensorAlignment, kDnnOfInteger, int64_t(16));
  if (tensor.isVirtual)
    set(result, kDnnTensorVirtual, kDnnOfBoolean, true);
  if (tensor.isByValue)
    set(result, kDnnTensorByValue, kDnnOfBoolean, true);
  finalize(result);
  return result;
}

void DnnGraph::add(const DnnObject &operation) {
  finalize(operation);
  operations.push_back(operation);
}

/// Whether results are the same in each run, and as exact as is asked for.
static bool isGood(const DnnGraph &graph, const DnnObject &engine,
                   bool isExact) {
  constexpr int64_t most = 32;
  int notes[most] = {};
  int64_t count = graph.get(engine, kDnnEngineNotes, kDnnOfNote, notes, most);
  return std::none_of(notes, notes + std::min(count, most), [&](int note) {
    return note == kDnnNondeterministic || note == kDnnReducedSums ||
           note == kDnnDownConverts || (isExact && note == kDnnTensorCore);
  });
}

std::unique_ptr<DnnPlan> DnnPlan::find(DnnGraph given, const DnnWhere &where,
                                       int64_t mostWorkspace, bool isExact) {
  std::unique_ptr<DnnPlan> result(new DnnPlan(std::move(given)));
  DnnGraph &build = result->graph;
  DnnObject device;
  if (!where.handle) {
    device = build.create(kDnnDeviceProperties);
    build.set(device, kDnnPropertiesText, kDnnOfText, where.properties.data(),
              where.properties.size());
    build.finalize(device);
  }
  DnnObject graph = build.create(kDnnGraph);
  if (where.handle)
    build.set(graph, kDnnGraphHandle, kDnnOfHandle, where.handle);
  std::vector<DnnDescriptor> operations;
  for (const DnnObject &operation : build.operations)
    operations.push_back(operation.get());
  build.set(graph, kDnnGraphOperations, kDnnOfDescriptor, operations.data(),
            operations.size());
  if (!build.tryFinalize(graph))
    return nullptr;
  for (int mode : {kDnnHeuristic, kDnnFallbackHeuristic}) {
    DnnObject heuristics = build.create(kDnnHeuristics);
    build.set(heuristics, kDnnHeuristicGraph, kDnnOfDescriptor, graph.get());
    build.set(heuristics, kDnnHeuristicMode, kDnnOfHeuristic, mode);
    if (device)
      build.set(heuristics, kDnnHeuristicDevice, kDnnOfDescriptor,
                device.get());
    if (!build.tryFinalize(heuristics))
      continue;
    DnnDescriptor *none = nullptr;
    int64_t count =
        build.get(heuristics, kDnnHeuristicResults, kDnnOfDescriptor, none, 0);
    std::vector<DnnObject> configs;
    std::vector<DnnDescriptor> handles;
    for (int64_t i = 0; i < count; ++i)
      handles.push_back(
          configs.emplace_back(build.create(kDnnEngineConfig)).get());
    count = build.get(heuristics, kDnnHeuristicResults, kDnnOfDescriptor,
                      handles.data(), count);
    configs.resize(static_cast<size_t>(count));
    for (const DnnObject &config : configs) {
      DnnObject engine = build.create(kDnnEngine);
      DnnDescriptor itsHandle = engine.get();
      build.get(config, kDnnConfigEngine, kDnnOfDescriptor, &itsHandle, 1);
      if (!isGood(build, engine, isExact))
        continue;
      DnnObject plan = build.create(kDnnPlan);
      if (where.handle)
        build.set(plan, kDnnPlanHandle, kDnnOfHandle, where.handle);
      else
        build.set(plan, kDnnPlanDevice, kDnnOfDescriptor, device.get());
      build.set(plan, kDnnPlanConfig, kDnnOfDescriptor, config.get());
      if (!build.tryFinalize(plan))
        continue;
      build.get(plan, kDnnPlanWorkspace, kDnnOfInteger, &result->bytes, 1);
      if (result->bytes > mostWorkspace)
        continue;
      build.get(engine, kDnnEngineNumber, kDnnOfInteger, &result->number, 1);
      result->plan = plan;
      return result;
    }
  }
  return nullptr;
}

void DnnPlan::run(DnnHandle handle,
                  const std::map<int64_t, const void *> &memory,
                  void *workspace) const {
  std::vector<int64_t> numbers;
  std::vector<const void *> pointers;
  for (const auto &[itsNumber, itsMemory] : memory) {
    numbers.push_back(itsNumber);
    pointers.push_back(itsMemory);
  }
  DnnGraph build(*graph.dnn);
  DnnObject pack = build.create(kDnnVariantPack);
  build.set(pack, kDnnPackNumbers, numbers);
  build.set(pack, kDnnPackPointers, kDnnOfPointer, pointers.data(),
            pointers.size());
  build.set(pack, kDnnPackWorkspace, kDnnOfPointer, workspace);
  build.finalize(pack);
  build.check(build.dnn->execute.symbol,
              build.dnn->execute.function(handle, plan.get(), pack.get()));
}

} // namespace whale::runtime::cuda
