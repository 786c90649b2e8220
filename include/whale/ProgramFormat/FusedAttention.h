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
};

/// How cuDNN computes it on GPUs of the compute capability (90 for sm_90) and
/// later; nothing, and why not, where it does not.
std::optional<FusedAttention> describeFused(const AttentionCall &call,
                                            int capability, std::string &why);

/// Some samples, or some heads of one: as many as are computed at a time with
/// at most `mostWorkspace` bytes.
FusedAttention choosePart(const FusedAttention &all, int64_t mostWorkspace);

/// The bytes that this much takes besides its tensors; a little less may do.
int64_t findWorkspace(const FusedAttention &part);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_FUSEDATTENTION_H
