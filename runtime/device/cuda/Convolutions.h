//===- Convolutions.h - Convolutions by cuDNN -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_CONVOLUTIONS_H
#define WHALE_RUNTIME_DEVICE_CUDA_CONVOLUTIONS_H

#include "cuda/Dnn.h"
#include "program/Format.h"

#include <array>
#include <memory>

namespace whale::runtime::cuda {

/// A convolution as cuDNN says it: y[n, k, p] is the sum over c and q of
/// x[n, c, p * stride + q * dilation - before] w[k, c, q], or one of the
/// gradients of that. Groups follow from the channels.
struct DnnConvolution {
  format::ConvolutionForm kind = format::ConvolutionForm::Forward;
  /// Sizes and strides in elements of batch, features and then the spatial
  /// dimensions, of w outputs, inputs and its extents.
  struct Tensor {
    std::vector<int64_t> sizes, strides;
  };
  Tensor x, w, y;
  std::vector<int64_t> before, after, strides, dilations;
  /// Whether windows are read from their end.
  bool isFlipped = false;
  DType dtype = DType::F32;
  /// Whether f32 may be rounded to TF32.
  bool tf32 = false;
};

/// Nothing where cuDNN has no such one: of other types than f32 and half
/// precision, with windows that no attribute of it describes, or with
/// dimensions in another order than channels last or channels first.
std::optional<DnnConvolution> describeForDnn(const Convolution &op);

/// A deterministic plan whose workspace is at most `mostWorkspace` bytes, the
/// first one that cuDNN's heuristics name.
class DnnPlan {
public:
  /// For the device of the handle; without one, for the device whose
  /// `properties` are given as JSON (cuDNN 9.8 or later), which needs no GPU.
  /// Null if there is no such plan.
  static std::unique_ptr<DnnPlan>
  find(const Dnn &dnn, const DnnConvolution &convolution, DnnHandle handle,
       const std::string &properties, int64_t mostWorkspace);

  int64_t workspaceBytes() const { return bytes; }
  int64_t engine() const { return number; }
  /// Puts it on the handle's stream.
  void run(DnnHandle handle, const void *lhs, const void *rhs, void *out,
           void *workspace) const;

private:
  using Descriptor = std::shared_ptr<void>;
  explicit DnnPlan(const Dnn &dnn) : dnn(dnn) {}

  const Dnn &dnn;
  Descriptor plan;
  /// What the plan refers to.
  std::vector<Descriptor> kept;
  int64_t bytes = 0, number = 0;
  /// Of lhs, rhs and out among the tensors of the graph.
  std::array<int64_t, 3> numbers = {};
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_CONVOLUTIONS_H
