//===- LoopStops.h - Loops in which samples stop on their own ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop goes on while any sample wants it to. Where it leaves alone the
// samples that don't, as jax.vmap of a lax.while_loop does, a part of the
// samples can run it alone, for fewer rounds: what it carries is the same after
// the rounds that it needs, and after any more.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_SHARDING_LOOPSTOPS_H
#define WHALE_LIB_SHARDING_LOOPSTOPS_H

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

namespace whale {

/// Whether a part of the samples gets the same results if it runs the loop
/// until its own conditions are false, given that it reads nothing of other
/// samples.
bool stopsByParts(mlir::stablehlo::WhileOp loop);

} // namespace whale

#endif // WHALE_LIB_SHARDING_LOOPSTOPS_H
