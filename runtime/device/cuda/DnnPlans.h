//===- DnnPlans.h - Graphs of cuDNN and their plans -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_DNNPLANS_H
#define WHALE_RUNTIME_DEVICE_CUDA_DNNPLANS_H

#include "cuda/Dnn.h"
#include "cuda/Gpu.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace whale::runtime::cuda {

/// What cuDNN says of what it refused last in this thread.
std::string lastErrorOf(const Dnn &dnn);

/// A descriptor, destroyed with the last who knows it.
using DnnObject = std::shared_ptr<void>;

/// Operations over tensors that have numbers. Its functions throw Error where
/// cuDNN refuses something.
class DnnGraph {
public:
  struct Tensor {
    int dataType = kDnnF32;
    /// Strides in elements.
    std::vector<int64_t> sizes, strides;
    int64_t number = 0;
    /// Whether it has no memory.
    bool isVirtual = false;
    /// Whether its one element is in the host's memory.
    bool isByValue = false;
  };

  explicit DnnGraph(const Dnn &dnn) : dnn(&dnn) {}

  /// A descriptor that is not finalized yet, and stays as long as the graph.
  DnnObject create(int type);
  /// One that goes with the last who knows it.
  DnnObject make(int type) const;
  template <typename T>
  void set(const DnnObject &descriptor, int attribute, int type,
           const T *values, size_t count) const {
    check(dnn->setAttribute.symbol,
          dnn->setAttribute.function(descriptor.get(), attribute, type,
                                     static_cast<int64_t>(count), values));
  }
  template <typename T>
  void set(const DnnObject &descriptor, int attribute, int type,
           T value) const {
    set(descriptor, attribute, type, &value, 1);
  }
  void set(const DnnObject &descriptor, int attribute,
           const std::vector<int64_t> &values) const {
    set(descriptor, attribute, kDnnOfInteger, values.data(), values.size());
  }
  /// How many values there are, of which at most `most` are written.
  template <typename T>
  int64_t get(const DnnObject &descriptor, int attribute, int type, T *values,
              int64_t most) const {
    int64_t count = 0;
    check(dnn->getAttribute.symbol,
          dnn->getAttribute.function(descriptor.get(), attribute, type, most,
                                     &count, values));
    return count;
  }
  void finalize(const DnnObject &descriptor) const {
    check(dnn->finalize.symbol, dnn->finalize.function(descriptor.get()));
  }
  bool tryFinalize(const DnnObject &descriptor) const {
    return !dnn->finalize.function(descriptor.get());
  }

  /// Memory is aligned to 16 bytes, as a tensor in an arena is at the least.
  DnnObject tensor(const Tensor &tensor);
  /// Finalizes an operation, which is the next one.
  void add(const DnnObject &operation);

  void check(const char *function, DnnStatus status) const;

  const Dnn *dnn;
  std::vector<DnnObject> operations;

private:
  /// All descriptors: others refer to them.
  std::vector<DnnObject> kept;
};

/// The device that plans are for: that of the handle; without one, that whose
/// `properties` are given as JSON (cuDNN 9.8 or later), which needs no GPU.
struct DnnWhere {
  DnnHandle handle = nullptr;
  std::string properties = {};
};

class DnnPlan;
using DnnPlans = std::vector<std::shared_ptr<const DnnPlan>>;

/// How an engine of cuDNN computes a graph.
class DnnPlan {
public:
  /// The first `most` ones that cuDNN's heuristics name that are deterministic
  /// and whose workspace is at most `mostWorkspace` bytes, with `isExact`
  /// without tensor cores.
  static DnnPlans find(DnnGraph graph, const DnnWhere &where,
                       int64_t mostWorkspace, bool isExact, size_t most);

  int64_t workspaceBytes() const { return bytes; }
  /// "engine 3, knobs 2=4 18=0": which one it is among those of its graph.
  const std::string &name() const { return itsName; }
  /// Puts it on the handle's stream, with the memory of its tensors by their
  /// numbers.
  void run(const Gpu &gpu, DnnHandle handle,
           const std::map<int64_t, const void *> &memory,
           void *workspace) const;

private:
  explicit DnnPlan(std::shared_ptr<const DnnGraph> graph)
      : graph(std::move(graph)) {}

  std::shared_ptr<const DnnGraph> graph;
  DnnObject config, plan;
  std::string itsName;
  int64_t bytes = 0;
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_DNNPLANS_H
