//===- AttentionLayout.h - Tensors of attention -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention gets its tensors as they are: each dimension has a letter (q a row,
// k a key, d a feature of queries and keys, e one of values, others heads). For
// each head, a tensor is a matrix with two strides.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARY_ATTENTIONLAYOUT_H
#define WHALE_RUNTIME_LIBRARY_ATTENTIONLAYOUT_H

#include "library/Library.h"
#include "whale/ProgramFormat/Attention.h"

#include <algorithm>
#include <optional>

namespace whale::runtime {

/// Where the elements of one tensor are.
struct AttentionTensor {
  DType dtype = DType::F32;
  /// In elements; 0 for what it doesn't have.
  int64_t row = 0, key = 0, depth = 0, feature = 0;
  /// The strides of heads, in the order of AttentionLayout::heads.
  std::vector<int64_t> heads;
  /// Where the first element is.
  int64_t start = 0;

  int64_t offset(const std::vector<int64_t> &headExtents, int64_t head) const;
};

/// What the configuration's `name_view` says: elements of a larger tensor.
struct AttentionView {
  Shape shape;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

/// Nothing where there is none; throws Error where it is none.
std::optional<AttentionView> findView(const nlohmann::json &config,
                                      const std::string &name);

struct AttentionLayout {
  format::AttentionSizes sizes;
  /// Extents of the dimensions that make up `sizes.heads`.
  std::vector<int64_t> heads;
  AttentionTensor query, key, value;
  std::optional<AttentionTensor> mask, bias, cotangent, statistics;
  size_t cotangentNumber = 0;
  /// One, or those of query, key and value.
  std::vector<AttentionTensor> results;
  float scale = 1, fill = 0;
  std::optional<int64_t> causal;
  /// Threads that the last output, scratch memory, is for.
  int64_t threads = 1;

  /// Rows whose scores are computed at a time. With a causal mask they are
  /// fewer: each block computes scores of the keys of its last row, and half of
  /// a single block would be masked.
  int64_t blockRows() const {
    constexpr int64_t mostCausal = 64;
    return causal ? std::min(sizes.blockRows(), mostCausal) : sizes.blockRows();
  }

  /// Throws Error for what is no attention, or gradient of it.
  AttentionLayout(const LibraryRequest &request, bool isGradient);
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARY_ATTENTIONLAYOUT_H
