//===- Convolutions.h - Convolutions by cuDNN -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_CONVOLUTIONS_H
#define WHALE_RUNTIME_DEVICE_CUDA_CONVOLUTIONS_H

#include "device/cuda/DnnPlans.h"
#include "program/Format.h"

#include <array>

namespace whale::runtime::cuda {

/// A convolution as cuDNN says it: y[n, k, p] is the sum over c and q of
/// x[n, c, p * stride + q * dilation - padding] w[k, c, q], or one of the
/// gradients of that. Groups follow from the channels.
struct DnnConvolution {
  format::ConvolutionForm kind = format::ConvolutionForm::Forward;
  /// Sizes and strides in elements of batch, features and then the spatial
  /// dimensions, of w outputs, inputs and its extents.
  struct Tensor {
    std::vector<int64_t> sizes, strides;
  };
  Tensor x, w, y;
  /// What is padded on either side, and the others, by spatial dimension.
  std::vector<int64_t> padding, strides, dilations;
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

/// The most workspace that its plan may have, in bytes.
int64_t workspaceOf(const DnnConvolution &convolution);

/// All that it is, in a line: convolutions that are alike have the same plans.
std::string describe(const DnnConvolution &convolution);

/// At most so many deterministic plans for it, as exact as it must be, from the
/// one that should be best.
DnnPlans findConvolutionPlans(const Dnn &dnn, const DnnConvolution &convolution,
                              const DnnWhere &where, int64_t mostWorkspace,
                              size_t most);

/// Of lhs, rhs and out among the tensors of its graph.
std::array<int64_t, 3> tensorNumbers(const DnnConvolution &convolution);

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_CONVOLUTIONS_H
