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

/// `a` + `b`, at most the largest number.
int64_t addCosts(int64_t a, int64_t b);
/// The product, or the largest number where it is larger.
int64_t multiplyCosts(int64_t a, int64_t b);

/// An estimate of bytes as a whole number, at most 2^61: what is added to it
/// can still be counted.
int64_t toBytes(double bytes);

/// `cost` so many times, or 1e60 where it is more: nested loops may run longer
/// than a number says, and what is computed with costs, sums of their squares
/// too, has to be finite.
double repeatCost(double times, double cost);

} // namespace whale

#endif // WHALE_STEP_COSTS_H
