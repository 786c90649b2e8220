//===- FusedAttention.h - Attention that cuDNN has --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which calls of attention and its gradient cuDNN computes on a GPU, and in
// which form: the compiler asks before it makes kernels, the runtime when it
// makes plans.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_FUSEDATTENTION_H
#define WHALE_PROGRAMFORMAT_FUSEDATTENTION_H

#include "whale/ProgramFormat/DType.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace whale::format {

/// What a program says of a call.
struct AttentionCall {
  struct Tensor {
    DType dtype = DType::BF16;
    /// One for each dimension: q a row, k a key, d and e features, 1 nothing,
    /// others heads and samples.
    std::string letters;
    std::vector<int64_t> shape;
    /// In elements; without strides they are dense.
    std::vector<int64_t> strides = {};
    int64_t offset = 0;
  };
  /// Query, key and value; of a gradient the cotangent, too, and the output
  /// once it is known.
  std::vector<Tensor> inputs;
  /// One, or the cotangents of query, key and value.
  std::vector<Tensor> results;
  bool isGradient = false, hasMask = false, hasBias = false;
  double scale = 1;
  /// Minus infinity if there is none.
  std::optional<double> fill;
  std::optional<int64_t> causal;
};

/// Attention of `samples` x `heads`; heads of keys and values are shared by
/// neighbouring heads of queries. Statistics, the logarithm of the sum of the
/// exponentials of a row's scores, are a dense f32 tensor of samples, heads and
/// rows.
struct FusedAttention {
  /// Of sample, head, row or key; features are neighbours.
  using Strides = std::array<int64_t, 3>;

  int64_t samples = 1, heads = 1, keyHeads = 1, rows = 1, keys = 1,
          features = 1;
  std::vector<Strides> inputs, results;
  /// Where inputs begin, in elements.
  std::vector<int64_t> offsets;
  /// Of the letters that are samples and heads, the statistics' order.
  std::string headLetters;
  double scale = 1;
  /// Whether rows read no keys behind their own.
  bool isCausal = false;
  bool isGradient = false;
  /// Of a part: how many of them have the same head of keys, of which each
  /// gives cotangents of keys and values, dense in the workspace, to be summed.
  int64_t keyParts = 1;
};

/// What the GPU of a rank offers to cuDNN's attention.
struct AttentionLimits {
  /// 90 for sm_90.
  int capability = 0;
  /// The most bytes that a call may take besides its tensors. More than
  /// `mostWorkspace` of Limits.h is taken only where a call can't be divided
  /// so far.
  int64_t mostWorkspace = 0;
};

/// The most workspace of a call on a device of so much memory.
int64_t mostAttentionWorkspace(int64_t memoryBytes);

/// How cuDNN computes it within the limits, on such a GPU and on later ones;
/// nothing, and why not, where it does not.
std::optional<FusedAttention> describeFused(const AttentionCall &call,
                                            const AttentionLimits &limits,
                                            std::string &why);

/// What is computed at a time with at most `mostWorkspace` bytes, as much as
/// can be: samples, else heads of keys of one with the heads of queries that
/// share them, else one head of queries. Nothing if that is still too much.
std::optional<FusedAttention> choosePart(const FusedAttention &all,
                                         int64_t mostWorkspace);

/// The bytes that this much takes besides its tensors; a little less may do.
int64_t findWorkspace(const FusedAttention &part);
/// Of these, what cotangents of keys and values take that are summed.
int64_t findPartialBytes(const FusedAttention &part);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_FUSEDATTENTION_H
