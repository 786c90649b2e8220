//===- Passes.h - Whale Conversion passes -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CONVERSION_PASSES_H
#define WHALE_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"
#include "whale/Conversion/Target.h"

namespace whale {

#define GEN_PASS_DECL
#include "whale/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "whale/Conversion/Passes.h.inc"

} // namespace whale

#endif // WHALE_CONVERSION_PASSES_H
