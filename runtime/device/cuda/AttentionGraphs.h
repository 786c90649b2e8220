//===- AttentionGraphs.h - Attention by cuDNN -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_ATTENTIONGRAPHS_H
#define WHALE_RUNTIME_DEVICE_CUDA_ATTENTIONGRAPHS_H

#include "device/cuda/DnnPlans.h"
#include "whale/ProgramFormat/FusedAttention.h"

namespace whale::runtime::cuda {

/// The tensors of the graphs that have memory. Statistics are f32 of one number
/// for each row, one row behind the other: the logarithm of the sum of the
/// exponentials of its scores, and in the gradient the sum of the products of
/// output and cotangent. The last ones are of the host: 1, the scale and minus
/// infinity, f32.
enum AttentionTensor : int64_t {
  kAttentionQuery = 1,
  kAttentionKey,
  kAttentionValue,
  kAttentionOutput,
  kAttentionStatistics,
  kAttentionCotangent,
  kAttentionSums,
  kAttentionQueryCotangent,
  kAttentionKeyCotangent,
  kAttentionValueCotangent,
  kAttentionOne,
  kAttentionScale,
  kAttentionMasked,
  kAttentionTensors
};

/// A plan of attention or, as it says, of its gradient; null if there is none.
std::shared_ptr<const DnnPlan>
findAttentionPlan(const Dnn &dnn, const format::FusedAttention &attention,
                  const DnnWhere &where, int64_t mostWorkspace);

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_ATTENTIONGRAPHS_H
