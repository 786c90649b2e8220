//===- Passes.h - Whale Transforms passes -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_PASSES_H
#define WHALE_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"

namespace whale {

#define GEN_PASS_DECL
#include "whale/Transforms/Import/Passes.h.inc"

#define GEN_PASS_DECL
#include "whale/Transforms/TaskGraphs/Passes.h.inc"

#define GEN_PASS_DECL
#include "whale/Transforms/Placed/Passes.h.inc"

#define GEN_PASS_DECL
#include "whale/Transforms/Partition/Passes.h.inc"

#define GEN_PASS_DECL
#include "whale/Transforms/Schedule/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "whale/Transforms/Import/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "whale/Transforms/TaskGraphs/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "whale/Transforms/Placed/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "whale/Transforms/Partition/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "whale/Transforms/Schedule/Passes.h.inc"

/// All of them.
inline void registerWhaleTransformsPasses() {
  registerWhaleImportPasses();
  registerWhaleTaskGraphsPasses();
  registerWhalePlacedPasses();
  registerWhalePartitionPasses();
  registerWhaleSchedulePasses();
}

} // namespace whale

#endif // WHALE_TRANSFORMS_PASSES_H
