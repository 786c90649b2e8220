//===- Costs.cpp - Sums of costs that stay finite -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/Costs.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace whale {

static constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

int64_t multiplyCosts(int64_t a, int64_t b) {
  int64_t product;
  return llvm::MulOverflow(a, b, product) ? kLargest : product;
}

int64_t addCosts(int64_t a, int64_t b) {
  int64_t sum;
  return llvm::AddOverflow(a, b, sum) ? kLargest : sum;
}

int64_t toBytes(double bytes) {
  constexpr double most = double(int64_t(1) << 61);
  return std::clamp(bytes, -most, most);
}

double repeatCost(double times, double cost) {
  return std::min(times * cost, 1e60);
}

} // namespace whale
