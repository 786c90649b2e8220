//===- StableHLORandomOps.td - Random numbers --------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLORANDOMOPS_TD
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLORANDOMOPS_TD

include "whale/Dialect/StableHLO/IR/StableHLOAttrs.td"

// rng advances a random state of the process. It declares no memory effects,
// which means unknown ones.
def StableHLO_RngOp : StableHLO_InferredOp<"rng"> {
  let summary = "Random numbers of the implementation's generator";
  let description = [{
    Numbers of a uniform distribution over [a, b), or of a normal one with mean
    a and standard deviation b.

    ```mlir
    %r = stablehlo.rng %a, %b, %shape, distribution = UNIFORM
         : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins HLO_ScalarTensor:$a, HLO_ScalarTensor:$b,
    HLO_DimensionTensor:$shape,
    StableHLO_RngDistributionAttr:$rng_distribution);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $shape `,`
    `distribution` `=` custom<Enum>($rng_distribution) attr-dict `:`
    functional-type(operands, results)
  }];
}

def StableHLO_RngBitGeneratorOp
    : StableHLO_Op<"rng_bit_generator", [Pure]> {
  let summary = "Random bits from a state";
  let description = [{
    Random bits and the next state by the given algorithm; equal states give
    equal bits.

    ```mlir
    %output_state, %output = stablehlo.rng_bit_generator %state,
      algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    ```
  }];
  let arguments = (ins StableHLO_RngAlgorithmAttr:$rng_algorithm,
                       HLO_Tensor:$initial_state);
  let results = (outs HLO_Tensor:$output_state, HLO_Tensor:$output);
  let assemblyFormat = [{
    $initial_state `,` `algorithm` `=` custom<Enum>($rng_algorithm)
    attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLORANDOMOPS_TD
