//===- Costs.h - Sums of costs that stay finite ------------------*- C++ -*===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_COSTS_H
#define WHALE_STEP_COSTS_H

#include <cstdint>

namespace whale {

/// Returns `a` + `b`, at most the largest number.
int64_t addCosts(int64_t a, int64_t b);
/// Returns the product, at most the largest number.
int64_t multiplyCosts(int64_t a, int64_t b);

/// Rounds an estimate of bytes to an integer, at most 2^61, so that sums of a
/// few don't overflow.
int64_t toBytes(double bytes);

/// Returns times * cost, at most 1e60. Nested loops may have more iterations
/// than a double can represent, and everything computed from costs, such as
/// sums of their squares, must be finite.
double repeatCost(double times, double cost);

} // namespace whale

#endif // WHALE_STEP_COSTS_H
