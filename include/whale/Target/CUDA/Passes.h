//===- Passes.h - Passes of the CUDA target --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TARGET_CUDA_PASSES_H
#define WHALE_TARGET_CUDA_PASSES_H

#include "mlir/Pass/Pass.h"

namespace whale {

#define GEN_PASS_DECL
#include "whale/Target/CUDA/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "whale/Target/CUDA/Passes.h.inc"

} // namespace whale

#endif // WHALE_TARGET_CUDA_PASSES_H
