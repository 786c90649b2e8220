//===- StableHLOReductionOps.td - Reductions ---------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reductions of dimensions and of windows, `select_and_scatter`, `map` and
// batch normalization.
//
// The region of a reduction may work in wider types than its inputs have; the
// results then have these types. The order of a reduction is free;
// ReductionToLinalg.cpp and WindowToLinalg.cpp in lib/Conversion/StableHLO
// choose one, and so how sums are rounded. A reduction by one commutative
// operation is
// printed as `applies NAME`. Batch normalization is expanded by
// whale-normalize. Checks and text forms are in
// lib/Dialect/StableHLO/IR/StableHLOReductionOps.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLOREDUCTIONOPS_TD
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLOREDUCTIONOPS_TD

include "whale/Dialect/StableHLO/IR/StableHLOAttrs.td"

def StableHLO_ReduceOp
    : StableHLO_InferredOp<"reduce", [SameVariadicOperandSize, SingleBlock,
                                      RecursiveMemoryEffects,
                                      RecursivelySpeculatable]> {
  let summary = "Reduction of dimensions";
  let description = [{
    Combines the elements along `dimensions` by the region, starting from the
    initial values. The order is unspecified.

    ```mlir
    %r = stablehlo.reduce(%x init: %zero) applies stablehlo.add
         across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>)
         -> tensor<2xf32>
    ```

    A region other than a single commutative operation is printed in full:

    ```mlir
    %r:2 = stablehlo.reduce(%x init: %a), (%y init: %b)
           across dimensions = [1] : (tensor<2x4xf32>, tensor<2x4xi32>,
           tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
     reducer(%p: tensor<f32>, %q: tensor<f32>)
            (%s: tensor<i32>, %t: tensor<i32>) {
      stablehlo.return %p, %s : tensor<f32>, tensor<i32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs,
                       Variadic<HLO_Tensor>:$init_values,
                       DenseI64ArrayAttr:$dimensions);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<HLO_Tensor>);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def StableHLO_ReduceWindowOp
    : StableHLO_InferredOp<"reduce_window", [SameVariadicOperandSize,
        SingleBlock, RecursiveMemoryEffects, RecursivelySpeculatable]> {
  let summary = "Reduction of windows";
  let description = [{
    Each element of the result is the reduction of a window of the padded and
    dilated input. Strides and dilations default to 1, padding to 0.

    ```mlir
    %r = "stablehlo.reduce_window"(%x, %zero) <{
      window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs,
    Variadic<HLO_Tensor>:$init_values, DenseI64ArrayAttr:$window_dimensions,
    OptionalAttr<DenseI64ArrayAttr>:$window_strides,
    OptionalAttr<DenseI64ArrayAttr>:$base_dilations,
    OptionalAttr<DenseI64ArrayAttr>:$window_dilations,
    OptionalAttr<I64ElementsAttr>:$padding);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<HLO_Tensor>);
  let hasRegionVerifier = 1;
}

def StableHLO_SelectAndScatterOp
    : StableHLO_Op<"select_and_scatter", [RecursiveMemoryEffects,
                                          RecursivelySpeculatable]> {
  let summary = "Scatter to the selected element of each window";
  let description = [{
    For each window of the operand, `select` chooses an element, and `scatter`
    combines the window's element of `source` into the result at the chosen
    index: the gradient of a max-pool.

    ```mlir
    %r = "stablehlo.select_and_scatter"(%x, %source, %zero) <{
      window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %p = stablehlo.compare GE, %a, %b
             : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
    }, {
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, HLO_Tensor:$source,
    HLO_ScalarTensor:$init_value,
    OptionalAttr<DenseI64ArrayAttr>:$window_dimensions,
    OptionalAttr<DenseI64ArrayAttr>:$window_strides,
    OptionalAttr<I64ElementsAttr>:$padding);
  let regions = (region SizedRegion<1>:$select, SizedRegion<1>:$scatter);
  let results = (outs HLO_Tensor);
  let hasVerifier = 1;
}

def StableHLO_MapOp
    : StableHLO_Op<"map", [SameOperandsAndResultShape, SingleBlock,
                           RecursiveMemoryEffects, RecursivelySpeculatable]> {
  let summary = "Application of a function to each element";
  let description = [{
    Applies the region to the corresponding elements of the inputs.

    ```mlir
    %r = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
      ^bb0(%a: tensor<f32>):
        stablehlo.return %a : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs,
                       DenseI64ArrayAttr:$dimensions);
  let regions = (region SizedRegion<1>:$computation);
  let results = (outs HLO_Tensor);
  let hasVerifier = 1;
}

class StableHLO_BatchNormOp<string mnemonic, dag operands, dag res>
    : StableHLO_InferredOp<"batch_norm_" # mnemonic, [Pure]> {
  let arguments = !con((ins HLO_FpTensor:$operand, HLO_FpTensor:$scale),
                       operands,
                       (ins F32Attr:$epsilon, I64Attr:$feature_index));
  let results = res;
}

def StableHLO_BatchNormTrainingOp
    : StableHLO_BatchNormOp<"training", (ins HLO_FpTensor:$offset),
        (outs HLO_FpTensor:$output, HLO_FpTensor:$batch_mean,
              HLO_FpTensor:$batch_var)> {
  let summary = "Batch normalization by the batch's mean and variance";
  let description = [{
    Normalizes each feature of `operand` to mean 0 and variance 1, then scales
    and shifts it; also returns the mean and the variance before.

    ```mlir
    %y, %mean, %var = "stablehlo.batch_norm_training"(%x, %scale, %offset)
      <{epsilon = 0.0 : f32, feature_index = 1 : i64}>
      : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>)
      -> (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>)
    ```
  }];
}

def StableHLO_BatchNormInferenceOp
    : StableHLO_BatchNormOp<"inference",
        (ins HLO_FpTensor:$offset, HLO_FpTensor:$mean, HLO_FpTensor:$variance),
        (outs HLO_FpTensor:$result)> {
  let summary = "Batch normalization by a given mean and variance";
  let description = [{
    ```mlir
    %y = "stablehlo.batch_norm_inference"(%x, %scale, %offset, %mean, %var)
      <{epsilon = 0.0 : f32, feature_index = 1 : i64}>
      : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>,
         tensor<2xf32>) -> tensor<4x2xf32>
    ```
  }];
}

def StableHLO_BatchNormGradOp
    : StableHLO_BatchNormOp<"grad",
        (ins HLO_FpTensor:$mean, HLO_FpTensor:$variance,
             HLO_FpTensor:$grad_output),
        (outs HLO_FpTensor:$grad_operand, HLO_FpTensor:$grad_scale,
              HLO_FpTensor:$grad_offset)> {
  let summary = "Gradients of batch_norm_training";
  let description = [{
    ```mlir
    %dx, %dscale, %doffset =
      "stablehlo.batch_norm_grad"(%x, %scale, %mean, %var, %dy)
      <{epsilon = 0.0 : f32, feature_index = 1 : i64}>
      : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>,
         tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>)
    ```
  }];
}

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLOREDUCTIONOPS_TD
