//===- AttentionMask.h - Which scores are masked ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_FORMATTENTION_ATTENTIONMASK_H
#define WHALE_LIB_TRANSFORMS_IMPORT_FORMATTENTION_ATTENTIONMASK_H

#include "Labels.h"

namespace whale::attention {

/// Scores are kept where all that is here says so.
struct Mask {
  struct Causal {
    int row, key;
    /// Keys up to row + offset are kept.
    int64_t offset;
    bool operator==(const Causal &) const = default;
  };
  std::optional<Causal> causal;
  /// Kept where true or, if `isInverted`, where false.
  Labeled kept;
  bool isInverted = false;

  bool operator==(const Mask &) const = default;
};

/// The mask that keeps where `predicate` is true or, if `isInverted`, false.
Mask getMask(const Labeled &predicate, bool isInverted, int keyLabel);

} // namespace whale::attention

#endif // WHALE_LIB_TRANSFORMS_IMPORT_FORMATTENTION_ATTENTIONMASK_H
