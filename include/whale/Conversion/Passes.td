//===- Passes.td - Whale Conversion passes -----------------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CONVERSION_PASSES_TD
#define WHALE_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // WHALE_CONVERSION_PASSES_TD
