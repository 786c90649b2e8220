//===- OpClass.h - Classes of operations ------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What operations are for the cost model, with the names that cluster files and
// programs share.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CLUSTER_OPCLASS_H
#define WHALE_CLUSTER_OPCLASS_H

#include <cstddef>
#include <optional>
#include <string_view>

namespace whale {

/// The classes of operations that may differ in efficiency.
enum class OpClass {
  Matmul,
  Convolution,
  /// Scores, their softmax and the products with both, as one call.
  Attention,
  Elementwise,
  Reduction,
  Other
};
inline constexpr size_t kNumOpClasses = 6;

constexpr std::string_view stringifyOpClass(OpClass opClass) {
  constexpr std::string_view names[kNumOpClasses] = {"matmul",    "convolution",
                                                     "attention", "elementwise",
                                                     "reduction", "other"};
  return names[static_cast<size_t>(opClass)];
}

constexpr std::optional<OpClass> parseOpClass(std::string_view name) {
  for (size_t i = 0; i < kNumOpClasses; ++i)
    if (stringifyOpClass(OpClass(i)) == name)
      return OpClass(i);
  return std::nullopt;
}

} // namespace whale

#endif // WHALE_CLUSTER_OPCLASS_H
