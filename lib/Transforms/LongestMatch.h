//===- LongestMatch.h - A longest common subsequence ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_LONGESTMATCH_H
#define WHALE_TRANSFORMS_LONGESTMATCH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <utility>

namespace whale {

/// A longest common subsequence of `rows` and `columns`, as pairs of indices in
/// order. Where several are as long, a column is passed over rather than a row.
///
/// Linear in the lists times the elements of the shorter one that stay alone
/// although the other list has their value, too. `cells` becomes the entries of
/// the tables that were filled.
llvm::SmallVector<std::pair<size_t, size_t>>
longestMatch(llvm::ArrayRef<unsigned> rows, llvm::ArrayRef<unsigned> columns,
             uint64_t *cells = nullptr);

} // namespace whale

#endif // WHALE_TRANSFORMS_LONGESTMATCH_H
