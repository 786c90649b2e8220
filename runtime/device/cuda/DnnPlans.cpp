//===- DnnPlans.cpp - Graphs of cuDNN and their plans ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a graph of operations, where it is to run, and the most workspace. Out:
// plans, and what puts one on a stream. cuDNN's heuristics name engines, best
// ones first, of which those are taken that are deterministic, as exact as was
// asked for and within the workspace.
//
// Cost: a plan takes milliseconds, or some tenths of a second where code is
// generated; it is made once, before anything is captured. Engines are tried
// until as many plans as were asked for are found. A run makes one descriptor
// with the addresses and executes the plan.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/DnnPlans.h"

#include "whale/Runtime/Types.h"

#include <algorithm>
#include <set>

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

DnnObject DnnGraph::make(int type) const {
  DnnDescriptor made = nullptr;
  check(dnn->createDescriptor.symbol,
        dnn->createDescriptor.function(type, &made));
  return {made, [destroy = dnn->destroyDescriptor.function](void *descriptor) {
            if (descriptor)
              destroy(descriptor);
          }};
}

DnnObject DnnGraph::create(int type) { return kept.emplace_back(make(type)); }

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

/// Descriptors of a type, as many as the attribute has.
static std::vector<DnnObject>
getAll(const DnnGraph &graph, const DnnObject &from, int attribute, int type) {
  DnnDescriptor *none = nullptr;
  int64_t count = graph.get(from, attribute, kDnnOfDescriptor, none, 0);
  std::vector<DnnObject> found;
  std::vector<DnnDescriptor> handles;
  for (int64_t i = 0; i < count; ++i)
    handles.push_back(found.emplace_back(graph.make(type)).get());
  if (count > 0)
    count = graph.get(from, attribute, kDnnOfDescriptor, handles.data(), count);
  found.resize(static_cast<size_t>(count));
  return found;
}

/// The engine's number, and how its knobs are set.
static std::string describe(const DnnGraph &graph, const DnnObject &engine,
                            const DnnObject &config) {
  int64_t number = 0;
  graph.get(engine, kDnnEngineNumber, kDnnOfInteger, &number, 1);
  std::string text = "engine " + std::to_string(number);
  const char *separator = ", knobs ";
  for (const DnnObject &knob :
       getAll(graph, config, kDnnConfigKnobs, kDnnKnobChoice)) {
    int type = 0;
    int64_t value = 0;
    graph.get(knob, kDnnKnobType, kDnnOfKnob, &type, 1);
    graph.get(knob, kDnnKnobValue, kDnnOfInteger, &value, 1);
    text += separator + std::to_string(type) + "=" + std::to_string(value);
    separator = " ";
  }
  return text;
}

DnnPlans DnnPlan::find(DnnGraph given, const DnnWhere &where,
                       int64_t mostWorkspace, bool isExact, size_t most) {
  auto shared = std::make_shared<DnnGraph>(std::move(given));
  DnnGraph &build = *shared;
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
  DnnPlans plans;
  if (!build.tryFinalize(graph))
    return plans;
  std::set<std::string> names;
  for (int mode : {kDnnHeuristic, kDnnFallbackHeuristic}) {
    DnnObject heuristics = build.make(kDnnHeuristics);
    build.set(heuristics, kDnnHeuristicGraph, kDnnOfDescriptor, graph.get());
    build.set(heuristics, kDnnHeuristicMode, kDnnOfHeuristic, mode);
    if (device)
      build.set(heuristics, kDnnHeuristicDevice, kDnnOfDescriptor,
                device.get());
    if (!build.tryFinalize(heuristics))
      continue;
    for (const DnnObject &config :
         getAll(build, heuristics, kDnnHeuristicResults, kDnnEngineConfig)) {
      if (plans.size() == most)
        return plans;
      DnnObject engine = build.make(kDnnEngine);
      DnnDescriptor itsHandle = engine.get();
      build.get(config, kDnnConfigEngine, kDnnOfDescriptor, &itsHandle, 1);
      if (!isGood(build, engine, isExact))
        continue;
      std::shared_ptr<DnnPlan> made(new DnnPlan(shared));
      made->itsName = describe(build, engine, config);
      made->config = config;
      made->plan = build.make(kDnnPlan);
      if (where.handle)
        build.set(made->plan, kDnnPlanHandle, kDnnOfHandle, where.handle);
      else
        build.set(made->plan, kDnnPlanDevice, kDnnOfDescriptor, device.get());
      build.set(made->plan, kDnnPlanConfig, kDnnOfDescriptor, config.get());
      if (!build.tryFinalize(made->plan))
        continue;
      build.get(made->plan, kDnnPlanWorkspace, kDnnOfInteger, &made->bytes, 1);
      if (made->bytes <= mostWorkspace && names.insert(made->name()).second)
        plans.push_back(std::move(made));
    }
  }
  return plans;
}

void DnnPlan::run(const Gpu &gpu, DnnHandle handle,
                  const std::map<int64_t, const void *> &memory,
                  void *workspace) const {
  std::vector<int64_t> numbers;
  std::vector<const void *> pointers;
  for (const auto &[itsNumber, itsMemory] : memory) {
    numbers.push_back(itsNumber);
    pointers.push_back(itsMemory);
  }
  DnnGraph build(*graph->dnn);
  DnnObject pack = build.create(kDnnVariantPack);
  build.set(pack, kDnnPackNumbers, numbers);
  build.set(pack, kDnnPackPointers, kDnnOfPointer, pointers.data(),
            pointers.size());
  build.set(pack, kDnnPackWorkspace, kDnnOfPointer, workspace);
  build.finalize(pack);
  build.check(
      build.dnn->execute.symbol,
      gpu.tryLibrary(build.dnn->execute, handle, plan.get(), pack.get()));
}

} // namespace whale::runtime::cuda
