//===- WhaleRecomputeOps.td - Values computed again --------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What keeps that which a backward computes again behind the gradient that it
// is for. whale-recompute-forward writes it, the passes behind it treat it as
// a view, and no instruction of a program comes of it. Its verifier is in
// lib/Dialect/Whale/IR/WhaleRecomputeOps.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_WHALERECOMPUTEOPS_TD
#define WHALE_DIALECT_WHALE_IR_WHALERECOMPUTEOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "whale/Dialect/Whale/IR/WhaleDialect.td"

def Whale_AfterOp : Op<Whale_Dialect, "after", [
    Pure, AllTypesMatch<["value", "result"]>
  ]> {
  let summary = "a value that is used behind another one";
  let description = [{
    The value in its own memory, for operations that must not come before
    `behind` is computed: a backward computes a forward's values again from what
    is kept, when the gradient has come that it needs them for. Without it,
    these could be computed at any time, and would be there for as long as if
    they had been kept.

    Example:
    ```mlir
    %1 = whale.after %x behind %g : tensor<8x4xf32>, tensor<8x4xf32>
    %2 = stablehlo.tanh %1 : tensor<8x4xf32>
    %3 = stablehlo.multiply %g, %2 : tensor<8x4xf32>
    ```

    **Constraints:**
    - The result has the type of the value.
    - In a task graph: the task graph is a backward one, `behind` is what a
      backward task graph computes, and the value is not from this task graph.
  }];
  let arguments = (ins AnyRankedTensor:$value, AnyRankedTensor:$behind);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $value `behind` $behind attr-dict `:` type($value) `,` type($behind)
  }];
  let hasVerifier = 1;
}

#endif // WHALE_DIALECT_WHALE_IR_WHALERECOMPUTEOPS_TD
