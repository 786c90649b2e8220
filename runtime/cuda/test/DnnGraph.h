//===- DnnGraph.h - Graphs of cuDNN on a test machine -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_TEST_DNNGRAPH_H
#define WHALE_RUNTIME_CUDA_TEST_DNNGRAPH_H

#include "cuda/Dnn.h"

#include <cstring>
#include <map>
#include <vector>

namespace whale::runtime::cuda::test {

/// What is behind a DnnDescriptor.
struct Descriptor {
  int type = 0;
  bool isFinal = false;
  /// Elements as bytes.
  std::map<int, std::vector<uint8_t>> attributes;
  int64_t engine = 0;

  template <typename T>
  std::vector<T> all(int attribute) const {
    auto it = attributes.find(attribute);
    if (it == attributes.end())
      return {};
    std::vector<T> values(it->second.size() / sizeof(T));
    std::memcpy(values.data(), it->second.data(), it->second.size());
    return values;
  }
  template <typename T>
  T one(int attribute) const {
    std::vector<T> values = all<T>(attribute);
    return values.empty() ? T() : values.front();
  }
  const Descriptor &descriptor(int attribute) const {
    return *one<const Descriptor *>(attribute);
  }
};

/// A tensor of the graph, and where it is.
struct Place {
  /// Throws std::out_of_range where it has no memory but should.
  Place(const Descriptor &descriptor, const std::map<int64_t, void *> &memory);

  int64_t bytes() const { return type == kDnnF32 ? 4 : 2; }
  /// Whether the dimensions lie in this order, from the outermost to the
  /// innermost.
  bool isIn(const std::vector<size_t> &order) const;
  /// Elements from the first to the last one.
  int64_t span() const;
  double read(int64_t at) const;
  void write(int64_t at, double value) const;

  int type;
  std::vector<int64_t> sizes, strides;
  /// Null for what has no memory.
  void *data;
};

/// Matrix products, reductions, reshapes and operations by element, one after
/// the other, as they are defined.
class GraphWork {
public:
  /// Takes what is by value at once. Throws std::out_of_range where a tensor
  /// has no memory.
  GraphWork(const std::vector<const Descriptor *> &operations,
            const std::map<int64_t, void *> &memory);

  void run() const;

  /// What has memory, and whether it is written.
  std::vector<std::pair<const Place *, bool>> places() const;

private:
  /// In row-major order.
  using Values = std::vector<double>;
  struct Operation {
    int type, mode;
    int64_t axis;
    /// Numbers of tensors; -1 for what it has not.
    int x, b, condition, y;
  };
  struct Tensor {
    Place place;
    bool isWritten;
    /// Of what is by value.
    Values given;
  };

  Values compute(const Operation &operation,
                 const std::vector<Values> &values) const;
  Values multiply(const Operation &operation, const Values &a,
                  const Values &b) const;
  Values load(const Tensor &tensor) const;

  std::vector<Tensor> tensors;
  std::vector<Operation> operations;
};

} // namespace whale::runtime::cuda::test

#endif // WHALE_RUNTIME_CUDA_TEST_DNNGRAPH_H
